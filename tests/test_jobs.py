"""One run of a notebook: how it is reached, how it ends, and that nothing of it is left. Kernels are real."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from kernels import end_servers, gone, kernel, process_of, said
from nbformat.v4 import new_code_cell, new_notebook
from strategy_clinic.forkserver import temp_files
from strategy_clinic.processes import notebook_job, pool, python_process
from strategy_clinic.rendering import sources

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only"),
]
AUTOGRAPH = """
import glob, os, tempfile
import tensorflow as tf

@tf.function
def step(x):
    return x + 1

step(1)
print(len(glob.glob(os.path.join(tempfile.gettempdir(), "__autograph_generated_file*"))))
"""


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """Where this test's processes put their temporary files; the fork server is everybody's."""
    monkeypatch.setenv(
        "XDG_RUNTIME_DIR", os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def run(*cells: str) -> dict:
    notebook = new_notebook(cells=[new_code_cell(text) for text in cells], metadata=sources.KERNEL)
    return notebook_job.run_notebook(nbformat.writes(notebook), {}, 60)


def printed(ended: dict) -> list[str]:
    cells = nbformat.reads(ended["notebook"], as_version=4).cells
    outputs = [
        each for cell in cells for each in cell.get("outputs", []) if each.output_type == "stream"
    ]
    return [each.text.strip() for each in outputs]


def test_the_start_of_the_fork_server_is_not_the_run_s_own_time(monkeypatch):
    """It takes an hour here, by a clock that is put forward; a run has a minute."""
    start, monotonic, hours = python_process.fork_server, time.monotonic, []

    def slow(environment):
        hours.append(3600)
        return start(environment)

    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(hours))
    monkeypatch.setattr(python_process, "fork_server", slow)
    assert run("print(1)")["end"] == "finished" and hours


def test_a_run_needs_no_port():
    """A port that was free when it was chosen may be taken when the kernel wants it; then the kernel dies."""
    asked = "from ipykernel.connect import get_connection_info; print(get_connection_info(unpack=True)['transport'])"
    ended = run(asked)
    assert (ended["end"], printed(ended)) == ("finished", ["ipc"])


@pytest.mark.parametrize("death", ["os.kill(os.getpid(), 9)", "os._exit(3)", "1 / 0", ""])
def test_nothing_is_left_of_a_run_however_it_ends(own_folder, death):
    ended = run(AUTOGRAPH, f"tempfile.mkdtemp()\n{death}")
    assert printed(ended) == ["1"], ended["failure"]
    assert list(own_folder.iterdir()) == []


def test_nothing_is_left_of_a_run_that_is_stopped(own_folder):
    """As Ctrl-C does: the process that holds the run is killed, and its kernel with it."""
    wait = (
        f"import os, signal; os.kill({os.getpid()}, signal.SIGUSR1); import time; time.sleep(600)"
    )
    before = signal.signal(signal.SIGUSR1, lambda *_: [each.kill() for each in pool.RUNNING])
    try:
        assert run(AUTOGRAPH, wait)["end"] == "crashes"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert list(own_folder.iterdir()) == [] and not pool.RUNNING


def test_a_killed_kernel_leaves_nothing_of_autograph_and_all_that_is_somebodys_own(tmp_path):
    with kernel(env=os.environ | {"TMPDIR": str(tmp_path)}) as (manager, client):
        assert said(client, AUTOGRAPH) == "1"
        said(client, "open(os.path.join(tempfile.gettempdir(), 'mine'), 'w').close()")
        pid = process_of(client).pid
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
        manager.provisioner.process.wait(10)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine"]


def test_what_a_killed_fork_server_leaves_is_deleted_by_the_next(own_folder):
    dead = subprocess.Popen(["true"])
    dead.wait()
    for pid, name in [(dead.pid, "__autograph_generated_file1.py"), (os.getpid(), "mine")]:
        folder = own_folder / f"{temp_files.PREFIX}{pid}-x"
        (folder / "__pycache__").mkdir(parents=True)
        (folder / name).touch()
        (folder / "__pycache__" / f"{name}c").touch()
    temp_files.delete_folders_of_dead_servers()
    assert [path.name for path in own_folder.iterdir()] == [f"{temp_files.PREFIX}{os.getpid()}-x"]


def test_a_linked_environment_has_one_fork_server(tmp_path, short_folder):
    """A clone whose .venv leads to another clone's: two ways to the same interpreter."""
    clone = tmp_path / "clone"
    for name in ("helpers", "notebooks"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", clone)
    (clone / ".venv").symlink_to(sys.prefix)
    short = nbformat.read(clone / "notebooks" / "fm16_tpu_eager_run.ipynb", as_version=4)
    short.cells = short.cells[:3]
    nbformat.write(short, clone / "fm16.ipynb")
    python = clone / ".venv" / "bin" / Path(sys.executable).name
    subprocess.run(
        [python, "-m", "strategy_clinic", "run", "fm16.ipynb", "-o", "out"],
        cwd=clone,
        capture_output=True,
    )
    assert (clone / "out" / "verdicts.jsonl").exists()
    found = list(short_folder.glob("*/*.sock"))
    end_servers(short_folder)
    assert len(found) == 1
