"""Checks fm35: what was made after a restore did not get the values that the file has for it."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import Ended


@rule("fm35", explains_divergence=False)
def restored_too_early(recording: Recording) -> Iterator[Finding]:
    ended = recording.last(Ended)
    for early in ended.restored_before_build if ended else ():
        if early.numbers and early.location:
            message = f"restored before it was built: {len(early.numbers)} variables were made later and kept their first values"
            proof = f"{recording.name_of(early.numbers[0])} is in {early.path}"
            yield observed("fm35", recording, early.location, message, proof)
