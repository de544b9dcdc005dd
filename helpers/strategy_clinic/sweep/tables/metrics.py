"""Metrics, on predictions that fit each."""

from dataclasses import replace
from typing import Any

from ..items import How, Item, Kind, Parts, call
from ..sizes import CLASSES as COUNT

EVALUATE = (
    (How.EVALUATE, Parts.UNEVEN, (2, 4)),
    (How.EVALUATE, Parts.EMPTY, (2,)),
)
LOOP = ((How.LOOP, Parts.UNEVEN, (2, 4)), (How.LOOP, Parts.EMPTY, (2,)))
ONE_CLASS = {"target_class_ids": [0]}

# Which versions of Keras have each, its targets, and what it is constructed with.
CLASSES: dict[str, tuple[tuple[int, ...], str, dict[str, Any]]] = {
    "AUC": ((2, 3), "binary", {}),
    "Accuracy": ((2, 3), "binary", {}),
    "BinaryAccuracy": ((2, 3), "binary", {}),
    "BinaryCrossentropy": ((2, 3), "binary", {}),
    "BinaryIoU": ((2, 3), "binary", ONE_CLASS),
    "CategoricalAccuracy": ((2, 3), "onehot", {}),
    "CategoricalCrossentropy": ((2, 3), "onehot", {}),
    "CategoricalHinge": ((2, 3), "onehot", {}),
    "ConcordanceCorrelation": ((3,), "numbers", {}),
    "CosineSimilarity": ((2, 3), "numbers", {}),
    "F1Score": ((2, 3), "onehot", {}),
    "FBetaScore": ((2, 3), "onehot", {}),
    "FalseNegatives": ((2, 3), "binary", {}),
    "FalsePositives": ((2, 3), "binary", {}),
    "Hinge": ((2, 3), "signs", {}),
    "IoU": ((2, 3), "binary", {"num_classes": 2, **ONE_CLASS}),
    "KLDivergence": ((2, 3), "positive", {}),
    "LogCoshError": ((2, 3), "numbers", {}),
    "MeanAbsoluteError": ((2, 3), "numbers", {}),
    "MeanAbsolutePercentageError": ((2, 3), "positive", {}),
    "MeanIoU": ((2, 3), "binary", {"num_classes": 2}),
    "MeanRelativeError": ((2,), "numbers", {"normalizer": [1.0] * COUNT}),
    "MeanSquaredError": ((2, 3), "numbers", {}),
    "MeanSquaredLogarithmicError": ((2, 3), "positive", {}),
    "OneHotIoU": ((2, 3), "onehot", {"num_classes": COUNT, **ONE_CLASS}),
    "OneHotMeanIoU": ((2, 3), "onehot", {"num_classes": COUNT}),
    "PearsonCorrelation": ((3,), "numbers", {}),
    "Poisson": ((2, 3), "positive", {}),
    "Precision": ((2, 3), "binary", {}),
    "PrecisionAtRecall": ((2, 3), "binary", {"recall": 0.5}),
    "R2Score": ((2, 3), "numbers", {}),
    "Recall": ((2, 3), "binary", {}),
    "RecallAtPrecision": ((2, 3), "binary", {"precision": 0.5}),
    "RootMeanSquaredError": ((2, 3), "numbers", {}),
    "SensitivityAtSpecificity": ((2, 3), "binary", {"specificity": 0.5}),
    "SparseCategoricalAccuracy": ((2, 3), "sparse", {}),
    "SparseCategoricalCrossentropy": ((2, 3), "sparse", {}),
    "SparseTopKCategoricalAccuracy": ((2, 3), "sparse", {"k": 2}),
    "SpecificityAtSensitivity": ((2, 3), "binary", {"sensitivity": 0.5}),
    "SquaredHinge": ((2, 3), "signs", {}),
    "TopKCategoricalAccuracy": ((2, 3), "onehot", {"k": 2}),
    "TrueNegatives": ((2, 3), "binary", {}),
    "TruePositives": ((2, 3), "binary", {}),
}
LOOPED = ("AUC", "BinaryAccuracy", "F1Score", "MeanIoU", "PearsonCorrelation", "R2Score")
WEIGHTED = (
    "AUC",
    "BinaryAccuracy",
    "CategoricalCrossentropy",
    "F1Score",
    "MeanIoU",
    "MeanSquaredError",
    "PearsonCorrelation",
    "R2Score",
    "RootMeanSquaredError",
)


def plain(name: str) -> Item:
    versions, targets, named = CLASSES[name]
    make = call(f"metrics.{name}", **named)
    cells = EVALUATE + (LOOP if name in LOOPED else ())
    return Item(Kind.METRIC, name, "plain", make, cells, targets=targets, keras=versions)


def weighted(name: str) -> Item:
    with_ = (("sample_weight", True),)
    return replace(plain(name), option="sample_weight", cells=EVALUATE, with_=with_)


def of_values(name: str) -> Item:
    """A metric of values alone, without targets."""
    make = call(f"metrics.{name}")
    return Item(Kind.METRIC, name, "plain", make, LOOP, with_=(("values", True),))


ITEMS = [
    *[plain(name) for name in CLASSES],
    *[weighted(name) for name in WEIGHTED],
    *[of_values(name) for name in ("Mean", "Sum")],
]
NOT_SWEPT = {
    "Metric": "the base class",
    "MeanMetricWrapper": "the base class of most rows",
    "MeanTensor": "needs values of one shape, which parts of a batch have not",
}
