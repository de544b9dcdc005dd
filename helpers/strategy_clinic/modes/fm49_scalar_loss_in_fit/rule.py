"""Checks fm49: a loss function returns one number, and runs agree once it is divided by the number of replicas."""

from ...examiner.suspects import RIGHT, Side, Suspect, place_of, uses
from ...observer.events import Part
from ...observer.replacements import Replacement

undivided = Suspect(
    Replacement.DIVIDED_LOSS,
    "with this loss divided by the number of replicas",
    Side.FRAMEWORK,
    uses(Part.SCALAR_LOSS),
    "this loss returns one number for a batch, and Keras 3 does not divide it by the number of replicas, as it "
    f"divides all other losses{RIGHT}",
    located=place_of(Part.SCALAR_LOSS),
    mode="fm49",
)
