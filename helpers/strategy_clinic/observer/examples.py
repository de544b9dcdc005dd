"""Observes which examples training takes: a checksum of each batch, in the order of the steps.

A custom loop gives its batches to a step: they are the arguments of `strategy.run` or of a traced function. `fit` takes them in
a graph, from an iterator that it makes in each epoch: its dataset gets one more `map`, which computes the checksum and passes
each batch on.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import ExamplesTaken, Owner, Stack
from .optimizers import Optimizers
from .patching import Call
from .variables import NO_STRATEGY, copies_of

MOST_BATCHES = 400  # of one line, or of one iterator
MOST_SEQUENCES = 60
MOST_KEPT = 4  # iterators
UNKNOWN = -1
MOST_BYTES = 1 << 15  # from the beginning and from the end of an array
# Strategies whose data is read in the process of the program.
OF_KERAS = Owner.TRAINER, Owner.LAYER
LOCAL = {"MirroredStrategy", "OneDeviceStrategy", NO_STRATEGY}
ON_DEVICES = (
    "PerDeviceGenerator"  # how the classes of datasets end that pass batches on to a device
)


@dataclass
class Sequence:
    """The batches that one line gives to its steps, or that one iterator yields."""

    location: Stack
    in_fit: bool
    begins: int  # updates that optimizers had made before
    batches: int = 0
    checksums: list[int] = field(default_factory=list)

    def add(self, checksum: int) -> None:
        self.batches += 1
        if self.batches <= MOST_BATCHES:
            self.checksums.append(checksum)


class Examples:
    def __init__(self, context: Context, optimizers: Optimizers) -> None:
        self.context, self.optimizers = context, optimizers
        self.sequences: dict[
            Any, Sequence
        ] = {}  # by the line of a step, or the number of an iterator
        # What reads ahead and is deleted meanwhile ends the process: TensorFlow waits for no function of Python in it.
        self.kept: deque[Any] = deque(maxlen=MOST_KEPT)

    def watch(self) -> None:
        for kind in (
            tf_internals.iterator_ops.OwnedIterator,
            tf_internals.multi_device_iterator_ops.OwnedMultiDeviceIterator,
        ):
            self.context.patches.wrap(kind, "__init__", before=self.iterator_begins)

    # Steps of a custom loop

    def step_made(self, arguments: Any) -> None:
        """Keeps what a step was given that trains."""
        site, owner = self.context.provenance.call_site()
        sequence = self.sequences.get(site)
        if sequence is not None and sequence.batches >= MOST_BATCHES:
            sequence.batches += 1
            return
        arrays = [*arrays_in(arguments)]
        if owner is Owner.USER and arrays and (sequence := self.sequence(site, in_fit=False)):
            sequence.add(checksum_of(arrays))

    def sequence(self, key: Any, *, in_fit: bool) -> Sequence | None:
        if key not in self.sequences and len(self.sequences) < MOST_SEQUENCES:
            stack = self.context.provenance.stack()
            self.sequences[key] = Sequence(stack, in_fit, self.updates(in_fit))
        return self.sequences.get(key)

    def updates(self, in_fit: bool) -> int:
        """Returns how many updates optimizers had made; UNKNOWN before the first step, whose optimizer may be restored yet."""
        is_first = not in_fit and not any(not each.in_fit for each in self.sequences.values())
        made = [state.steps for state in self.optimizers.states()]
        return UNKNOWN if is_first or not made else max(made) - (not in_fit)

    # Iterators of `fit`

    def iterator_begins(self, call: Call) -> None:
        import tensorflow as tf

        dataset = call["dataset"]
        _, owner = self.context.provenance.call_site()
        is_local = type(tf.distribute.get_strategy()).__name__ in LOCAL
        if dataset is None or owner not in OF_KERAS or not tf.executing_eagerly() or not is_local:
            return
        if root_of(dataset).endswith(ON_DEVICES) or not can_be_passed_on(dataset.element_spec):
            return
        sequence = self.sequence(("iterator", self.context.count("watched iterators")), in_fit=True)
        if sequence:
            self.kept.append(call.owner)
            call.replace("dataset", dataset.map(passing_on(sequence, is_unpacked(dataset))))

    # The end

    def report(self) -> None:
        first = next(iter(self.optimizers.first_steps.values()), 0)  # of the optimizer used first
        for each in self.sequences.values():
            each.begins = first if each.begins == UNKNOWN else each.begins
        for each in filter(self.is_whole, self.sequences.values()):
            event = ExamplesTaken(
                each.location, each.in_fit, each.begins, each.batches, tuple(each.checksums)
            )
            self.context.emit(event)

    def is_whole(self, sequence: Sequence) -> bool:
        """Tells whether no other iterator yields the same and more: `fit` makes one for the shapes alone."""
        others = [
            other
            for other in self.sequences.values()
            if other.batches > sequence.batches
            and (other.location, other.in_fit) == (sequence.location, sequence.in_fit)
        ]
        length = len(sequence.checksums)
        return bool(length) and not any(
            sequence.in_fit
            and other.begins == sequence.begins
            and other.checksums[:length] == sequence.checksums
            for other in others
        )


def passing_on(sequence: Sequence, unpacked: bool) -> Any:
    """Returns a function that returns the element that it is given, once its checksum is known."""
    import tensorflow as tf

    def checked(*arrays: Any) -> None:
        sequence.add(checksum_of(arrays))

    def pass_on(*element: Any) -> Any:
        parts = tf.nest.flatten(element, expand_composites=True)
        with tf.control_dependencies([tf.numpy_function(checked, parts, [])]):
            same = [tf.identity(part) for part in parts]
        packed = tf.nest.pack_sequence_as(element, same, expand_composites=True)
        return packed if unpacked else packed[0]

    return tf.autograph.experimental.do_not_convert(pass_on)


def is_unpacked(dataset: Any) -> bool:
    """Tells whether `map` gives its function the parts of an element: of a tuple, which has one part where `fit` gets a list."""
    return type(dataset.element_spec) is tuple


def can_be_passed_on(spec: Any) -> bool:
    """Tells whether elements consist of tensors alone, and of no datasets or optionals."""
    import tensorflow as tf

    parts = tf.nest.flatten(spec, expand_composites=True)
    return bool(parts) and all(
        isinstance(part, tf.TensorSpec) and part.dtype != tf.variant for part in parts
    )


def root_of(dataset: Any) -> str:
    """Returns the name of the class of the dataset from which this one is made."""
    inputs = tf_internals.read(dataset, "_inputs")()
    return root_of(inputs[0]) if inputs else type(dataset).__name__


def arrays_in(arguments: Any) -> Iterable[Any]:
    """Yields the batches in what a step is given: arrays of one dimension or more, for each replica."""
    import numpy as np
    import tensorflow as tf

    for value in tf.nest.flatten(arguments):
        for part in copies_of(value) if not hasattr(value, "assign") else ():
            is_tensor = isinstance(part, tf.Tensor) and hasattr(part, "numpy")
            if (is_tensor or isinstance(part, np.ndarray)) and len(part.shape):
                yield part


def checksum_of(arrays: Iterable[Any]) -> int:
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(bytes_of(array), checksum)
    return checksum


def bytes_of(array: Any) -> bytes:
    import numpy as np

    plain = np.asarray(array)
    if plain.dtype.hasobject:
        return repr(plain.ravel()[:100].tolist()).encode()
    content = plain.tobytes()
    return (
        content if len(content) <= 2 * MOST_BYTES else content[:MOST_BYTES] + content[-MOST_BYTES:]
    )
