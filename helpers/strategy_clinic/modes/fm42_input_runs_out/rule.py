"""Checks fm42: the data ended before Keras had made the steps that it was asked for."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import DataRanOut


@rule("fm42", explains_divergence=False)
def ran_out(recording: Recording) -> Iterator[Finding]:
    for event in [each for each in recording.of(DataRanOut) if each.steps][:1]:
        if event.location:
            message = f"the data end before the {event.steps} steps that an epoch is to have"
            proof = "Keras says `Your input ran out of data; interrupting training`"
            yield observed("fm42", recording, event.location, message, proof)
