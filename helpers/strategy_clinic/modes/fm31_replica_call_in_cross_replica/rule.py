"""Checks fm31: a training that no replica runs. Blames the frames from the function on that made the strategy."""

import re

from ...examiner.blame import computes_gradient, from_first, from_maker
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, line_of, observed, reclassify, rule
from ...observer.events import (
    ExceptionRaised,
    GradientsApplied,
    Stack,
    StrategyMade,
)

NO_ATTRIBUTE = re.compile(r"'NoneType' object has no attribute '(\w+)'")
ATTRIBUTES = "merge_call", "all_reduce", "all_gather", "replica_id_in_sync_group"


@rule("fm31")
def no_replica_trains(recording: Recording) -> Steps:
    """Checks whether a step that runs on none of the replicas trains variables with a copy on each device."""
    updates = recording.of(GradientsApplied) if recording.trains_alone else []
    for update in [each for each in updates if each.location][:1]:
        yield observed(
            "fm31",
            recording,
            outside_of_step(update.location) or update.location,
            f"no replica runs the step: the weights are on {recording.replicas} devices, and one of these trains",
            "the model was only called outside of `strategy.run`; ",
            line_of(update.location, "an optimizer"),
            " trains it",
        )


@blames("fm31")
def scope_opened(recording: Recording, stack: Stack) -> Stack:
    """Returns the frames from the call of a step on, or else from the function on that made the strategy."""
    strategy = recording.last(StrategyMade)
    made = from_maker(stack, strategy.location) if strategy else stack
    return outside_of_step(stack) or made


def outside_of_step(stack: Stack) -> Stack:
    """Returns the frames from the call on of a function that computes gradients; nothing if none does."""
    return from_first(stack, computes_gradient)[1:]


@reclassify("fm31")
def unless_of_another_object(
    run: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str | None:
    """Many things are None; only a replica context that is None has no such attribute. Triage knows cut-off names, too."""
    named = NO_ATTRIBUTE.findall(raised.traceback)
    return mode if not named or named[-1] in ATTRIBUTES else None
