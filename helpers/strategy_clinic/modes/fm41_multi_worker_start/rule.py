"""Checks fm41: TF_CONFIG is set after the strategy was made, which so has one worker."""

from ...examiner.recording import Recording
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import ClusterDescribed, ClusterStrategyRequested

MESSAGE = "the strategy was made before TF_CONFIG is set here: each process trains alone, as the only worker"


@rule("fm41", finds_own_program=False)
def described_too_late(run: Recording) -> Steps:
    for request in run.of(ClusterStrategyRequested)[-1:]:
        for described in [] if request.config else run.of(ClusterDescribed, after=request)[:1]:
            made_at = line_of(request.location, "a line"), " makes the strategy, without TF_CONFIG"
            fix = "set TF_CONFIG before the strategy is made"
            yield observed("fm41", run, described.location, MESSAGE, *made_at, fix=fix)
