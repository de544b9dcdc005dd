"""One device that takes the parts of each batch in turn, and trains with the mean of what they give.

The replicas of a strategy do the same at once. So a run of several replicas that differs from one device, and agrees with this,
differs only by how Keras averages parts of different sizes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import tensorflow as tf


@contextmanager
def parts_in_turn(model_class: type, count: int) -> Iterator[None]:
    """Makes `fit` take so many parts of each batch in turn, for models whose `train_step` is that of Keras."""
    owner: Any = next(each for each in model_class.__mro__ if "train_step" in vars(each))
    of_keras = owner.train_step

    def train_step(model: Any, data: Any) -> Any:
        gradients: list[list[Any]] = []
        with mock.patch.object(model.optimizer, "apply_gradients", keeper(gradients)):
            results = each_from_the_same_state(model, of_keras, parts_of(data, count))
        means = [mean_of(each) for each in zip(*gradients)]
        model.optimizer.apply_gradients(zip(means, model.trainable_variables))
        return results[-1]

    with mock.patch.object(owner, "train_step", train_step):
        yield


def each_from_the_same_state(model: Any, step: Any, parts: list[Any]) -> list[Any]:
    """Returns what each part gives; the weights that no gradient changes are at the end those of the first part."""
    state = model.non_trainable_weights
    before = [tf.identity(each) for each in state]
    results = [step(model, parts[0])]
    first = [tf.identity(each) for each in state]
    for part in parts[1:]:
        assign(state, before)
        results.append(step(model, part))
    assign(state, first)
    return results


def assign(variables: Any, values: Any) -> None:
    for variable, value in zip(variables, values):
        variable.assign(value)


def keeper(kept: list[list[Any]]) -> Any:
    def apply_gradients(pairs: Any, *_: Any, **__: Any) -> None:
        kept.append([gradient for gradient, _ in pairs])

    return apply_gradients


def mean_of(gradients: Any) -> Any:
    """Returns the sum of the replicas' gradients over their number, None where no part has one."""
    given = [tf.convert_to_tensor(each) for each in gradients if each is not None]
    return tf.add_n(given) / len(gradients) if given else None


def parts_of(data: Any, count: int) -> list[Any]:
    """Returns what each replica gets of a batch: its rows divided by their number, rounded up, until none is left."""
    rows = tf.shape(tf.nest.flatten(data)[0])[0]
    size = (rows + count - 1) // count
    return [
        tf.nest.map_structure(lambda each, at=at: each[at * size : (at + 1) * size], data)
        for at in range(count)
    ]
