"""The tables below the panel, without a browser and without runs: a stand-in says what it is asked for."""

import re
import time

import pytest
from strategy_clinic import Setup
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.frontends.page_tables import tables_of
from strategy_clinic.panel import live_steps
from strategy_clinic.panel.live_steps import SERVERS, LiveSteps
from strategy_clinic.setups import strategies
from test_inside import A, B, seen, tables


def of_three_steps(part=2):
    """Tables of three steps, in one of which a gradient differs."""
    several, one = [], []
    for step in (1, 2, 3):
        several += seen("gradient", A, A, step=step, name="<b>kernel</b>")
        one += seen("gradient", B if step == part else 2 * A, step=step, name="<b>kernel</b>")
    return tables(several, one)


class Asked:
    """Stands for the runs."""

    def __init__(self):
        self.setup, self.jobs, self.error, self.seconds = Setup(), [], None, 0.0

    def look(self, subject, setup):
        self.jobs.append((subject, setup))
        time.sleep(self.seconds)
        if self.error:
            raise self.error
        return of_three_steps()


@pytest.fixture
def asked():
    return Asked()


@pytest.fixture
def live(asked):
    return LiveSteps(["broken", "fixed"], lambda: asked.setup, asked.look)


def test_nothing_runs_before_a_reader_asks(asked, live):
    live.follow()
    live.subject.value = "fixed"
    assert asked.jobs == [] and live.shown.value == ""


def test_it_shows_the_step_in_which_the_runs_part_and_then_the_chosen_one(asked, live):
    live.switch.value = True
    assert live.step.value == 2 and live.step.max == 3
    assert "step 2</caption>" in live.shown.value and "their sum differs" in live.shown.value
    live.step.value = 3
    assert "step 3</caption>" in live.shown.value and "class='differs'" not in live.shown.value
    assert len(asked.jobs) == 1, "another step runs nothing"


def test_it_follows_the_setup_and_the_program_and_runs_each_once(asked, live):
    live.switch.value = True
    asked.setup = Setup("mirrored", 4)
    live.follow()
    live.subject.value = "fixed"
    live.subject.value = "broken"
    assert [(name, setup.devices) for name, setup in asked.jobs] == [
        ("broken", 2),
        ("broken", 4),
        ("fixed", 4),
    ]


def test_it_says_the_measured_time_and_shows_progress_meanwhile(asked, live, monkeypatch):
    monkeypatch.setattr(live_steps, "BETWEEN_SIGNS", 0.01)
    values, words = [], []
    live.progress.observe(lambda change: values.append(change["new"]), "value")
    live.status.observe(lambda change: words.append(change["new"]), "value")
    asked.seconds = 0.3
    live.switch.value = True
    assert values == sorted(values) and len(values) > 3 and values[-1] < 1
    assert "Running on several devices" in words[1]
    assert re.search(r"took \d+\.\d seconds", words[-1])
    assert live.progress.layout.display == "none"


def test_where_it_cannot_follow_one_sentence_says_so(asked, live):
    asked.setup = Setup("parameter_server", 2)
    live.switch.value = True
    assert SERVERS.format("parameter_server") in live.status.value
    assert asked.jobs == [] and live.shown.value == ""


@pytest.mark.parametrize("strategy", sorted(strategies.TABLE.keys() - {"parameter_server"}))
def test_it_follows_every_other_strategy(asked, live, strategy):
    asked.setup = Setup(strategy, strategies.TABLE[strategy].counts[-1])
    live.switch.value = True
    assert len(asked.jobs) == 1 and "step 2</caption>" in live.shown.value


@pytest.mark.slow
@pytest.mark.parametrize("part, stage", [("broken", "loss"), ("fixed", None)])
def test_the_workers_of_a_page_have_a_column_each(part, stage):
    """Real processes, with the lines that the panel has chosen."""
    known = {}

    def look(name, setup):
        known[name] = tables_of(files.program_text("fm37", name), setup)
        return known[name]

    live = LiveSteps([part], lambda: Setup("multi_worker", 2), look)
    live.switch.value = True
    (shown,) = known.values()
    assert (shown.first[1].stage.key if shown.first else None) == stage, shown.headline
    assert "<th scope='col'>replica 1, worker 1</th>" in live.shown.value
    assert shown.ends == () and live.status.value.count("seconds") == 1


def test_a_program_that_cannot_run_gives_its_reason(asked, live):
    asked.error = UserError("this machine has no TPU")
    live.switch.value = True
    assert "this machine has no TPU" in live.status.value and live.shown.value == ""
    asked.error = None
    live.follow()
    assert "step 2</caption>" in live.shown.value


def test_names_are_escaped(live):
    live.switch.value = True
    assert "&lt;b&gt;kernel" in live.shown.value and "<b>kernel" not in live.shown.value


def test_switched_off_it_shows_nothing(live):
    live.switch.value = True
    live.switch.value = False
    assert live.shown.value == ""
