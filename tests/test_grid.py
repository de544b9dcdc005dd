"""Grids of runs: what is written, what is not run again, and what happens when a run or the whole command dies.

Kernels and processes are real; nothing is mocked.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import nbformat
import papermill
import pytest
from conftest import FAILS_OTHERWISE, ROOT, changed, shortened
from papermill.exceptions import PapermillExecutionError
from strategy_clinic import cli
from strategy_clinic.base import display
from strategy_clinic.processes import notebook_job, pool

pytestmark = pytest.mark.slow

FM01 = ROOT / "notebooks" / "fm01_host_read_in_replica.ipynb"
FM25 = ROOT / "notebooks" / "fm25_load_outside_scope.ipynb"


def short(tmp_path: Path, page: Path = FM01, **before) -> Path:
    """The notebook as far as its fix; `before` puts a line in front of a program: broken, fixed."""
    notebook, cells = nbformat.read(page, as_version=4), []
    for cell in notebook.cells:
        step = next((step for step in before if step in cell.metadata.get("tags", [])), "")
        cells += [nbformat.v4.new_code_cell(before[step])] if step else []
        cells.append(cell)
        if "fixed" in cell.metadata.get("tags", []):
            break
    notebook.cells = cells
    path = tmp_path / page.name
    nbformat.write(notebook, path)
    return path


def quick_fm25(tmp_path: Path) -> Path:
    nbformat.write(shortened(nbformat.read(FM25, as_version=4)), tmp_path / FM25.name)
    return tmp_path / FM25.name


def run(*arguments) -> int:
    return cli.main(["run", *map(str, arguments)])


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]


def test_a_grid_runs_and_is_kept(tmp_path, capsys):
    grid = ["--strategy", "mirrored", "--devices", "1,2", "--save-format", "h5"]
    path, out = quick_fm25(tmp_path), tmp_path / "out"
    assert run(path, *grid, "-o", out) == 0
    kept = lines(out)
    assert [(line["devices"], line["broken"], line["fixed"], line["agrees"]) for line in kept] == [
        (1, "works", "works", True),
        (2, "wrong", "works", True),
    ]
    assert {line["evidence"] for line in kept} == {"executed"}
    assert all((out / line["notebook"]).exists() for line in kept)
    assert not list(out.glob("*.part*"))
    said = capsys.readouterr().out
    assert "[2/2] fm25 mirrored x2, saved as h5, Keras 3: broken wrong, fixed works" in said


MEET = "import pathlib, time; here = pathlib.Path({folder!r}); (here / str(devices)).touch()"
MEET += "\nwhile len(list(here.iterdir())) < 2: time.sleep(0.05)"


def test_two_jobs_run_at_once(tmp_path):
    """Each run waits until the other has begun; one after the other, both would hang."""
    (tmp_path / "begun").mkdir()
    path = short(tmp_path, broken=MEET.format(folder=str(tmp_path / "begun")))
    grid = ["--devices", "1,2", "--limit", "120", "-o", tmp_path / "out"]
    assert run(path, *grid, "--jobs", "2") == 0
    assert len(lines(tmp_path / "out")) == 2


def test_a_run_that_disagrees_is_status_1(tmp_path, capsys):
    path = changed(short(tmp_path), *FAILS_OTHERWISE)
    assert run(path, "-o", tmp_path / "out") == 1
    (line,) = lines(tmp_path / "out")
    assert line["agrees"] is False and "disagrees with its run at" in line["says"]
    assert "DISAGREES" in capsys.readouterr().out


def test_a_run_without_its_proof_does_not_agree(tmp_path, capsys):
    path = changed(short(tmp_path), '"%%program fixed\\n', '"%%program exercise\\n')
    assert run(path, "-o", tmp_path / "out") == 1
    assert "NOT WHOLE" in capsys.readouterr().out


DEATHS = [
    ({"broken": "import os; os._exit(3)"}, ("crashes", "not reached")),
    ({"broken": "import time; time.sleep(600)"}, ("hangs", "not reached")),
    ({"fixed": "import os; os.abort()"}, ("raises", "crashes")),
    ({"fixed": "import time; time.sleep(600)"}, ("raises", "hangs")),
]


def test_crashes_and_hangs_are_outcomes(tmp_path):
    """In one grid, so that those that hang are waited for together."""
    paths = []
    for number, (before, _) in enumerate([*DEATHS, ({}, ())]):
        (tmp_path / str(number)).mkdir()
        paths.append(short(tmp_path / str(number), **before))
    out = tmp_path / "out"
    assert run(*paths, "--devices", "1", "--limit", "10", "--jobs", "3", "-o", out) == 1
    found = [(line["broken"], line["fixed"], line["agrees"]) for line in lines(out)]
    dead = [(*outcomes, False) for _, outcomes in DEATHS]
    assert sorted(found) == sorted([*dead, ("raises", "works", True)])
    assert not pool.RUNNING


# A command that is stopped


def command(path: Path, out: Path) -> list[str]:
    grid = ["--strategy", "mirrored,default", "--devices", "1,2,4", "-o", str(out)]
    return [sys.executable, "-m", "strategy_clinic", "run", str(path), *grid]


@contextlib.contextmanager
def started(path: Path, out: Path, wanted: int):
    """The command, once it has finished so many runs."""
    process = subprocess.Popen(
        command(path, out),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C, and what they start as well.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (out / "verdicts.jsonl").exists() or len(lines(out)) < wanted:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    yield process
    process.communicate()


@pytest.mark.thorough
def test_a_killed_command_is_taken_up_where_it_stopped(tmp_path):
    path, out = short(tmp_path, fixed="import time; time.sleep(1)"), tmp_path / "out"
    with started(path, out, 2) as process:
        process.kill()
    first = lines(out)
    done = subprocess.run(command(path, out), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{len(first)} of 4 runs were finished before" in done.stdout
    assert lines(out)[: len(first)] == first and len(lines(out)) == 4
    assert len({tuple(line[name] for name in ("strategy", "devices")) for line in lines(out)}) == 4
    assert {path.suffix for path in out.iterdir()} == {".ipynb", ".jsonl"}


def test_finished_runs_are_repeated_if_changed_or_asked(tmp_path, capsys):
    path, out = short(tmp_path), tmp_path / "out"
    for again, told in [
        ((), ""),
        ((), "1 of 1 runs were finished before"),
        (("--again",), "[1/1]"),
    ]:
        assert run(path, "-o", out, *again) == 0
        assert told in capsys.readouterr().out
    changed(path, "# FM01. ", "# FM01: ")
    assert run(path, "-o", out) == 0
    assert "finished before" not in capsys.readouterr().out
    assert len(lines(out)) == 3


def test_a_line_cut_off_by_a_crash_costs_only_itself(tmp_path, capsys):
    path, out = short(tmp_path), tmp_path / "out"
    assert run(path, "-o", out, "--devices", "1,2") == 0
    whole = (out / "verdicts.jsonl").read_text()
    (out / "verdicts.jsonl").write_text(whole[:-40])
    assert run(path, "-o", out, "--devices", "1,2") == 0
    assert "1 of 2 runs were finished before" in capsys.readouterr().out
    assert (out / "verdicts.jsonl").read_text() == f"{whole[:-40]}\n{whole.splitlines()[1]}\n"


def test_ctrl_c_keeps_finished_runs_and_ends_the_rest(tmp_path):
    path, out = (
        short(tmp_path, fixed="import time; time.sleep(devices ** 4)"),
        tmp_path / "out",
    )
    with started(path, out, 1) as process:
        process.send_signal(signal.SIGINT)
        # The run with four devices alone would sleep for four minutes.
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "Traceback" not in said
    assert "finished results are stored" in said and lines(out)
    assert {path.suffix for path in out.iterdir()} == {".ipynb", ".jsonl"}


# A cluster


@pytest.fixture
def scheduler(tmp_path):
    """A real scheduler and two worker processes on loopback; gives its address and the workers."""
    with contextlib.ExitStack() as stack:
        file = tmp_path / "scheduler.json"
        local = ["--host", "127.0.0.1", "--no-dashboard"]

        def begin(tool, *arguments):
            log = stack.enter_context(open(tmp_path / "dask.log", "a"))
            line = [sys.executable, "-m", f"distributed.cli.dask_{tool}", *arguments, *local]
            process = subprocess.Popen(line, stdout=log, stderr=log, cwd=tmp_path)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        begin("scheduler", "--port", "0", "--scheduler-file", str(file))
        alone = ["--nthreads", "1", "--no-nanny", "--scheduler-file", str(file)]
        workers = [begin("worker", *alone) for _ in range(2)]
        deadline = time.monotonic() + 60
        while not file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"], workers


@pytest.mark.thorough
def test_a_cluster_loses_nothing_when_a_worker_is_killed(tmp_path, scheduler):
    address, workers = scheduler
    path, out = short(tmp_path, fixed="import time; time.sleep(1)"), tmp_path / "out"
    process = subprocess.Popen(
        [*command(path, out), "--scheduler", address],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while "[1/4]" not in process.stdout.readline():
        assert process.poll() is None
    workers[0].kill()
    said = process.communicate(timeout=180)[0]
    assert process.returncode == 0, said
    assert len(lines(out)) == 4 and all(line["agrees"] for line in lines(out))


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("strategy_clinic.records.grid.CONNECTING", 2)
    assert run("fm01", "--scheduler", "tcp://127.0.0.1:9", "-o", tmp_path / "out") == 2
    assert run("fm01", "--scheduler", "nonsense://", "-o", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 2 and said.count("No dask scheduler answers at") == 2


# papermill itself


def run_papermill(tmp_path: Path, **parameters):
    return papermill.execute_notebook(
        short(tmp_path, FM25),
        tmp_path / "out.ipynb",
        parameters,
        **notebook_job.papermill_options(tmp_path),
    )


def test_plain_papermill_runs(tmp_path):
    executed = run_papermill(tmp_path, devices=4, save_format="h5")
    steps = {report["step"]: report for report in display.reported(executed) if "step" in report}
    assert steps["setup"]["parameters"] == {
        "strategy": "mirrored",
        "devices": 4,
        "save_format": "h5",
        "keras": 3,
    }
    assert steps["broken"]["verdict"]["outcome"] == "wrong"


@pytest.mark.parametrize(
    "parameters, expected",
    [
        ({"strategy": "mirorred"}, "Did you mean 'mirrored'?"),
        ({"devcies": 4}, "parameter name = 'devcies' is not known here"),
        ({"epochs": 4}, "parameter name = 'epochs' is not known here"),
        ({"keras": 4}, "valid: 2, 3"),
        ({"devices": "two"}, "'two'"),
    ],
)
def test_plain_papermill_fails_when_it_should(tmp_path, parameters, expected):
    with pytest.raises(PapermillExecutionError) as failed:
        run_papermill(tmp_path, **parameters)
    assert expected in str(failed.value.evalue)
