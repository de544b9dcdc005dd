"""The programs of the modes: plain TensorFlow, a repair of the marked lines only, the right result on several devices."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import pytest
from conftest import ROOT
from law import all_tests_of, edit
from statements import statements
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.programs import checks, switches, text
from strategy_clinic.programs import run as programs
from strategy_clinic.programs.run import Job, difference, judged, run_program, run_programs
from strategy_clinic.records import store
from strategy_clinic.rendering import sources
from strategy_clinic.setups import formats, runtime, strategies
from strategy_clinic.setups.parameters import Setup
from thorough import mostly_thorough, thorough

MODES = {mode.id: mode for mode in registry.modes()}
ALLOWED = {
    "tensorflow",
    "tf_keras",
    "keras",
    "numpy",
    "os",
    "tempfile",
    "pathlib",
    "json",
    "threading",
    "time",
    "concurrent",
    "dataclasses",
}
WIDEST = 100  # columns, which a notebook shows without scrolling
COUNTS = (1, 2, 4, 8)


def programs_of(mode) -> dict[str, str]:
    return {subject: files.program_text(mode, subject) for subject in text.SUBJECTS}


def own_setup(mode: str) -> Setup:
    page = sources.percent_notebook((files.mode_folder(mode) / "page.py").read_text())
    return store.own_setup(page, store.parameters_of(page)["keras"])


# Laws


def law_whole() -> list[str]:
    """Every mode has its four programs, and says what the right ones print."""
    problems = [
        f"{mode}: {subject}.py is missing"
        for mode in registry_ids()
        for subject, program in programs_of(mode).items()
        if not program.strip()
    ]
    modes = registry.modes()
    return problems + [each.id for each in modes if not (each.prints and each.exercise_prints)]


def registry_ids() -> list[str]:
    return [mode.id for mode in registry.modes()]


def law_repair() -> list[str]:
    """The broken and the fixed program differ in marked lines only, and neither is long."""
    return [
        f"{mode}: {problem}"
        for mode in registry_ids()
        for problem in text.problems(*list(programs_of(mode).values())[:2])
    ]


def law_plain() -> list[str]:
    """A program imports nothing of ours, has no long lines, and one statement on a line."""
    problems = []
    for mode in registry_ids():
        for subject, program in programs_of(mode).items():
            for number, line in enumerate(program.splitlines(), 1):
                if len(line) > WIDEST or ";" in line.split("#")[0]:
                    problems.append(f"{mode}: {subject}.py, line {number}")
            if not imported(program) <= ALLOWED:
                problems.append(f"{mode}: {subject}.py imports {imported(program) - ALLOWED}")
    return problems


def imported(program: str) -> set[str]:
    nodes = list(statements(ast.parse(program)))
    names = [each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)]
    names += [alias.name for each in nodes if isinstance(each, ast.Import) for alias in each.names]
    return {name.split(".")[0] for name in names}


def law_own_setup() -> Iterator[str]:
    """The lines of a program are those of its page's parameters."""
    for mode in registry_ids():
        program = programs_of(mode)["broken"]
        if program and switches.for_setup(program, own_setup(mode), "CPU") != program:
            yield mode


FM37 = "helpers/strategy_clinic/modes/fm37_loss_scaled_per_replica"
MUTATIONS = [
    ("law_whole", lambda root: (root / FM37 / "solution.py").unlink()),
    ("law_whole", edit(f"{FM37}/page.py", "prints=", "# prints=")),
    ("law_repair", edit(f"{FM37}/fixed.py", "SGD(0.05)", "SGD(0.01)")),
    ("law_repair", edit(f"{FM37}/broken.py", "# wrong", "# Wrong")),
    (
        "law_repair",
        edit(f"{FM37}/broken.py", "import tensorflow", "a = 1\n" * 20 + "import tensorflow"),
    ),
    (
        "law_plain",
        edit(f"{FM37}/broken.py", "import tensorflow", "import strategy_clinic\nimport tensorflow"),
    ),
    ("law_plain", edit(f"{FM37}/exercise.py", "import tensorflow", "a = 1; import tensorflow")),
    ("law_own_setup", edit(f"{FM37}/page.py", "devices = 2\n", "devices = 4\n")),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


# The lines of a setup


STRATEGY = """cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * {0})
strategy = tf.distribute.MirroredStrategy([{1}])  # a comment
"""
SAVED = """import tensorflow as tf

{0}
def make_model():
    return tf.keras.Sequential()


with strategy.scope():
    model = make_model()
model.save("model.keras")
with strategy.scope():  # fixed
    loaded = tf.keras.models.load_model("model.keras")  # fixed: why
"""
TWO = SAVED.format(STRATEGY.format(2, '"CPU:0", "CPU:1"'))


@pytest.mark.parametrize("strategy", strategies.TABLE)
@pytest.mark.parametrize("save_format", formats.TABLE)
def test_a_program_comes_back_from_every_setup(strategy, save_format):
    """Only the lines of the setup change, comments included."""
    here = Setup()
    there = Setup(strategy, strategies.TABLE[strategy].counts[-1], save_format)
    changed = switches.for_setup(TWO, there, "CPU")
    ast.parse(changed)
    assert changed.count("# a comment") == changed.count("# fixed: why") == 1
    assert switches.for_setup(changed, here, "CPU").replace("import numpy as np\n", "") == TWO


@pytest.mark.parametrize("save_format", formats.TABLE)
def test_a_file_that_is_taken_for_a_whole_model_is_that_of_the_format(save_format):
    program = files.program_text("fm27", "broken")
    changed = switches.for_setup(program, Setup("default", 1, save_format), "CPU")
    row = formats.TABLE[save_format]
    (line,) = [each for each in changed.splitlines() if "load_model(" in each]
    assert line == f"loaded = tf.keras.models.load_model({row.path})  # wrong: not a model"
    assert row.saving[0].format(model="model") in changed


def test_the_lines_of_a_gpu(monkeypatch):
    monkeypatch.setattr(runtime, "accelerators", lambda: ["GPU:0"])
    changed = switches.for_setup(TWO, Setup(), "GPU").splitlines()
    assert 'strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])  # a comment' in changed
    assert any(
        line.startswith("tf.config.set_logical_device_configuration(gpu,") for line in changed
    )


def test_a_second_strategy_is_no_switch():
    program = TWO + 'other = tf.distribute.MirroredStrategy(["CPU:0"])\n'
    assert program.splitlines()[-1] in switches.for_setup(program, Setup("default", 1), "CPU")


def test_a_strategy_keeps_the_arguments_that_it_has():
    program = "strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=limit)\n"
    assert switches.for_setup(program, Setup("multi_worker", 2), "CPU") == program
    one = "strategy = tf.distribute.get_strategy()\n"
    assert switches.for_setup(program, Setup("default", 1), "CPU") == one


# One run of a program


def test_the_first_line_that_differs_is_said():
    assert difference("a 1\nb 2", "a 1\nb 3") == "it prints 'b 2', and right is 'b 3'"
    assert difference("", "a 1") == "it prints '', and right is 'a 1'"
    assert difference("a 1\nb 2\nc", "a 1\nb 2").startswith("it prints")


def job(program: str, **options) -> Job:
    return Job(program, Setup("default", 1), **options)


@pytest.mark.slow
def test_what_a_run_says():
    fine, failed, left, unwanted = run_programs(
        [
            job(
                'import tensorflow as tf\nx = tf.Variable(1.0)\nprint("x", 1)', observed=("x", "y")
            ),
            job("def step():\n    raise KeyError('a\\nb')\n\n\nprint(1)\nstep()"),
            job("import os\nos._exit(3)"),
            job("print(1)", reason="it has no meaning"),
        ]
    )
    assert (fine.printed, fine.error, list(fine.observations)) == ("x 1\n", None, ["x"])
    assert judged(fine, "x 1").error is None
    assert isinstance(judged(fine, "x 2").error, checks.SilentFailure)
    assert (failed.printed, failed.line, failed.error.args) == ("1\n", 2, ("a\nb",))
    shown = failed.shown("def step():\n    raise KeyError('a\\nb')  # wrong")
    assert shown == "1\nline 2: raise KeyError('a\\nb')\nKeyError: b\n"
    assert isinstance(left.error, ChildProcessError) and "status 3" in str(left.error)
    assert str(unwanted.error) == "it has no meaning" and unwanted.shown("") == ""


@pytest.mark.slow
@pytest.mark.parametrize("isolated, runs", [(False, 2), (True, 1)])
def test_a_program_that_does_not_end_is_stopped(isolated, runs, monkeypatch):
    """After a second run, unless it is somebody else's."""
    once = mock.Mock(wraps=programs.run_once)
    monkeypatch.setattr(programs, "run_once", once)
    run = run_program(job("import time\ntime.sleep(600)", seconds=1, isolated=isolated))
    assert isinstance(run.error, TimeoutError) and not run.ended
    assert once.call_count == runs


@pytest.mark.slow
def test_a_program_that_waits_by_chance_is_run_again(tmp_path):
    seen = str(tmp_path / "seen")
    text = f"import os, time\nif not os.path.exists({seen!r}):\n    open({seen!r}, 'w')\n    time.sleep(600)\nprint(1)"
    assert run_program(job(text, seconds=3)).printed == "1\n"


@pytest.mark.slow
def test_a_program_that_raises_a_timeout_has_ended():
    run = run_program(job("raise TimeoutError('of its own')"))
    assert str(run.error) == "of its own" and run.ended


@pytest.mark.slow
def test_every_process_of_a_cluster_runs_the_program():
    program = (
        "import json, os\nimport tensorflow as tf\n"
        "strategy = tf.distribute.get_strategy()\n"
        "task = json.loads(os.environ['TF_CONFIG'])['task']['index']\n"
        "if task == 1:\n    raise ValueError(strategy.num_replicas_in_sync)\n"
    )
    run = run_program(Job(program, Setup("multi_worker", 2)))
    assert isinstance(run.error, ValueError) and str(run.error) == "2" and run.line == 6


# All programs


def setups_of(mode: str, subject: str) -> list[Setup]:
    """The page's own setup under both versions of Keras, or two numbers of devices, the versions in turn.

    The fixed program runs on 1 and 4 devices, and the solution on 2 and 8. The notebooks run the rest of the setups of a page,
    and the records hold all verdicts on the fixed program.
    """
    own, declared = own_setup(mode), MODES[mode]
    wanted = [own, own.but(keras=own.other_keras)]
    if {"strategy", "devices"} & set(declared.switches):
        counts = COUNTS[::2] if subject == "fixed" else COUNTS[1::2]
        wanted = [
            own.but(strategy="mirrored", devices=count, keras=keras)
            for count, keras in zip(counts, (2, 3) if subject == "fixed" else (3, 2))
        ]
    possible = [each for each in wanted if not declared.reason_against(each)]
    return possible or [own]


@pytest.mark.slow
@pytest.mark.parametrize("mode", mostly_thorough(MODES, "fm37"))
def test_the_right_programs_are_right_on_several_numbers_of_devices(mode):
    declared = MODES[mode]
    jobs = [
        (Job(files.program_text(mode, subject), setup), right)
        for subject, right in (("fixed", declared.prints), ("solution", declared.exercise_prints))
        for setup in setups_of(mode, subject)
    ]
    runs = run_programs([job for job, _ in jobs])
    wrong = [
        f"{job.setup}: {error}"
        for (job, right), run in zip(jobs, runs)
        if (error := judged(run, right).error)
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("keras", runtime.KERAS_VERSIONS)
@pytest.mark.parametrize("mode, examples", [("fm15", 64), ("fm40", 16)])
def test_a_solution_with_a_step_of_its_own_reports_the_loss_of_all_examples(mode, examples, keras):
    """On one device and on two, whose examples differ: the model returns zeros for the labels 0, 1, 2 and so on."""
    (fit,) = re.findall(r"^model\.fit\(.*\)$", files.program_text(mode, "solution"), re.M)
    labels = f"tf.reshape(tf.range({examples}.0), ({examples}, 1))"
    other = fit.replace(f"tf.ones(({examples}, 1)), batch_size", f"{labels}, batch_size")
    assert other != fit
    text = files.program_text(mode, "solution").replace(fit, f"history = {other}")
    text = f'{text.rpartition("print(")[0]}print(history.history["loss"])\n'
    places = [own_setup(mode).but(devices=count, keras=keras) for count in (1, 2)]
    right = sum(number**2 for number in range(examples)) / examples
    assert [run.printed for run in run_programs([Job(text, each) for each in places])] == [
        f"[{right}]\n"
    ] * 2


# Pasted into a file, and run by Python alone


@pytest.mark.slow
@pytest.mark.parametrize("keras", [3, thorough(2)])
@pytest.mark.parametrize("mode", mostly_thorough(MODES, "fm25"))
def test_a_pasted_program_fails_and_its_repair_is_right(mode, keras, tmp_path):
    """On a machine with one CPU, without this package."""
    setup, declared = own_setup(mode).but(keras=keras), MODES[mode]
    if setup.strategy in ("tpu_traced", "multi_worker") or declared.reason_against(setup):
        pytest.skip("it needs a TPU, several machines, or another Keras")
    for subject in ("broken", "fixed"):
        folder = tmp_path / subject
        folder.mkdir()
        (folder / "program.py").write_text(files.program_text(mode, subject))
        done = run_alone(folder, keras)
        expected = declared.expects(setup) if subject == "broken" else "works"
        assert (done.returncode != 0) == (expected == "raises"), done.stderr[-2000:]
        assert (done.stdout.strip() == declared.prints) == (expected == "works"), done.stdout


def run_alone(folder, keras):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"TF_USE_LEGACY_KERAS": "1" if keras == 2 else "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [sys.executable, "-P", "program.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_programs_are_files_that_a_reader_can_run():
    """They lie where the example of the contributing guide says."""
    assert (ROOT / FM37 / "broken.py").exists()
