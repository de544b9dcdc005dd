"""How much rounding matters in a row: a run on one device that begins with numbers whose last digits are others.

Several replicas add the same numbers in another order, so their last digits differ, and a training lets that grow. What a
difference must exceed is not typed: it is so many times what a change of the last digits does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from ..items import Item

GROWS = 30  # times as much as from a change of the last digits a difference must be
# The last digit of the numbers that a policy computes with, relative to them.
LAST_DIGITS = {"float32": 2**-23, "mixed_float16": 2**-10, "mixed_bfloat16": 2**-7}


def last_digit_of(item: Item) -> float:
    return LAST_DIGITS[item.options.get("policy", "float32")]


def tolerance_of(rounding: float) -> float:
    """Returns the difference, relative to the largest number of an array, that is none."""
    return GROWS * rounding


class Nudged(np.random.Generator):
    """Draws what `default_rng` draws, with other last digits."""

    def __init__(self, seed: int, by: float) -> None:
        super().__init__(np.random.PCG64(seed))
        self.by = by

    def normal(self, *arguments: Any, **named: Any) -> Any:
        return nudged(super().normal(*arguments, **named), self.by)

    def uniform(self, *arguments: Any, **named: Any) -> Any:
        return nudged(super().uniform(*arguments, **named), self.by)


def nudged(values: Any, by: float) -> Any:
    """Returns values of which each is a little more or less."""
    signs = np.random.Generator(np.random.PCG64(1)).choice([-1.0, 1.0], size=np.shape(values))
    return values * (1 + by * signs)


@contextmanager
def last_digits_changed(model_class: Any, by: float) -> Iterator[None]:
    """Changes the numbers that are drawn as inputs, and the first weights of each model that is compiled."""
    with (
        mock.patch("numpy.random.default_rng", lambda seed=None: Nudged(seed or 0, by)),
        nudged_weights(model_class, by),
    ):
        yield


@contextmanager
def nudged_weights(model_class: Any, by: float) -> Iterator[None]:
    """Lets each model that is compiled begin with weights that are a little larger."""
    of_keras = model_class.compile

    def compile_nudged(model: Any, *arguments: Any, **named: Any) -> None:
        of_keras(model, *arguments, **named)
        for weight in model.trainable_weights:
            weight.assign(weight * (1 + by))

    with mock.patch.object(model_class, "compile", compile_nudged):
        yield
