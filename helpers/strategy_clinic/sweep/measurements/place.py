"""Where a cell runs, on which numbers, and what its measurement returns."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf

from ..items import BATCH, KERAS, ROWS, Call, Item, Parts, build
from ..sizes import CLASSES, FEATURES, TIME

Values = dict[str, Any]  # a number, an array, or a list of arrays
SHAPES = {
    "vectors": (FEATURES,),
    "sequences": (TIME, 4),
    "images": (8, 8, 3),
    "volumes": (4, 4, 4, 2),
    "films": (3, 6, 6, 2),
    "ids": (TIME,),
    "square": (BATCH, 4),  # as many time steps as rows in a batch
}


@dataclass(frozen=True)
class Measured:
    """What a run gave, and what is right where one device gives another value."""

    values: Values
    right: Values = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A number of replicas (0: one device without a strategy) and the parts into which the last batch is split."""

    keras_version: int
    replicas: int
    parts: Parts

    @cached_property
    def keras(self) -> Any:
        import importlib

        return importlib.import_module(KERAS[self.keras_version])

    @cached_property
    def strategy(self) -> Any:
        return strategy_of(self.replicas)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Enters the scope of the strategy, from the same random state at every place."""
        self.keras.utils.set_random_seed(1)
        with self.strategy.scope():
            yield

    @property
    def rows(self) -> int:
        return ROWS[self.parts]

    def build(self, wanted: Any) -> Any:
        return build(self.keras, wanted)

    def inputs(self, item: Item) -> Any:
        return inputs(item.inputs or "vectors", self.rows)

    def dataset(self, *arrays: Any) -> Any:
        """Returns the arrays as batches, distributed, with the weight 1 / (rows of the batch) of each row."""
        data = tf.data.Dataset.from_tensor_slices((*arrays, shares(self.rows))).batch(BATCH)
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        return self.strategy.experimental_distribute_dataset(data.with_options(options))

    def steps(self) -> int:
        return -(-self.rows // BATCH)

    def copies(self, value: Any) -> list[Any]:
        """Returns the array on each device."""
        return [np.asarray(each) for each in self.strategy.experimental_local_results(value)]


STRATEGIES: dict[int, Any] = {}


def strategy_of(replicas: int) -> Any:
    """Returns the strategy of this number of replicas: one for a process, which several models can share."""
    if replicas not in STRATEGIES:
        names = [device.name for device in tf.config.list_logical_devices("CPU")]
        STRATEGIES[replicas] = (
            tf.distribute.MirroredStrategy(
                names[:replicas], cross_device_ops=tf.distribute.ReductionToOneDevice()
            )
            if replicas
            else tf.distribute.get_strategy()
        )
    return STRATEGIES[replicas]


def shares(rows: int) -> Any:
    sizes = [min(BATCH, rows - first) for first in range(0, rows, BATCH)]
    return np.concatenate([np.full(size, 1 / size, "float32") for size in sizes])


def inputs(name: str, rows: int) -> Any:
    """Returns rows of random numbers of this kind, the same whenever it is asked."""
    random = np.random.default_rng(2)
    shape = (rows, *SHAPES[name])
    if name == "ids":
        return random.integers(1, 9, size=shape).astype("int32")
    return random.normal(size=shape).astype("float32")


def targets(name: str, rows: int) -> Any:
    """Returns the right answers that a loss or a metric asks for."""
    random = np.random.default_rng(3)
    classes = random.integers(0, CLASSES, size=rows)
    return {
        "onehot": np.eye(CLASSES, dtype="float32")[classes],
        "sparse": classes.astype("int32"),
        "binary": random.integers(0, 2, size=(rows, CLASSES)).astype("float32"),
        "column": random.integers(0, 2, size=(rows, 1)).astype("float32"),
        "signs": random.integers(0, 2, size=(rows, CLASSES)).astype("float32") * 2 - 1,
        "numbers": random.normal(size=(rows, CLASSES)).astype("float32"),
        "positive": random.uniform(0.5, 2, size=(rows, CLASSES)).astype("float32"),
    }[name]


def weights_of(place: Place, model: Any) -> list[Any]:
    """Returns the values of all weights, of the first device."""
    return [np.asarray(value) for value in model.get_weights()]


def optimizer_values(optimizer: Any) -> list[Any]:
    """Returns the numbers of an optimizer's variables, such as slots and the count of steps."""
    variables = optimizer.variables
    variables = variables() if callable(variables) else variables
    return [np.asarray(variable.numpy(), "float64") for variable in variables]


def fit(model: Any, *data: Any, epochs: int = 1, **named: Any) -> Any:
    usual = {"batch_size": BATCH, "shuffle": False, "verbose": 0, "epochs": epochs}
    return model.fit(*data, **usual | named)


def one_layer(place: Place, units: int = 2, activation: str | None = None) -> Any:
    keras = place.keras
    dense = keras.layers.Dense(units, activation=activation)
    return keras.Sequential([keras.Input((FEATURES,)), dense])


def compile_model(model: Any, optimizer: Any, loss: Any = "mse", **named: Any) -> None:
    """Compiles without XLA, which one device would use and replicas would not."""
    model.compile(optimizer, loss, **{"jit_compile": False} | named)


def train_loop(place: Place, model: Any, optimizer: Any, dataset: Any, epochs: int = 1) -> float:
    """Trains with strategy.run: each row has the weight 1 / (rows of the whole batch), so that parts do not matter."""

    def replica(x: Any, y: Any, share: Any) -> Any:
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(model(x, training=True) - y), axis=-1)
            loss = tf.reduce_sum(error * share)
        apply(optimizer, tape.gradient(loss, model.trainable_variables), model)
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def step(batches: Any) -> Any:
        return place.strategy.reduce("SUM", place.strategy.run(replica, next(batches)), axis=None)

    losses = []
    for _ in range(epochs):
        batches = iter(dataset)
        losses += [float(step(batches)) for _ in range(place.steps())]
    return losses[-1]


def apply(optimizer: Any, gradients: Any, model: Any) -> None:
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


def in_replicas(place: Place, function: Callable[..., Any], dataset: Any) -> list[Any]:
    """Calls a function in the replicas on every batch; returns for each batch the result of each replica."""

    @tf.function  # type: ignore[untyped-decorator]
    def step(batches: Any) -> Any:
        return place.strategy.run(function, next(batches))

    batches = iter(dataset)
    return [place.strategy.experimental_local_results(step(batches)) for _ in range(place.steps())]


def built_with(place: Place, item: Item, **named: Any) -> Any:
    assert isinstance(item.make, Call)
    return place.build(item.make.but(**named))
