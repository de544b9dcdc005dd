"""Checks fm49: a loss function returns one number, and runs agree once it is divided by the number of replicas."""

from ...examiner.suspects import Side, Suspect, place_of, uses
from ...observer.events import Part
from ...observer.replacements import Replacement

undivided = Suspect(
    Replacement.DIVIDED_LOSS,
    "with this loss divided by the number of replicas",
    Side.FRAMEWORK,
    uses(Part.SCALAR_LOSS),
    "this loss returns one number for a batch, and Keras 3 adds up those of all replicas: it divides by the number of replicas "
    "only what a loss returns as one value for each example, so this loss has to return such values",
    located=place_of(Part.SCALAR_LOSS),
    mode="fm49",
)
