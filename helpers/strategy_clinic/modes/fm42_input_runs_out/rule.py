"""Checks fm42: the data ended before Keras had made the steps that it was asked for."""

from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import DataRanOut, EpochsLeftOut


@rule("fm42", explains_divergence=False)
def ran_out(recording: Recording) -> Steps:
    for event in [each for each in recording.of(DataRanOut) if each.steps][:1]:
        if event.location:
            message = f"the data end before the {event.steps} steps that an epoch is to have"
            proof = "Keras says `Your input ran out of data; interrupting training`"
            yield observed("fm42", recording, event.location, message, proof)


@rule("fm42", explains_divergence=False)
def epoch_without_steps(recording: Recording) -> Steps:
    for left in [each for each in recording.of(EpochsLeftOut) if not each.of_backup][:1]:
        if left.location and not any(e.steps or e.generator for e in recording.of(DataRanOut)):
            message = f"{left.asked - left.made} of {left.asked} epochs make no step: the data have ended before"
            yield observed(
                "fm42", recording, left.location, message, "fit went on without a message"
            )
