import pytest
from strategy_clinic.examiner.runs import workspace
from strategy_clinic.processes.view import NoView


@pytest.fixture
def copied(monkeypatch):
    """On a system that permits no view, as in most containers: the program's folder is copied."""

    def refuse(*_):
        raise NoView("not permitted")

    monkeypatch.setattr(workspace, "View", refuse)
