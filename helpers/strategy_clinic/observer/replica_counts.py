"""Gives a program the batches of another number of devices: outside of a step, it is told their number of replicas.

A program that multiplies the batch of one replica by their number trains otherwise on one device than on two. With their number
its batches and its learning rate are the same. In a step it gets the number of replicas that there are, so that a loss is
divided as it has to be, even if the number was read outside.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ..base import tf_internals
from .context import BATCHES, Context, Settings
from .examples import can_be_passed_on, is_unpacked
from .patching import Patches, as_plain, defining_class
from .replacements import Replacement
from .variables import is_in_replica

MOST_PARTS = (8, 4, 2)  # of a batch for any of the numbers of devices that are compared
FEWER_PARTS = (4, 2)  # each of which has several examples, as a rule


class ReplicaCount(int):
    """A number of replicas that is another one where a replica uses it in an operation."""

    in_replica: int

    def __new__(cls, outside: int, in_replica: int) -> ReplicaCount:
        made = super().__new__(cls, outside)
        made.in_replica = in_replica
        return made

    def __tf_tensor__(self, dtype: Any = None, name: Any = None) -> Any:
        import tensorflow as tf

        value = self.in_replica if is_in_replica() else int(self)
        # The type of the other operand. TensorFlow has it here, and passes only on what was asked for.
        hint = sys._getframe(1).f_locals.get("preferred_dtype")
        return tf.convert_to_tensor(value, dtype, dtype_hint=hint, name=name)


def use_count(patches: Patches, replicas: int, called_by_program: Callable[[], bool]) -> None:
    """Lets the program read this number of replicas outside of its steps, whatever its strategies have."""
    import tensorflow as tf

    definer = defining_class(tf.distribute.Strategy, "num_replicas_in_sync")
    plain = vars(definer)["num_replicas_in_sync"]

    def read(strategy: Any) -> Any:
        count = plain.fget(strategy)
        is_asked = called_by_program() and not is_in_replica()
        return ReplicaCount(replicas, count) if is_asked else count

    getter = as_plain(read, plain.fget)
    patches.replace(definer, "num_replicas_in_sync", property(getter, None, None, plain.__doc__))


def parts_of(settings: Settings) -> Parts | None:
    """Returns the parts that a batch is to have; None if it is left as it is."""
    if Replacement.SAME_EXAMPLES.value in settings.replace:
        return Parts((settings.replicas // settings.devices,))
    if Replacement.ONE_PART.value in settings.replace:
        return Parts(FEWER_PARTS, settings.devices)
    return Parts(MOST_PARTS) if Replacement.SAME_PARTS.value in settings.replace else None


def repeat_examples(context: Context) -> None:
    """Makes each batch of one part of its examples, which it has several times, if the settings say so."""
    import tensorflow as tf

    parts = parts_of(context.settings)
    if parts is None:
        return
    if Replacement.SAME_EXAMPLES.value not in context.settings.replace:
        name = "distribute_datasets_from_function"
        definer = defining_class(tf.distribute.Strategy, name)
        plain = vars(definer)[name]
        context.patches.replace(definer, name, as_plain(parts.from_function(plain), plain))
    for name in BATCHES:
        plain = vars(tf.data.Dataset)[name]
        context.patches.replace(
            tf.data.Dataset, name, as_plain(batch_of_parts(plain, parts), plain)
        )


def repeat_batches_of_keras(context: Context, package: str) -> None:
    """Does the same with the batches that Keras 3, which is `keras`, or Keras 2 has of what is no dataset."""
    parts = parts_of(context.settings)
    if parts is None:
        return
    for adapter, name in adapters_of(package):
        plain = vars(adapter)[name]
        context.patches.replace(adapter, name, as_plain(dataset_of_parts(plain, parts), plain))


def adapters_of(package: str) -> list[tuple[Any, str]]:
    """Returns the classes that give `fit` a dataset of arrays or of Python objects, and the names of their methods."""
    if package != "keras":
        module = tf_internals.adapters_of_keras_2
        return [
            (module.TensorLikeDataAdapter, "get_dataset"),
            (module.GeneratorDataAdapter, "get_dataset"),
        ]
    kinds = (
        tf_internals.array_data_adapter.ArrayDataAdapter,
        tf_internals.py_dataset_adapter.PyDatasetAdapter,
        tf_internals.generator_data_adapter.GeneratorDataAdapter,
    )
    return [(kind, "get_tf_dataset") for kind in kinds]


class Parts:
    """How many equal parts a batch may have; the batches that a dataset function makes are parts already."""

    def __init__(self, counts: tuple[int, ...], devices: int = 0) -> None:
        self.counts = counts
        self.devices = devices  # which get one part each; 0 if a batch keeps its size
        self.replicas = 1  # that share a batch of the dataset that is being made

    def copies(self, times: Any) -> Any:
        """Returns how often a batch has its part, where it would have as many parts as this."""
        return max(1, self.devices // self.replicas) if self.devices else times

    def of(self, size: int) -> int:
        counts = [count // self.replicas for count in self.counts if count >= self.replicas]
        return next((count for count in counts if size % count == 0), 1)

    def from_function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the method of a strategy that calls a dataset function, with batches that all replicas of a process get."""

        def distributed(strategy: Any, dataset_fn: Any, options: Any = None) -> Any:
            def same_for_all(context: Any) -> Any:
                self.replicas = context.num_replicas_in_sync // context.num_input_pipelines
                try:
                    dataset = dataset_fn(context)
                    same = functools.partial(again, self.replicas, is_unpacked(dataset))
                    return dataset.flat_map(same)
                finally:
                    self.replicas = 1

            return plain(strategy, same_for_all, options)

        return distributed


def again(times: int, unpacked: bool, *batch: Any) -> Any:
    import tensorflow as tf

    same = tf.data.Dataset.from_tensors(batch if unpacked else batch[0])
    return same.repeat(times)


def batch_of_parts(plain: Callable[..., Any], parts: Parts) -> Callable[..., Any]:
    """Returns the method of a dataset that makes batches, for batches of equal parts."""

    def batch(dataset: Any, batch_size: Any, *args: Any, **kwargs: Any) -> Any:
        size = int(batch_size)
        times = parts.of(size)
        smaller = plain(dataset, size // times, *args, **kwargs)
        copies = parts.copies(times)
        more = functools.partial(repeated, copies, is_unpacked(smaller))
        return smaller if copies == 1 else smaller.map(more)

    return batch


def dataset_of_parts(plain: Callable[..., Any], parts: Parts) -> Callable[..., Any]:
    """Returns the method of a Keras adapter that makes a dataset, with the first part of each batch in it."""

    def made(adapter: Any) -> Any:
        dataset = plain(adapter)
        if not can_be_passed_on(dataset.element_spec):
            return dataset
        return dataset.map(functools.partial(first_parts, parts, is_unpacked(dataset)))

    return made


def first_parts(parts: Parts, unpacked: bool, *examples: Any) -> Any:
    """Returns the first part of a batch as often as the batch has parts, or as it has to be there."""
    import tensorflow as tf

    size = tf.shape(tf.nest.flatten(examples)[0])[0]
    times = tf.constant(1)
    for count in sorted(parts.counts):
        times = tf.where(size % count == 0, count, times)
    copies = parts.copies(times)

    def part(batch: Any) -> Any:
        first = batch[: size // times]
        same = tf.tile(first, tf.concat([[copies], tf.ones([tf.rank(first) - 1], tf.int32)], 0))
        same.set_shape([None, *batch.shape[1:]])
        return same

    same = tf.nest.map_structure(part, examples)
    return same if unpacked else same[0]


def repeated(times: int, unpacked: bool, *examples: Any) -> Any:
    import tensorflow as tf

    whole = tf.nest.map_structure(lambda part: tf.concat([part] * times, 0), examples)
    return whole if unpacked else whole[0]
