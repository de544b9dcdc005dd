"""How the answers of several processes become one run; no process is started here."""

import json

import pytest
from strategy_clinic.processes import cluster
from strategy_clinic.programs import run

FIRST, SECOND = ("worker", 0), ("worker", 1)


class Running:
    def poll(self):
        return None


def answered(folder, task, name="", printed="1"):
    error = {"name": name, "message": "as it says", "line": 3} if name else None
    said = {"error": error, "printed": printed, "observations": {}, "network": "", "files": ""}
    cluster.answer_file(folder, task).write_text(json.dumps(said))


def collected(folder):
    processes = {FIRST: Running(), SECOND: Running()}
    return run.merged(cluster.collect(processes, folder, run.has_failed, 0.2))


@pytest.fixture(autouse=True)
def in_short(monkeypatch):
    monkeypatch.setattr(cluster, "AFTER_FAILURE", 0.05)


def test_all_answers_count(tmp_path):
    answered(tmp_path, FIRST)
    answered(tmp_path, SECOND, "ValueError")
    assert type(collected(tmp_path).error) is ValueError


@pytest.mark.parametrize("task", [FIRST, SECOND])
def test_nobody_waits_for_what_waits_for_one_that_failed(tmp_path, task):
    answered(tmp_path, task, "ValueError")
    assert type(collected(tmp_path).error) is ValueError


def test_one_that_has_not_failed_leaves_nobody_waiting(tmp_path):
    """So the other hangs by itself, and that is what came of it."""
    answered(tmp_path, FIRST)
    with pytest.raises(TimeoutError, match="worker process worker 1"):
        collected(tmp_path)
