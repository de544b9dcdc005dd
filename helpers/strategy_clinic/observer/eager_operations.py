"""Records the operations that run outside of graphs while a tape is open, so that it is known what a loss is computed from.

TensorFlow tells of each operation as it runs. What it was given and what it returned are kept until the tape is gone, of the
first tape on each line only. They look as the operations of a graph do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType, SimpleNamespace
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import Stack
from .identity_map import IdentityMap
from .patching import Call
from .provenance import outer_frame
from .variables import replica_now

MOST_TAPES = 12  # of a program, on different lines
MOST_OPERATIONS = 20_000  # of a tape
MOST_ITEMS = 100  # of a list of the program that is looked through for examples


@dataclass(eq=False)
class EagerOperation:
    """An operation that has run; `Placeholder` stands for examples that the program had before, and `Const` for other values."""

    type: str
    inputs: list[EagerValue]
    location: Stack = ()
    device: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)

    def get_attr(self, name: str) -> Any:
        return self.attributes[name]

    @property
    def node_def(self) -> Any:
        return SimpleNamespace(attr=self.attributes)


@dataclass(eq=False)
class EagerValue:
    """A tensor with the operation that has returned it."""

    op: EagerOperation
    value_index: int
    tensor: Any
    graph: Record

    @property
    def name(self) -> str:
        return str(id(self.tensor))

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype

    @property
    def shape(self) -> Any:
        return self.tensor.shape


class Record:
    """What runs in one thread while a tape is open."""

    def __init__(self, stack: Any, examples: Sequence[Any]) -> None:
        self.stack, self.thread = stack, threading.get_ident()
        self.examples = {id(each): each for each in examples}
        self.values: dict[int, EagerValue] = {}

    def add(
        self, kind: str, inputs: Sequence[Any], attributes: Any, outputs: Sequence[Any]
    ) -> None:
        given = [self.value(each) for each in inputs if hasattr(each, "dtype")]
        named = dict(zip(attributes[::2], attributes[1::2]))
        operation = EagerOperation(kind, given, self.stack(), attributes=named)
        for place, tensor in enumerate(outputs):
            self.values[id(tensor)] = EagerValue(operation, place, tensor, self)

    def value(self, tensor: Any) -> EagerValue:
        """Returns the value that a tensor is, which was there before or was made without an operation if none has returned it."""
        if id(tensor) not in self.values:
            kind = "Placeholder" if id(tensor) in self.examples else "Const"
            self.values[id(tensor)] = EagerValue(EagerOperation(kind, []), 0, tensor, self)
        return self.values[id(tensor)]


class EagerOperations:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.records: IdentityMap[Record] = IdentityMap()  # of tapes
        self.open: dict[int, Any] = {}  # by thread, the outermost tape of which there is a record

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        wrap(tf.GradientTape, "__enter__", after=self.tape_opened)
        wrap(tf.GradientTape, "__exit__", before=self.tape_closed)

    def tape_opened(self, _: Any, call: Call) -> None:
        import tensorflow as tf

        if not tf.executing_eagerly() or replica_now():
            return
        outer = self.open.get(threading.get_ident())
        if outer is not None and (record := self.records.get(outer)):
            self.records[call.owner] = record
            return
        site, _ = self.context.provenance.call_site()
        if self.context.counts["tapes"] < MOST_TAPES and self.context.is_first("tape", site):
            self.context.count("tapes")
            record = Record(self.context.provenance.stack, [*self.examples()])
            self.records[call.owner] = record
            self.open[record.thread] = call.owner
            tf_internals.op_callbacks.add_op_callback(self.operation_ran)

    def tape_closed(self, call: Call) -> None:
        if self.open.get(threading.get_ident()) is call.owner:
            del self.open[threading.get_ident()]
            tf_internals.op_callbacks.remove_op_callback(self.operation_ran)

    def operation_ran(
        self,
        kind: Any,
        inputs: Any,
        attributes: Any,
        outputs: Any,
        op_name: Any = None,
        graph: Any = None,
    ) -> None:
        """Keeps an operation. The threads of replicas have one list of such functions together.

        TensorFlow gives the last two by their names where a function is traced while the tape is open.
        """
        tape = self.open.get(threading.get_ident())
        if tape is not None and graph is None:
            self.context.guard(self.keep, tape, kind, inputs, attributes, outputs)

    def keep(self, tape: Any, kind: Any, inputs: Any, attributes: Any, outputs: Any) -> None:
        record = self.records.get(tape)
        if record is not None and len(record.values) < MOST_OPERATIONS:
            text = kind.decode() if isinstance(kind, bytes) else str(kind)
            record.add(text, inputs or (), attributes or (), outputs or ())

    def examples(self) -> Iterator[Any]:
        """Yields the tensors that the running functions of the program have, and its module if a line there opens the tape."""
        frame: FrameType | None = outer_frame()
        is_innermost = True
        while frame is not None:
            if self.context.provenance.is_own(frame.f_code.co_filename):
                if is_innermost or frame.f_code.co_name != "<module>":
                    yield from tensors_in(frame.f_locals.values())
                is_innermost = False
            frame = frame.f_back

    def values(self, tape: Any, targets: Sequence[Any]) -> list[EagerValue]:
        """Returns what is differentiated, if there is a record of the tape."""
        record = self.records.get(tape)
        return (
            [record.values[id(each)] for each in targets if id(each) in record.values]
            if record
            else []
        )


def tensors_in(values: Any, depth: int = 2) -> Iterator[Any]:
    import tensorflow as tf

    for value in values:
        if isinstance(value, tf.Tensor) and not tf.is_symbolic_tensor(value):
            yield value
        elif isinstance(value, (list, tuple, dict)) and depth and len(value) <= MOST_ITEMS:
            yield from tensors_in(value.values() if isinstance(value, dict) else value, depth - 1)
