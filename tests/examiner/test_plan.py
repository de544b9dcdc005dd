"""What an examination makes of its recordings: which processes a program asks for, and which failures are its own."""

import pytest
from recorded import LINE, run, strategy
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs import cluster, plan
from strategy_clinic.observer.events import ClusterStrategyRequested, ExceptionRaised, Outcome


@pytest.mark.parametrize(
    "event, asked",
    [
        (ClusterStrategyRequested(LINE, "parameter_server"), "parameter_server"),
        (ExceptionRaised(LINE, "KeyError", "KeyError: 'TF_CONFIG'", ()), "multi_worker"),
        (ExceptionRaised(LINE, "KeyError", "KeyError: 'other'", ()), ""),
        (strategy(), ""),
    ],
)
def test_which_processes_a_program_asks_for(event, asked):
    assert cluster.requested_cluster(run(event)) == asked


REFUSES = ExceptionRaised(LINE, "AssertionError", "AssertionError: 2 GPUs", ())


def test_a_program_that_refuses_fewer_devices_has_not_failed():
    refused = run(REFUSES, devices=1, role=Role.COMPARED, outcome=Outcome.RAISED, status=1)
    assert plan.failed_run([run(), refused]) is None
    assert plan.uncompared([run(), refused]) == [
        "on 1 device it raised with status 1: AssertionError: 2 GPUs, so it was not compared there"
    ]


def test_a_program_that_fails_on_all_devices_has_failed():
    failed = run(REFUSES, devices=1, outcome=Outcome.RAISED, status=1)
    assert plan.failed_run([run(), failed]) is failed
    assert plan.ending(failed) == "raised with status 1: AssertionError: 2 GPUs"
    assert plan.uncompared([run(), failed]) == []
