"""Losses, with each way to reduce them, with sample weights and with masks."""

from dataclasses import replace
from typing import Any

from ..items import Call, How, Item, Kind, Parts, call

SOME = (
    (How.FIT, Parts.EVEN, (2, 4)),
    (How.FIT, Parts.UNEVEN, (2, 4)),
    (How.EVALUATE, Parts.UNEVEN, (2, 4)),
)
ALL = (
    (How.FIT, Parts.EVEN, (1, 2, 4)),
    *SOME[1:],
    (How.FIT, Parts.EMPTY, (2, 4)),
    (How.EVALUATE, Parts.EMPTY, (2, 4)),
)

# Which versions of Keras have each, its targets, and how the measurement differs.
CLASSES: dict[str, tuple[tuple[int, ...], str, dict[str, Any]]] = {
    "BinaryCrossentropy": ((2, 3), "binary", {}),
    "BinaryFocalCrossentropy": ((2, 3), "binary", {}),
    "CategoricalCrossentropy": ((2, 3), "onehot", {}),
    "CategoricalFocalCrossentropy": ((2, 3), "onehot", {}),
    "CategoricalGeneralizedCrossEntropy": ((3,), "sparse", {}),
    "CategoricalHinge": ((2, 3), "onehot", {}),
    "Circle": ((3,), "sparse", {}),
    "CosineSimilarity": ((2, 3), "numbers", {}),
    "Dice": ((3,), "binary", {}),
    "Hinge": ((2, 3), "signs", {}),
    "Huber": ((2, 3), "numbers", {}),
    "KLDivergence": ((2, 3), "positive", {}),
    "LogCosh": ((2, 3), "numbers", {}),
    "MeanAbsoluteError": ((2, 3), "numbers", {}),
    "MeanAbsolutePercentageError": ((2, 3), "positive", {}),
    "MeanSquaredError": ((2, 3), "numbers", {}),
    "MeanSquaredLogarithmicError": ((2, 3), "positive", {}),
    "Poisson": ((2, 3), "positive", {}),
    "SparseCategoricalCrossentropy": ((2, 3), "sparse", {}),
    "SquaredHinge": ((2, 3), "signs", {}),
    "Tversky": ((3,), "binary", {}),
}
WEIGHTED = ("CosineSimilarity", "Huber", "KLDivergence")  # besides those below
REDUCED = ("MeanSquaredError", "BinaryCrossentropy", "SparseCategoricalCrossentropy", "Dice")


def plain(name: str) -> Item:
    versions, targets, differs = CLASSES[name]
    return Item(
        Kind.LOSS,
        name,
        "plain",
        call(f"losses.{name}"),
        ALL if name in REDUCED else SOME,
        targets=targets,
        with_=tuple(differs.items()),
        keras=versions,
    )


def reduced(name: str, reduction: str, keras: tuple[int, ...]) -> Item:
    item = plain(name)
    versions = tuple(sorted({*keras} & {*item.keras}))
    make = call(f"losses.{name}", reduction=reduction)
    return replace(item, option=f"reduction {reduction}", make=make, keras=versions, cells=SOME)


def function(name: str, option: str, make: Call, targets: str = "numbers") -> Item:
    return replace(plain("MeanSquaredError"), name=name, option=option, make=make, targets=targets)


def weighted(name: str) -> Item:
    item = plain(name)
    differs = (*item.with_, ("sample_weight", "rows"))
    return replace(item, option="sample_weight", with_=differs, cells=SOME)


def on_sequences(option: str, **differs: Any) -> Item:
    return replace(
        plain("MeanSquaredError"), option=option, inputs="sequences", with_=tuple(differs.items())
    )


ITEMS = [
    *[plain(name) for name in CLASSES],
    *[reduced(name, "sum", (2, 3)) for name in REDUCED],
    *[reduced(name, "mean", (3,)) for name in REDUCED],
    *[reduced(name, "mean_with_sample_weight", (3,)) for name in REDUCED[:1]],
    *[weighted(name) for name in (*WEIGHTED, *REDUCED) if name != "Dice"],
    function("function", "one value per example", call("own.loss_per_example")),
    function("function", "returns one number", call("own.loss_of_one_number")),
    function("function", "in-batch negatives", call("own.in_batch_negatives")),
    function("Loss", "subclass that returns one number", call("own.LossOfOneNumber")),
    on_sequences("mask", mask=True),
    on_sequences("mask, sample_weight", mask=True, sample_weight="rows"),
    replace(on_sequences("sample_weight of rows", sample_weight="rows"), inputs="square"),
    on_sequences("sample_weight of time steps", sample_weight="time"),
]
NOT_SWEPT = {
    "CTC": "needs sequences of labels of different lengths",
}
