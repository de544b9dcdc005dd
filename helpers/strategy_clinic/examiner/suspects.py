"""The suspects of a divergence: what another run has replaced, and what is said if the runs agree then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ..observer.events import (
    GradientComputed,
    GradientsApplied,
    Part,
    PartUsed,
    Stack,
    TrainedInLoop,
)
from ..observer.replacements import Replacement
from .blame import calls_at, from_first_line
from .divergence import Divergence, is_finite
from .recording import Recording, first_line

RIGHT = "; your program is right"
OF_PARTS = (
    "this loss is no mean over examples, and Keras 3 adds up its values for the part of each "
    f"replica{RIGHT}"
)
MASKED = (
    "Keras takes the mean over the unmasked values of each replica's part, and gives these means the "
    f"same weight{RIGHT}"
)
UNEVEN = (
    "Keras gives the mean of each replica's part the same weight, and the last batch does not divide "
    f"evenly{RIGHT}"
)
IN_KERAS_3 = (
    "Keras 3 computes something else on several replicas, and Keras 2 does not: with it, this program "
    f"trains the same on all numbers of devices{RIGHT}"
)
REPEATED_ROWS = (
    "Keras 3 does not add up the gradients of equal rows of an embedding before it squares them, and several replicas have "
    f"the same rows{RIGHT}"
)
REDUCED = f"the chosen `cross_device_ops` add up replicas to something else{RIGHT}"


class Side(Enum):
    """Through whom runs differ."""

    EXPECTED = "expected"  # correct programs differ so
    FRAMEWORK = "framework"
    PROGRAM = "program"


@dataclass(frozen=True)
class Suspect:
    replacement: Replacement | None  # in both runs
    words: str  # for the progress line
    side: Side
    applies: Callable[[Divergence], bool]
    message: str
    fix: str = ""
    located: Callable[[Divergence], Stack] = (
        lambda _: ()
    )  # the line to blame, of the program's faults
    keras: int = 0  # the version of Keras in both runs; 0: as the program has it
    mode: str = ""  # whose page explains it
    last: bool = False  # tried after all others: runs without it agree for other reasons, too


# Whether a divergence has a suspect


def uses(part: Part) -> Callable[[Divergence], bool]:
    return lambda divergence: divergence.other.uses(part)


def place_of(part: Part) -> Callable[[Divergence], Stack]:
    """Returns where a part of the step was used first."""

    def place(divergence: Divergence) -> Stack:
        used = [each for each in divergence.other.of(PartUsed) if each.part is part]
        return from_first_line(first_line(used))

    return place


def is_fit(divergence: Divergence) -> bool:
    """Tells whether Keras computes the loss and the gradients."""
    return calls_at(gradient_line(divergence), "fit")


def begins_late(divergence: Divergence) -> bool:
    """Tells whether a last batch may be the cause: not in the first step of all, unless that has NaN."""
    is_first = divergence.step == 1 and divergence.training == 1
    return not is_first or not is_finite(divergence.other)


def gradient_line(divergence: Divergence) -> Stack:
    return first_line(divergence.other.of(GradientComputed))


EXPECTED = (
    Suspect(
        Replacement.CONSTANT_NUMBERS,
        "with constants instead of random numbers in replicas",
        Side.EXPECTED,
        uses(Part.RANDOM_NUMBERS),
        "the random numbers that each replica draws",
    ),
    Suspect(
        Replacement.SHARED_STATISTICS,
        "with BatchNormalization of the whole batch",
        Side.EXPECTED,
        uses(Part.BATCH_STATISTICS),
        "the statistics that BatchNormalization without `synchronized=True` takes of each replica's part",
    ),
    Suspect(
        Replacement.FULL_PRECISION,
        "in float32",
        Side.EXPECTED,
        uses(Part.HALF_PRECISION),
        "rounding to half precision",
    ),
)


IN_LOOPS = Suspect(
    Replacement.ONE_STEP,
    "with one step in each loop of a graph",
    Side.EXPECTED,
    lambda divergence: bool(divergence.other.of(TrainedInLoop)),
    "",
)


def replaced_as_expected(divergence: Divergence) -> frozenset[Replacement]:
    """Returns what is replaced before runs are compared: what makes correct programs differ, and several steps at a time."""
    applied = {each.replacement for each in (*EXPECTED, IN_LOOPS) if each.applies(divergence)}
    return frozenset(each for each in applied if each)


def clippings(recording: Recording) -> frozenset[Replacement]:
    """Returns what a run without clipping has replaced: of an optimizer's, or of the step's own."""
    found = set()
    if any(update.optimizer.clips for update in recording.of(GradientsApplied)):
        found.add(Replacement.NO_CLIPPING)
    if recording.uses(Part.CLIPPING):
        found.add(Replacement.NO_OWN_CLIPPING)
    return frozenset(found)


ROWS = Suspect(
    Replacement.DENSE_GRADIENTS,
    "with dense gradients of embeddings",
    Side.FRAMEWORK,
    uses(Part.SPARSE_GRADIENTS),
    REPEATED_ROWS,
    "apply `tf.convert_to_tensor(gradient)`, or use SGD, or Keras 2",
)

# Those that no failure mode explains. A mode declares its own in its rule.py, and they are tried first.
SUSPECTS = (
    ROWS,
    Suspect(
        Replacement.WHOLE_BATCH_LOSS,
        "with the loss of the whole batch",
        Side.FRAMEWORK,
        uses(Part.WHOLE_BATCH_LOSS),
        OF_PARTS,
        "write a loss that returns one value for each example",
    ),
    Suspect(
        Replacement.NO_MASK,
        "without the mask in the loss",
        Side.FRAMEWORK,
        uses(Part.MASK),
        MASKED,
        "weigh the examples yourself, with sample weights that are 0 where the mask is and a loss with `reduction="
        '"sum"`, divided by the unmasked values of the whole batch',
    ),
    Suspect(
        Replacement.FULL_BATCHES,
        "without a smaller last batch",
        Side.FRAMEWORK,
        lambda divergence: is_fit(divergence) and begins_late(divergence),
        UNEVEN,
        "`drop_remainder=True`, or a batch size that divides the examples",
    ),
    Suspect(
        Replacement.REDUCTION_TO_ONE_DEVICE,
        "with ReductionToOneDevice",
        Side.FRAMEWORK,
        uses(Part.REDUCTION),
        REDUCED,
        "`MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())`",
    ),
    Suspect(
        Replacement.REDUCTION_TO_ONE_DEVICE,
        "with ReductionToOneDevice",
        Side.PROGRAM,
        uses(Part.OWN_REDUCTION),
        "the program's own `cross_device_ops` add up replicas to something else",
        "`tf.distribute.ReductionToOneDevice()`",
        place_of(Part.OWN_REDUCTION),
    ),
    Suspect(
        None,
        "with Keras 2",
        Side.FRAMEWORK,
        is_fit,
        IN_KERAS_3,
        "use Keras 2 (`TF_USE_LEGACY_KERAS=1`), or do the step in a loop of your own",
        keras=2,
    ),
)
