"""Checks fm35: what was made after a restore did not get the values that the file has for it."""

from collections.abc import Iterator

from ...examiner.blame import from_maker
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import Ended, Stack


@rule("fm35", explains_divergence=False)
def restored_too_early(recording: Recording) -> Iterator[Finding]:
    ended = recording.last(Ended)
    for early in ended.restored_before_build if ended else ():
        if early.numbers and early.location:
            message = f"restored before it was built: {len(early.numbers)} variables were made later and kept their first values"
            proof = f"{recording.name_of(early.numbers[0])} is in {early.path}"
            made_at = recording.location_of(early.numbers[0])
            yield observed("fm35", recording, order_of(early.location, made_at), message, proof)


def order_of(restored_at: Stack, made_at: Stack) -> Stack:
    """Returns the line of a function that first restores and then makes the variables; a constructor cannot come later."""
    decided = from_maker(restored_at, made_at)
    passed = restored_at[: len(restored_at) - len(decided)]
    return restored_at if any(frame.function == "__init__" for frame in passed) else decided
