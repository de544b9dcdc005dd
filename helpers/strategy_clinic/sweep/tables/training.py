"""Arguments and methods of a model: what is given to `fit`, and the methods that take one batch."""

from typing import Any

from ..items import BATCH, How, Item, Kind, Parts, Where

COUNTS = (2, 4)
ALL = ((How.FIT, Parts.EVEN, COUNTS), (How.FIT, Parts.EMPTY, COUNTS))
ON_BATCH = ((How.ON_BATCH, Parts.EVEN, COUNTS),)


def option(name: str, option: str, *cells: Where, **more: Any) -> Item:
    keras, where = more.pop("keras", (2, 3)), cells or ALL
    return Item(Kind.TRAINING, name, option, None, where, with_=tuple(more.items()), keras=keras)


FITTED = ((How.FIT, Parts.EVEN, COUNTS), (How.FIT, Parts.UNEVEN, COUNTS))
EVALUATED = ((How.EVALUATE, Parts.EVEN, COUNTS), (How.EVALUATE, Parts.UNEVEN, COUNTS))
METRICS = {"metrics": ["mae"]}
# Rows of Keras 3: arguments of `compile` and `fit`, kinds of data, and what a model can override.
FIT: dict[str, dict[str, Any]] = {
    "metrics": {"compiled": METRICS},
    "weighted_metrics": {"compiled": {"weighted_metrics": ["mae"]}, "sample_weight": True},
    "metrics after each batch": {"compiled": METRICS, "batch_logs": True},
    "auto_scale_loss": {"compiled": {"auto_scale_loss": False}},
    "two outputs": {"outputs": "two"},
    "loss_weights": {"outputs": "two", "compiled": {"loss_weights": [0.3, 0.7]}},
    "outputs by name": {"outputs": "dictionary"},
    "outputs of rank 1": {"rank": 1},
    "validation_data": {"validation": True},
    "validation_batch_size": {"validation": True, "fitted": {"validation_batch_size": 5}},
    "validation_freq": {"validation": True, "fitted": {"validation_freq": 2}},
    "validation_steps": {
        "validation": True,
        "fitted": {"validation_steps": 1, "validation_batch_size": 8},
    },
    "initial_epoch": {"fitted": {"initial_epoch": 1}},
    "batch_size": {"fitted": {"batch_size": 5}},
    "shuffle": {"fitted": {"shuffle": True}},
    # With more than one epoch it depends on threads which batches are lost: see upstream/generator_loses_batches.md.
    "one epoch of a generator": {"data": "generator", "fitted": {"epochs": 1}},
    "strings": {"inputs": "strings"},
    "sparse tensors": {"inputs": "sparse"},
    "ragged tensors": {"inputs": "ragged"},
    "train_step of the guide": {"custom": "train_step of the guide"},
    "compute_loss": {"custom": "compute_loss"},
}
EVALUATE: dict[str, dict[str, Any]] = {
    "sample_weight": {"sample_weight": True},
    "steps": {"evaluated": {"steps": 1}},
    "batch_size": {"evaluated": {"batch_size": 5}},
    "return_dict": {"evaluated": {"return_dict": True}, "compiled": METRICS},
    "outputs of rank 1": {"rank": 1},
    "two outputs": {"outputs": "two"},
    "one epoch of a generator": {"data": "generator"},
    "strings": {"inputs": "strings"},
    "sparse tensors": {"inputs": "sparse"},
}
ON_BATCHES: dict[str, dict[str, Any]] = {
    "sample_weight": {"sample_weight": True},
    "return_dict": {"on_batch": {"return_dict": True}},
}
# Arguments of Model that no row gives, of all methods or of one.
NOT_SWEPT = {
    "verbose": "prints",
    "x": "is the data",
    "y": "is the data",
    "optimizer": "has a table of its own",
    "loss": "has a table of its own",
    "callbacks": "have a table of their own",
    "epochs": "is given in each row",
    "train_on_batch.class_weight": "is turned into a sample_weight, as in fit",
}
# The method to which each kind of option is given.
OPTIONS_OF = {
    "compiled": "compile",
    "fitted": "fit",
    "evaluated": "evaluate",
    "predicted": "predict",
    "on_batch": "",  # that of the row
}

ITEMS = [
    option("fit", "plain", *ALL, (How.FIT, Parts.UNEVEN, COUNTS)),
    option("fit", "sample_weight", sample_weight=True),
    option("fit", "class_weight", class_weight={0: 1.0, 1: 3.0}),
    option("fit", "steps_per_execution", *ALL, compiled={"steps_per_execution": 2}),
    option("fit", "jit_compile", (How.FIT, Parts.EVEN, COUNTS), compiled={"jit_compile": True}),
    option("fit", "run_eagerly", (How.FIT, Parts.EVEN, COUNTS), compiled={"run_eagerly": True}),
    option(
        "fit",
        "steps_per_epoch",
        (How.FIT, Parts.EVEN, COUNTS),
        fitted={"steps_per_epoch": 1, "epochs": 2},
    ),
    option(
        "fit", "validation_split", (How.FIT, Parts.EVEN, COUNTS), fitted={"validation_split": 0.25}
    ),
    option("fit", "tf.data", *ALL, data="dataset"),
    option("fit", "Sequence", *ALL, data="sequence"),
    option("fit", "float16", (How.FIT, Parts.EVEN, COUNTS), policy="mixed_float16"),
    option("fit", "bfloat16", (How.FIT, Parts.EVEN, COUNTS), policy="mixed_bfloat16"),
    option("fit", "train_step", custom="train_step"),
    option("fit", "uneven first batch", (How.FIT, Parts.EVEN, COUNTS), rows=BATCH - 3),
    option("fit", "one row", (How.FIT, Parts.EVEN, COUNTS), rows=1),
    option("predict", "one row", (How.PREDICT, Parts.EVEN, COUNTS), rows=1),
    option(
        "evaluate",
        "plain",
        (How.EVALUATE, Parts.EVEN, COUNTS),
        (How.EVALUATE, Parts.UNEVEN, COUNTS),
        (How.EVALUATE, Parts.EMPTY, COUNTS),
    ),
    option(
        "evaluate",
        "steps_per_execution",
        (How.EVALUATE, Parts.EMPTY, COUNTS),
        compiled={"steps_per_execution": 2},
    ),
    option(
        "predict",
        "plain",
        (How.PREDICT, Parts.EVEN, COUNTS),
        (How.PREDICT, Parts.UNEVEN, COUNTS),
        (How.PREDICT, Parts.EMPTY, COUNTS),
    ),
    option(
        "predict",
        "steps_per_execution",
        (How.PREDICT, Parts.EVEN, COUNTS),
        (How.PREDICT, Parts.EMPTY, COUNTS),
        compiled={"steps_per_execution": 2},
    ),
    option("predict", "tf.data", (How.PREDICT, Parts.EMPTY, COUNTS), data="dataset"),
    option("predict", "dictionary", (How.PREDICT, Parts.UNEVEN, COUNTS), outputs="dictionary"),
    option("predict", "two outputs", (How.PREDICT, Parts.UNEVEN, COUNTS), outputs="two"),
    option("train_on_batch", "plain", *ON_BATCH),
    option("train_on_batch", "rows that the model reads", *ON_BATCH, counted=True),
    option("test_on_batch", "plain", *ON_BATCH),
    option("predict_on_batch", "plain", *ON_BATCH),
    *[
        option(method, name, *ON_BATCH, keras=(3,), **more)
        for method in ("train_on_batch", "test_on_batch")
        for name, more in ON_BATCHES.items()
    ],
    option(
        "model",
        "called in a loop",
        (How.LOOP, Parts.UNEVEN, COUNTS),
        (How.LOOP, Parts.EMPTY, COUNTS),
    ),
    *[option("fit", name, *FITTED, keras=(3,), **more) for name, more in FIT.items()],
    *[option("evaluate", name, *EVALUATED, keras=(3,), **more) for name, more in EVALUATE.items()],
    *[
        option(
            "predict", name, (How.PREDICT, Parts.EVEN, COUNTS), keras=(3,), predicted={name: value}
        )
        for name, value in {"steps": 1, "batch_size": 5}.items()
    ],
    option("keras.distribution", "DataParallel", (How.FIT, Parts.EVEN, COUNTS), keras=(3,)),
]
