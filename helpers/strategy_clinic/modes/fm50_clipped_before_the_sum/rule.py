"""Checks fm50: an optimizer, or the step itself, clips gradients, and runs agree once it does not."""

import ast

from ...examiner.blame import call_in_files, keyword, with_keyword
from ...examiner.divergence import Divergence
from ...examiner.suspects import RIGHT, Side, Suspect, place_of, uses
from ...observer.events import GradientsApplied, Part, Stack
from ...observer.replacements import Replacement

LIMITS = "clipnorm", "global_clipnorm", "clipvalue"


def updates(divergence: Divergence) -> list[GradientsApplied]:
    """Returns the updates with clipped gradients."""
    return [each for each in divergence.other.of(GradientsApplied) if each.optimizer.clips]


def has_limit(call: ast.Call) -> bool:
    return any(keyword(call, limit) is not None for limit in LIMITS)


def optimizer_line(divergence: Divergence) -> Stack:
    """Returns the line that gives an optimizer its limit, or else the one that applies the gradients."""
    stack = call_in_files(updates(divergence)[0].location, has_limit)
    for limit in LIMITS:
        stack = with_keyword(stack, limit)
    return stack


clipped_before_the_sum = Suspect(
    Replacement.NO_CLIPPING,
    "without the clipping of the optimizer",
    Side.FRAMEWORK,
    lambda divergence: bool(updates(divergence)),
    f"Keras 3 clips the gradients of each replica before it adds them up{RIGHT}",
    located=optimizer_line,
    mode="fm50",
)

clipped_in_the_step = Suspect(
    Replacement.NO_OWN_CLIPPING,
    "without the clipping in replicas",
    Side.PROGRAM,
    uses(Part.CLIPPING),
    "each replica clips its own gradients here, before they are added up",
    "add up the gradients with `all_reduce`, clip the sum, and divide it by the number of replicas, since "
    "`apply_gradients` adds up again",
    place_of(Part.CLIPPING),
    mode="fm50",
)
