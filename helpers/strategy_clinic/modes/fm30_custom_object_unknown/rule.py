"""Advises for fm30: a clone is made of configurations, as a loaded model is, and nothing was saved."""

from ...examiner.blame import called_at
from ...examiner.recording import Recording
from ...examiner.rule import advises
from ...observer.events import Stack

OF_CLONE = (
    "decorate the class or function with `@keras.saving.register_keras_serializable()`: `clone_model` makes layers of their "
    "configurations, as a load does"
)


@advises("fm30")
def of_clone(_: Recording, stack: Stack) -> str:
    clones = any("clone_model" in called_at(frame) for frame in stack[:1])
    return OF_CLONE if clones else ""
