"""Checks fm35: what was made after a restore did not get the values that the file has for it."""

from collections.abc import Iterator

from ...examiner.blame import from_maker
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import blames, observed, reclassify, rule
from ...observer.events import Ended, ExceptionRaised, RestoredBeforeBuild, Stack


@rule("fm35", explains_divergence=False)
def restored_too_early(recording: Recording) -> Iterator[Finding]:
    for early in restored_early(recording):
        message = f"restored before it was built: {len(early.numbers)} variables were made later and kept their first values"
        proof = f"{recording.name_of(early.numbers[0])} is in {early.path}"
        yield observed("fm35", recording, line_of_order(recording, early), message, proof)


def restored_early(recording: Recording) -> list[RestoredBeforeBuild]:
    ended = recording.last(Ended)
    found = ended.restored_before_build if ended else ()
    return [early for early in found if early.numbers and early.location]


@reclassify("fm06", "fm35")
def where_variables_are_made(
    recording: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str:
    """Tells a value that goes to a variable of another shape long after its restore from a model of another shape."""
    early = restored_early(recording)
    return "fm35" if early and early[0].location[0] not in stack else mode


@blames("fm35")
def restore_of_it(recording: Recording, stack: Stack) -> Stack:
    early = restored_early(recording)
    return (*line_of_order(recording, early[0])[:1], *stack) if early else stack


def line_of_order(recording: Recording, early: RestoredBeforeBuild) -> Stack:
    return order_of(early.location, recording.location_of(early.numbers[0]))


def order_of(restored_at: Stack, made_at: Stack) -> Stack:
    """Returns the line of a function that first restores and then makes the variables; a constructor cannot come later."""
    decided = from_maker(restored_at, made_at)
    passed = restored_at[: len(restored_at) - len(decided)]
    return restored_at if any(frame.function == "__init__" for frame in passed) else decided
