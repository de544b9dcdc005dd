"""Checks fm57: `keras.distribution` was set for several devices, and TensorFlow has created the model on one."""

from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import KerasDistributionSet, Owner, VariableMade

MESSAGE = "TensorFlow does not use `keras.distribution`: the model is on one device"


@rule("fm57")
def keras_distribution_ignored(recording: Recording) -> Steps:
    for chosen in recording.of(KerasDistributionSet):
        if chosen.devices > 1 and is_on_one_device(recording, chosen):
            proof = f"{chosen.kind} over {chosen.devices} devices, and each weight exists once"
            yield observed("fm57", recording, chosen.location, MESSAGE, proof)


def is_on_one_device(recording: Recording, chosen: KerasDistributionSet) -> bool:
    """Tells whether layers have got weights since then, and no strategy distributes them."""
    made = recording.of(VariableMade, after=chosen)
    weights = [each.number for each in made if each.maker is Owner.LAYER]
    return bool(weights) and not any(map(recording.is_distributed, weights))
