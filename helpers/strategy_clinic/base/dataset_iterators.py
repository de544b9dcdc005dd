"""Keeps programs that are run here from standing still whenever an iterator of tf.data is deleted, as at the end of an epoch.

TensorFlow waits there for the thread that autotunes the dataset: a few epochs of `fit` on two replicas take three times as long
(upstream/iterator_deletion_waits.md). Autotuning changes how fast elements come, and not which.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import tf_internals


def without_autotuning(dataset: Any) -> Any:
    """Returns a dataset with the same elements that is not autotuned, unless the program has decided about that."""
    import tensorflow as tf

    if dataset.options().autotune.enabled is not None:
        return dataset
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def turn_off_autotuning(replace: Callable[[Any, str, Any], None]) -> None:
    """Replaces the function that makes iterators; graphs stay as the program makes them."""
    import tensorflow as tf

    iterator = tf_internals.iterator_ops.OwnedIterator
    plain = iterator.__init__

    @functools.wraps(plain)
    def make(self: Any, dataset: Any = None, *args: Any, **kwargs: Any) -> None:
        if dataset is not None and tf.executing_eagerly():
            dataset = without_autotuning(dataset)
        plain(self, dataset, *args, **kwargs)

    replace(iterator, "__init__", make)
