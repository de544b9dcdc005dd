"""The examiner's rule for fm19: a mean over replicas that had different numbers of examples."""

from dataclasses import replace

import pytest
from recorded import LINE, answering, found, modes, run
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import ShowMeans
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import BatchTaken, ExceptionRaised, MeanReduced, Outcome


def mean(sizes, values):
    return MeanReduced(LINE, tuple(sizes), tuple(values))


@pytest.mark.parametrize("sizes, values", [([3, 1], [1.0, 5.0]), ([4, 0], [2.0, float("nan")])])
def test_a_mean_of_means(sizes, values):
    (finding,) = found(run(mean(sizes, values)))
    assert (finding.mode, finding.line) == ("fm19", 7)
    assert "had {} and {} examples".format(*sizes) in str(finding.message)
    assert str(finding.proof).endswith(" and 2 if every example counts the same")


def test_means_on_one_line_are_one_finding():
    assert modes(run(mean([3, 1], [1.0, 5.0]), mean([3, 1], [1.0, 9.0]))) == [("fm19", 7)]


def test_a_mean_on_no_line_of_the_program():
    assert modes(run(MeanReduced((), (3, 1), (1.0, 5.0)))) == []


def test_a_mean_that_is_right_all_the_same():
    assert modes(run(mean([3, 1], [2.0, 2.0]))) == []


EVEN, UNEVEN = BatchTaken(LINE, (4, 4)), BatchTaken(LINE, (3, 1))
HIDDEN = mean([], [])


def test_a_mean_of_means_in_a_graph_is_asked_for():
    first, again = run(HIDDEN, EVEN, UNEVEN), answering(ShowMeans=run(mean([3, 1], [1.0, 5.0])))
    assert modes(first) == []
    assert [finding.mode for finding in diagnose(Runs([first]), again).findings] == ["fm19"]
    assert again.asked == [ShowMeans()]


@pytest.mark.parametrize("events", [[HIDDEN, EVEN], [UNEVEN]], ids=["even batches", "no mean"])
def test_nothing_is_asked_where_all_count_the_same(events):
    again = answering()
    assert (diagnose(Runs([run(*events)]), again).findings, again.asked) == ([], [])


BY_OPTIMIZER = """ValueError: in user code:
    File "/program/train.py", line 9, in train
        return strategy.reduce("SUM", strategy.run(step), axis=None)
    File "/lib/keras/src/optimizers/sgd.py", line 123, in update_step
        self.assign_sub(variable, gradient)
ValueError: Dimension 0 in both shapes must be equal, but are 3 and 4 for '{{node AssignSubVariableOp}}'"""


def test_an_update_of_another_shape_is_not_a_partial_batch():
    raised = ExceptionRaised(LINE, "ValueError", BY_OPTIMIZER, ())
    assert modes(run(raised, outcome=Outcome.RAISED)) == []
    other = BY_OPTIMIZER.replace("/optimizers/", "/layers/")
    assert modes(run(replace(raised, traceback=other), outcome=Outcome.RAISED)) == [("fm19", 7)]
