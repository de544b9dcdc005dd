"""The examiner's rule for fm41: TF_CONFIG that is set after the strategy was made."""

import pytest
from recorded import LINE, OTHER, found, modes, run
from strategy_clinic.examiner.runs.cluster import requested_cluster
from strategy_clinic.observer.events import ClusterDescribed, ClusterStrategyRequested

ALONE = ClusterStrategyRequested(OTHER, "multi_worker")
SET = ClusterDescribed(LINE)


def test_a_strategy_that_does_not_know_its_cluster():
    (finding,) = found(run(ALONE, SET))
    assert (finding.mode, finding.line) == ("fm41", 7)
    assert str(finding.proof).endswith("line 20 makes the strategy, without TF_CONFIG")
    assert requested_cluster(run(ALONE, SET)) == ""  # its processes would be given a cluster


@pytest.mark.parametrize(
    "events",
    [
        [SET, ClusterStrategyRequested(OTHER, "multi_worker", "{}")],
        [ALONE],
        [SET],
        [ALONE, SET, ClusterStrategyRequested(OTHER, "multi_worker", "{}")],
    ],
    ids=["set before", "never set", "no strategy", "made again"],
)
def test_near_misses(events):
    assert modes(run(*events)) == []


def test_a_program_that_is_run_in_a_cluster():
    assert requested_cluster(run(SET, ALONE)) == "multi_worker"
