"""Blames, for fm31, the frames from the function on that made the strategy; tells a replica context that is None from others."""

import re

from ...examiner.blame import computes_gradient, from_maker
from ...examiner.recording import Recording
from ...examiner.rule import blames, reclassify
from ...observer.events import ExceptionRaised, Stack, StrategyMade

NO_ATTRIBUTE = re.compile(r"'NoneType' object has no attribute '(\w+)'")
ATTRIBUTES = "merge_call", "all_reduce", "all_gather", "replica_id_in_sync_group"


@blames("fm31")
def scope_opened(recording: Recording, stack: Stack) -> Stack:
    """Returns the frames from the call of a step on, or else from the function on that made the strategy."""
    for i, frame in enumerate(stack[:-1]):
        if computes_gradient(frame):
            return stack[i + 1 :]
    strategy = recording.last(StrategyMade)
    return from_maker(stack, strategy.location) if strategy else stack


@reclassify("fm31")
def unless_of_another_object(
    run: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str | None:
    """Many things are None; only a replica context that is None has no such attribute. Triage knows cut-off names, too."""
    named = NO_ATTRIBUTE.findall(raised.traceback)
    return mode if not named or named[-1] in ATTRIBUTES else None
