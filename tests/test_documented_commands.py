"""Every command that the documentation shows: run as it is written, or listed with the test that covers it, or with a reason."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import documented
import pytest
from conftest import ROOT
from strategy_clinic.base import files
from thorough import mostly_thorough

# The exit status of each command that is run, and something that it says. `train.py` is the broken program of fm37; where that
# does not matter, of fm01, which fails at once.
FOUND, FAILS = (1, "fm37"), (1, "fm01")
RUN = {
    "clinic triage error.txt": (0, "fm30"),
    "clinic triage < error.txt": (0, "fm30"),
    "clinic triage --json error.txt": (0, '"fm30"'),
    "clinic triage --jsonl < errors.jsonl": (0, '"id": "first"'),
    "clinic atlas atlas.html": (0, ""),
    "clinic handout OUT fm39 fm37 fm25": (0, ""),
    "python3 -m venv .venv": (0, ""),
    "clinic examine train.py": FOUND,
    "clinic examine --devices 1,2,4 train.py --epochs 1": FAILS,
    "clinic examine --restart train.py": FOUND,
    "clinic show train.py": (1, "their sum is 2 times that of one device"),
    "clinic show --html view.html train.py": (1, "wrote view.html"),
    "clinic examine --show view.html train.py": (1, "wrote view.html: the runs part in step 1"),
    "clinic examine --mend train.py": (1, "+    "),
    "clinic run fm16 --strategy tpu_traced": (0, "1 of 1 runs agree"),
    "clinic examine --counts train.py": (1, "counts on 2 devices"),
    "clinic examine --keras 2 train.py": FAILS,
    "clinic examine -m mypackage.train": FAILS,
    "clinic examine train.ipynb": FAILS,
    "clinic examine --json report.json --sarif report.sarif train.py": FAILS,
    "clinic examine --python ../theirs/.venv/bin/python train.py": FAILS,
}
QUICK = list(RUN)[:5]
USUAL = ("clinic handout OUT fm39 fm37 fm25",)
CLUSTER = "test_grid.py::test_a_cluster_loses_nothing_when_a_worker_is_killed"
SAME_AS_STORED = "test_records.py::test_check_of_an_unchanged_mode_finds_nothing"
BENCHMARK = (
    "examiner/test_benchmark.py::test_a_broken_program_is_named_on_its_line_and_a_fixed_one_is_not"
)
ALONE = "test_cells_of_pytest.py::test_the_distribution_runs_cells_without_the_clinic"
FIRST_DIFFERENCE = "test_cells_of_pytest.py::test_where_it_differs_first_is_told_if_it_is_asked_for"
SWEEP_CHECK = "test_sweep.py::test_a_check_prints_news_and_stores_what_it_found"
FIRST_MINUTES = "test_first_minutes.py::test_a_reader_who_is_quicker_than_the_kernel_is_told_to_wait_and_loses_nothing"
GRID = "test_grid.py::test_a_grid_runs_and_is_kept"
# The test that does the same where nothing is changed, or with fewer modes.
TESTED = {
    "clinic grade RETURNED --csv grades.csv": "test_grade.py::test_exercises_are_judged_by_what_they_print",
    "clinic examine --benchmark fm37": BENCHMARK,
    "clinic examine --keras 2,3 --benchmark fm37": BENCHMARK,
    "clinic run fm25 --strategy mirrored --devices 1,2,4 --save-format keras,h5": GRID,
    "papermill notebooks/fm25_load_outside_scope.ipynb out.ipynb -p devices 4": "test_grid.py::test_plain_papermill_runs",
    "pytest --nbval notebooks/fm25_load_outside_scope.ipynb": SAME_AS_STORED,
    "make book": "test_book.py::test_no_link_is_broken",
    "clinic wheel dist": "test_wheel.py::test_what_runs_is_what_was_installed",
    "clinic wheel dist --of OUT/for-participants": "test_wheel.py::test_the_wheel_of_a_handout_has_no_solution",
    "pip install 'strategy-clinic[notebooks,fast] @ file:///tmp/dist/strategy_clinic-0.1.0-py3-none-any.whl'": (
        "test_wheel.py::test_what_runs_is_what_was_installed"
    ),
    ".venv/bin/jupyter lab notebooks": "test_browser.py::test_panel",
    "clinic notebooks my-notebooks --open": FIRST_MINUTES,
    ".venv/bin/jupyter notebook notebooks/00_start_here.ipynb": "test_browser.py::test_panel",
    ".venv/bin/voila notebooks --Voila.ip=127.0.0.1": "test_browser.py::test_panel",
    "python -m strategy_clinic.forkserver.kernelspec": "test_kernels.py::test_set_up_has_installed_the_kernelspec",
    "clinic record fm25 --keras 2,3": SAME_AS_STORED,
    "clinic record --lane": "test_version_records.py::test_versions_are_recorded_once",
    "dask scheduler --host 127.0.0.1": CLUSTER,
    "dask worker tcp://ADDRESS:8786 --nthreads 1 --nworkers 2": CLUSTER,
    "clinic run all --devices 1,2,4 --scheduler tcp://ADDRESS:8786": CLUSTER,
    "clinic check": SAME_AS_STORED,
    "clinic check fm05 fm19 fm37 --keras 2,3 --junit report.xml": SAME_AS_STORED,
    "clinic check --quick": "test_check.py::test_a_quick_check_runs_each_page_once_and_misses_no_other_setup",
    "clinic check fm37 --save records": "test_records.py::test_unrecorded_runtime_is_compared_with_declarations",
    "clinic sweep --jobs 2": "test_sweep.py::test_a_sweep_that_is_stopped_continues_where_it_was",
    "clinic sweep --check --jobs 2": SWEEP_CHECK,
    'clinic sweep --check --only "optimizer/*" --keras 3': SWEEP_CHECK,
    "git clone REPOSITORY strategy-clinic && pip install --no-deps ./strategy-clinic/replica-cells": ALONE,
    "pytest --pyargs replica_cells -m quick": ALONE,
    'pytest --pyargs replica_cells -k "Adam and clipnorm" -rx': ALONE,
    "pytest --pyargs replica_cells -k Dice --runxfail": FIRST_DIFFERENCE,
    "pytest --pyargs replica_cells -k Dice --runxfail --first-difference": FIRST_DIFFERENCE,
    "python tools/score_repairs.py --programs tests/programs/read": "test_score_folder.py::test_a_planted_fault_is_repaired",
    "clinic compile fm24 fm37 --tpu v5e-8,v6e-8": "test_compiler.py::test_training_step_compiles_for_every_tpu",
}
NETWORK, ALL = "it installs from a registry", "it runs all tests or all notebooks"
NOT_RUN = {
    "clinic sweep --generate 30 --seed 1": "test_sweep_generated.py runs programs for seconds",
    "make lab": NETWORK,
    "docker build -t clinic . && docker run --rm -p 127.0.0.1:8888:8888 clinic": NETWORK,
    ".venv/bin/pip install -c requirements.lock -e '.[notebooks]'": NETWORK,
    ".venv/bin/pip install -c requirements.lock notebook voila": NETWORK,
    "pip install -c requirements.lock -e '.[cluster]'": NETWORK,
    "pip install -c requirements.lock -e '.[compile]'": NETWORK,
    ".venv/bin/pre-commit install": "it changes the hooks of the repository",
    "make test": ALL,
    "make quick": ALL,
    "make nightly": ALL,
    "make pages": ALL,
    "make recordings": ALL,
    "make colab": ALL,
    "make lanes": ALL,
    'make lanes LANES="2.19 2.18"': ALL,
    "clinic run all -o runs --jobs 2": ALL,
}


def unaccounted(shown: set[str]) -> list[str]:
    """Returns commands that are shown and not listed, listed and not shown, or listed twice, and tests that do not exist."""
    listed = [*RUN, *TESTED, *NOT_RUN]
    problems = sorted(shown ^ set(listed)) + [
        each for each in set(listed) if listed.count(each) > 1
    ]
    for command, test in TESTED.items():
        file, _, name = test.partition("::")
        if f"def {name}(" not in (ROOT / "tests" / file).read_text():
            problems.append(f"{command}: there is no {test}")
    return problems


def test_every_command_is_accounted_for():
    assert unaccounted(set(documented.all_commands())) == []


def test_a_command_that_nobody_runs_is_noticed(monkeypatch):
    shown = set(documented.all_commands())
    assert unaccounted(shown | {"clinic examine --unheard train.py"})
    assert unaccounted(shown - {"clinic check"})
    monkeypatch.setitem(TESTED, "clinic check", "test_records.py::test_nothing")
    assert unaccounted(shown) == ["clinic check: there is no test_records.py::test_nothing"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("documented") / "work"
    (folder / "mypackage").mkdir(parents=True)
    (folder / "mypackage/__init__.py").write_text("")
    error = "TypeError: Could not locate class 'MyLayer'"
    (folder / "error.txt").write_text(error)
    (folder / "errors.jsonl").write_text(json.dumps({"id": "first", "text": error}) + "\n")
    other = folder.parent / "theirs/.venv/bin/python"
    other.parent.mkdir(parents=True)
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    return folder


def write_program(folder: Path, mode: str) -> None:
    """Writes the broken program of a mode under each name that a command has for a program."""
    program = files.program_text(mode, "broken")
    for path in ("train.py", "mypackage/train.py"):
        (folder / path).write_text(program)
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    cells = [cell | {"source": program}]
    (folder / "train.ipynb").write_text(json.dumps(notebook | {"cells": cells}))


def run(command: str, place: Path) -> subprocess.CompletedProcess:
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    package = {"PYTHONPATH": str(ROOT / "helpers")}
    words = ["bash", "-c", command]
    return subprocess.run(
        words, cwd=place, env=os.environ | path | package, capture_output=True, text=True
    )


def require(command: str, place: Path) -> None:
    status, said = RUN[command]
    write_program(place, "fm01" if RUN[command] == FAILS else "fm37")
    done = run(command, place)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    for name in re.findall(r"--(?:json|sarif|junit) (\S+\.\w+)", command):
        assert (place / name).stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_runs_as_it_is_shown(command, place):
    require(command, place)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", mostly_thorough([each for each in RUN if each not in QUICK], *USUAL)
)
def test_a_command_runs_as_it_is_shown(command, place):
    require(command, place)
