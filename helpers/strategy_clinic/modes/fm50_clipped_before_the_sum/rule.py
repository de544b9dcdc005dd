"""Checks fm50: an optimizer, or the step itself, clips gradients, and runs agree once it does not."""

from ...examiner.blame import (
    UPDATES,
    assignments_before,
    called_name,
    calls_at,
    calls_in,
    names_in,
    statement_at,
    targets_of,
    with_keyword,
)
from ...examiner.divergence import Divergence
from ...examiner.suspects import RIGHT, Side, Suspect, place_of, uses
from ...observer.events import GradientsApplied, Part, Stack
from ...observer.replacements import Replacement

LIMITS = "clipnorm", "global_clipnorm", "clipvalue"


def updates(divergence: Divergence) -> list[GradientsApplied]:
    """Returns the updates with clipped gradients."""
    return [each for each in divergence.other.of(GradientsApplied) if each.optimizer.clips]


def optimizer_line(divergence: Divergence) -> Stack:
    """Returns the line that makes an optimizer and gives it its limit, or else the one that applies the gradients."""
    update = updates(divergence)[0]
    return with_keyword(update.made_at or update.location, *LIMITS)


def clipping_line(divergence: Divergence) -> Stack:
    """Returns the line that calls a clipping function of TensorFlow, or else the last one that changes the gradients."""
    stack = place_of(Part.CLIPPING)(divergence)
    if not calls_at(stack, *UPDATES):
        return stack
    given = {*names_in(statement_at(stack[0]))}
    gradients, line = set[str](), 0
    for each in sorted(assignments_before(stack[0]), key=lambda each: each.lineno):
        is_computed = "gradient" in map(called_name, calls_in(each.value))
        is_changed = bool(gradients & {*names_in(each.value)})
        if is_computed or is_changed:
            gradients |= targets_of(each)
        if is_changed and targets_of(each) & given:
            line = each.lineno
    return (stack[0]._replace(line=line), *stack) if line else stack


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
    "each replica clips or normalises its own gradients here, before they are added up",
    "add up the gradients with `all_reduce`, clip the sum, and divide it by the number of replicas, since "
    "`apply_gradients` adds up again",
    clipping_line,
    mode="fm50",
)
