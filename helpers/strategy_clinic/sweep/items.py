"""What the sweep is made of: a row for each class of Keras with its options, and the cells in which a row runs."""

import importlib
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

KERAS = {2: "tf_keras", 3: "keras"}  # the module of Keras 2 and of Keras 3


class Kind(StrEnum):
    """What a row is about; each kind has its own measurement."""

    OPTIMIZER = "optimizer"
    LOSS = "loss"
    METRIC = "metric"
    LAYER = "layer"
    CALLBACK = "callback"
    SAVER = "saver"
    TRAINING = "training"  # an argument or a method of the model itself
    CHECK = "check"  # what a run says of itself, and what is so
    WORKERS = "workers"  # processes of a cluster: the number of replicas is that of its workers


class How(StrEnum):
    FIT = "fit"
    EVALUATE = "evaluate"
    PREDICT = "predict"
    ON_BATCH = "on_batch"  # train_on_batch, test_on_batch, predict_on_batch
    LOOP = "loop"  # a custom loop with strategy.run


class Parts(StrEnum):
    """How the last batch is split: into equal parts, into parts of different sizes, or with an empty part."""

    EVEN = "even"
    UNEVEN = "uneven"
    EMPTY = "empty"


BATCH = 16
ROWS = {Parts.EVEN: 2 * BATCH, Parts.UNEVEN: 2 * BATCH - 3, Parts.EMPTY: BATCH + 1}
Where = tuple[How, Parts, tuple[int, ...]]  # with numbers of replicas


@dataclass(frozen=True)
class Call:
    """A call of a class or function of Keras, such as `layers.Dense(2)`, or of one in `measurements/own.py`."""

    name: str
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        named = [f"{name}={value}" for name, value in self.named]
        return f"{self.name}({', '.join([*map(str, self.arguments), *named])})"

    def but(self, **named: Any) -> "Call":
        return Call(self.name, self.arguments, tuple((dict(self.named) | named).items()))


def call(name: str, *arguments: Any, **named: Any) -> Call:
    return Call(name, arguments, tuple(named.items()))


def build(keras: Any, value: Any) -> Any:
    """Returns what a call makes with this Keras, its arguments built first; other values stay as they are.

    Raises AttributeError if this version of Keras has no such class.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(build(keras, each) for each in value)
    if not isinstance(value, Call):
        return value
    arguments = [build(keras, each) for each in value.arguments]
    named = {name: build(keras, each) for name, each in value.named}
    module, _, name = value.name.rpartition(".")
    if module == "own":
        own = importlib.import_module(f"{__package__}.measurements.own")
        return getattr(own, name)(keras, *arguments, **named)
    return getattr(importlib.import_module(f"{keras.__name__}.{module}"), name)(*arguments, **named)


@dataclass(frozen=True)
class Item:
    """A row: what is constructed, what it needs as input, and where it runs."""

    kind: Kind
    name: str
    option: str
    make: Call | None
    cells: tuple[Where, ...]
    inputs: str = ""  # a name in `place.py`
    targets: str = ""
    with_: tuple[tuple[str, Any], ...] = ()  # how the measurement differs from the usual one
    keras: tuple[int, ...] = (2, 3)

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.name}/{self.option}"

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.with_)


@dataclass(frozen=True)
class Cell:
    """One comparison with one device."""

    item: Item
    how: How
    parts: Parts
    replicas: int
    keras: int

    @property
    def name(self) -> str:
        return f"{self.item.path}/{self.how}/{self.parts}/x{self.replicas}/keras{self.keras}"


def cells_of(item: Item, keras: int) -> list[Cell]:
    """Returns the cells of a row; on Keras 2, which gets no new classes, those of two replicas where there are some."""
    if keras not in item.keras:
        return []
    return [
        Cell(item, how, parts, replicas, keras)
        for how, parts, counts in item.cells
        for replicas in counts_for(keras, counts)
    ]


def counts_for(keras: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    return (2,) if keras == 2 and 2 in counts else counts


def matches(name: str, pattern: str) -> bool:
    """Returns whether the name of a cell fits a pattern with `*`, or has it as a part."""
    return fnmatchcase(name, pattern if "*" in pattern else f"*{pattern}*")
