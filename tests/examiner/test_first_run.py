"""Later runs of a program are forked from a process that has TensorFlow as the first run has imported it: real processes."""

import os
import sys
from dataclasses import replace

import pytest
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs.first_run import is_this_python, replaces_modules
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import Outcome, TensorFlowImported
from strategy_clinic.processes import python_process
from thorough import thorough

NAMES = ("KERAS_MAX_EPOCHS", "TF_ENABLE_ONEDNN_OPTS", "TF_CPP_MIN_LOG_LEVEL", "TMPDIR")
SAYS_ITS_START = f"""\
import os, random, tempfile

os.environ.update(KERAS_MAX_EPOCHS="1", TF_CPP_MIN_LOG_LEVEL="3")
os.environ.pop("OMP_NUM_THREADS")
import tensorflow as tf

print(tf.keras.config.max_epochs(), random.random(), tf.random.normal([]), tempfile.gettempdir())
print([os.environ.get(name) for name in {NAMES}])
"""


@pytest.fixture
def spec(tmp_path):
    """Makes a program of a text."""
    folder = tmp_path / "program"
    folder.mkdir()

    def spec(text):
        (folder / "train.py").write_text(text)
        return ProgramSpec(("train.py",), folder)

    return spec


KERAS = """\
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
from tensorflow.keras import Model
print(Model.__module__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("given", ["by the program", thorough("to the examiner"), "to a kernel"])
def test_a_later_run_has_the_keras_of_the_first(spec, given):
    text = (
        KERAS if given == "by the program" else KERAS.replace("os.environ", "unused = {}; unused")
    )
    server = python_process.fork_server() if given == "to a kernel" else None
    keras = None if given == "by the program" else 2
    with Sandbox(replace(spec(text), keras=keras, fork_server=server)) as sandbox:
        runs = [sandbox.run(role, 1) for role in (Role.WATCHED, Role.REPEATED)]
    assert [run.output.splitlines()[-1] for run in runs] == ["tf_keras.src.engine.training"] * 2


@pytest.mark.slow
def test_a_later_run_has_tensorflow_as_the_program_imports_it(spec, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with Sandbox(spec(SAYS_ITS_START)) as sandbox:
        first, second = (sandbox.run(role, 1) for role in (Role.WATCHED, Role.REPEATED))
    (at,) = first.of(TensorFlowImported)
    assert dict(at.given) == {"KERAS_MAX_EPOCHS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    assert at.deleted == ("OMP_NUM_THREADS",)
    assert not second.of(TensorFlowImported), "it is not forked"
    last = [run.output.splitlines()[-2:] for run in (first, second)]
    assert last[0] == last[1]
    assert last[0][0].startswith("1 ")


def test_a_program_that_imports_none_starts_no_fork_server(spec, monkeypatch):
    begun = []
    monkeypatch.setattr(python_process, "begin_plain_fork_server", begun.append)
    monkeypatch.setattr(python_process, "plain_fork_server", begun.append)
    with Sandbox(spec("print(1)\n")) as sandbox:
        runs = [sandbox.run(role, 1) for role in (Role.WATCHED, Role.REPEATED)]
    assert [run.outcome for run in runs] == [Outcome.FINISHED] * 2
    assert not begun


@pytest.mark.parametrize(
    "file, replaces",
    [
        ("model.py", False),
        ("data/__init__.py", False),
        ("train.py", False),
        ("queue.py", True),  # of the standard library
        ("numpy/__init__.py", True),
        ("keras/notes.txt", False),
    ],
)
def test_a_folder_that_replaces_a_module(spec, file, replaces):
    program = spec("print(1)\n")
    path = program.folder / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert replaces_modules(program) is replaces
    of_module = ProgramSpec(("-m", "train"), program.folder)
    assert replaces_modules(of_module) is replaces


def test_another_environment_is_another_python(tmp_path):
    linked, other = tmp_path / "linked", tmp_path / "other"
    linked.symlink_to(os.path.dirname(sys.executable))
    other.mkdir()
    (other / "python").symlink_to(sys.executable)
    assert is_this_python(str(linked / os.path.basename(sys.executable)))
    assert not is_this_python(str(other / "python"))
