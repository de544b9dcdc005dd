"""Checks fm51: a run under a LossScaleOptimizer ends in no numbers, and not if all replicas are asked for overflows."""

from ...examiner.divergence import Divergence, is_finite
from ...examiner.suspects import RIGHT, Side, Suspect, place_of
from ...observer.events import GradientsApplied, Part, Stack
from ...observer.replacements import Replacement

SCALES = "LossScaleOptimizer"


def overflows(divergence: Divergence) -> bool:
    kinds = {each.optimizer.kind for each in divergence.other.of(GradientsApplied)}
    return SCALES in kinds and not is_finite(divergence.other)


def line_of_scale(divergence: Divergence) -> Stack:
    """Returns the line that asks for half precision, or else the one that makes the optimizer or applies the gradients."""
    updates = divergence.other.of(GradientsApplied)
    scaled = next(each for each in updates if each.optimizer.kind == SCALES)
    return place_of(Part.HALF_PRECISION)(divergence) or scaled.made_at or scaled.location


overflow_on_one_replica = Suspect(
    Replacement.SHARED_OVERFLOW,
    "with steps left out in which any replica overflows",
    Side.FRAMEWORK,
    overflows,
    "Keras 3 asks only the first replica whether its gradients overflow, and applies infinite ones of the "
    f"others{RIGHT}",
    located=line_of_scale,
    mode="fm51",
)
