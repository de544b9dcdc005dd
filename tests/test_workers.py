"""How the answers of several processes become one result; no process is started here."""

import json

import pytest
from strategy_clinic.experiments import workers

FIRST, SECOND = ("worker", 0), ("worker", 1)


class Running:
    def poll(self):
        return None


def answered(folder, task, name=""):
    error = {"name": name, "message": "as it says"} if name else None
    said = [{"error": error, "proof": None, "observations": {}}]
    workers.answer_file(folder, task).write_text(json.dumps(said))


def collected(folder):
    return workers.collect({FIRST: Running(), SECOND: Running()}, 1, folder)[0]


@pytest.fixture(autouse=True)
def in_short(monkeypatch):
    monkeypatch.setattr(workers, "SECONDS", 0.2)
    monkeypatch.setattr(workers, "AFTER_FAILURE", 0.05)


def test_all_answers_count(tmp_path):
    answered(tmp_path, FIRST)
    answered(tmp_path, SECOND, "ValueError")
    assert type(collected(tmp_path).error) is ValueError


@pytest.mark.parametrize("task", [FIRST, SECOND])
def test_nobody_waits_for_what_waits_for_one_that_failed(tmp_path, task):
    answered(tmp_path, task, "ValueError")
    assert type(collected(tmp_path).error) is ValueError


@pytest.mark.parametrize("name", ["", "SilentFailure"])
def test_one_that_has_not_failed_leaves_nobody_waiting(tmp_path, name):
    """So the other hangs by itself, and that is what came of it."""
    answered(tmp_path, FIRST, name)
    with pytest.raises(TimeoutError, match="worker process worker 1"):
        collected(tmp_path)
