"""Checks fm69: a later `fit` begins with the epoch of a backup that an earlier one has restored."""

from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import EpochsLeftOut


@rule("fm69", explains_divergence=False, after_end=True)
def epochs_skipped(recording: Recording) -> Steps:
    for left in [each for each in recording.of(EpochsLeftOut) if each.of_backup][:1]:
        if left.location:
            message = f"fit makes {left.made} of {left.asked} epochs: Keras 3 begins with epoch {left.first} of the backup again"
            proof = "no callback has stopped it, and this call restores no backup"
            yield observed("fm69", recording, left.location, message, proof)
