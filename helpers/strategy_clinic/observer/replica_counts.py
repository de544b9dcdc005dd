"""Gives a program on fewer devices the batches of more: outside of a step, it is told their number of replicas.

A program that multiplies the batch of one replica by their number trains otherwise on one device than on two. With their number
its batches and its learning rate are the same. In a step it gets the number of replicas that there are, so that a loss is
divided as it has to be, even if the number was read outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .patching import Patches, as_plain, defining_class
from .variables import is_in_replica


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
        return tf.convert_to_tensor(value, dtype, name=name)


def use_count(patches: Patches, replicas: int, called_by_program: Callable[[], bool]) -> None:
    """Lets the program read this number of replicas outside of its steps, of strategies that have fewer."""
    import tensorflow as tf

    definer = defining_class(tf.distribute.Strategy, "num_replicas_in_sync")
    plain = vars(definer)["num_replicas_in_sync"]

    def read(strategy: Any) -> Any:
        count = plain.fget(strategy)
        is_asked = count < replicas and called_by_program() and not is_in_replica()
        return ReplicaCount(replicas, count) if is_asked else count

    getter = as_plain(read, plain.fget)
    patches.replace(definer, "num_replicas_in_sync", property(getter, None, None, plain.__doc__))


def repeat_examples(patches: Patches, times: int) -> None:
    """Makes each batch of one part of its examples, which it has several times."""
    import tensorflow as tf

    plain = tf.data.Dataset.batch

    def batch(dataset: Any, batch_size: Any, *args: Any, **kwargs: Any) -> Any:
        size = int(batch_size)
        if size % times:
            return plain(dataset, batch_size, *args, **kwargs)
        return plain(dataset, size // times, *args, **kwargs).map(repeated)

    def repeated(*examples: Any) -> Any:
        whole = tf.nest.map_structure(lambda part: tf.concat([part] * times, 0), examples)
        return whole if len(whole) > 1 else whole[0]

    patches.replace(tf.data.Dataset, "batch", as_plain(batch, plain))
