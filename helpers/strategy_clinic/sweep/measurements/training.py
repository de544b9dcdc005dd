"""Arguments and methods of a model: weights, losses and outputs, and how many rows and devices took part."""

from typing import Any

import numpy as np
import tensorflow as tf

from ..items import BATCH, How, Item
from .place import (
    Measured,
    Place,
    compile_model,
    fit,
    one_layer,
    targets,
    train_loop,
    weights_of,
)


def measure(item: Item, how: How, place: Place) -> Measured:
    x, y = place.inputs(item), targets("numbers", place.rows)[:, :2]
    if item.name == "keras.distribution":
        return devices(place, x, y)
    if kind := item.options.get("inputs"):
        x = INPUTS[kind](x)
    if item.options.get("rank") == 1:
        y = y[:, 0]
    if count := item.options.get("rows"):
        x, y = x[:count], y[:count]
    if how is How.ON_BATCH:
        return on_batch(item, place, x[:BATCH], y[:BATCH])
    if "class_weight" in item.options:
        y = targets("sparse", place.rows) % 2
    model = compiled(item, place)
    if how is How.LOOP:
        with place.strategy.scope():
            sgd = place.keras.optimizers.SGD(0.1)
            sgd.build(model.trainable_variables)
        loss = train_loop(place, model, sgd, place.dataset(x, y))
        return Measured({"weights": weights_of(place, model), "loss": loss})
    if how is How.EVALUATE:
        return Measured({"loss": evaluated(item, place, model, x, y)})
    if how is How.PREDICT:
        return Measured({"outputs": predicted(item, model, x)})
    return trained(item, place, model, x, y)


def compiled(item: Item, place: Place) -> Any:
    keras = place.keras
    policy = item.options.get("policy", "float32")
    keras.mixed_precision.set_global_policy(policy)
    try:
        with place.scope():
            model = network(item, place)
            named = dict(item.options.get("compiled", {}))
            sgd = keras.optimizers.SGD(0.1, momentum=0.9)
            compile_model(model, sgd, losses(item), **named)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    return model


def losses(item: Item) -> Any:
    if "class_weight" in item.options:
        return "sparse_categorical_crossentropy"
    return OUTPUTS.get(item.options.get("outputs", ""), "mse")


OUTPUTS: dict[str, Any] = {"two": ["mse", "mse"], "dictionary": {"a": "mse", "b": "mse"}}


def network(item: Item, place: Place) -> Any:
    keras = place.keras
    if "class_weight" in item.options:
        return one_layer(place, activation="softmax")
    if custom := item.options.get("custom"):
        return CUSTOM[custom](place)
    if kind := item.options.get("inputs"):
        return NETWORKS[kind](keras)
    if item.options.get("rank") == 1:
        return keras.Sequential(
            [keras.Input((6,)), keras.layers.Dense(1), keras.layers.Reshape(())]
        )
    if outputs := item.options.get("outputs"):
        first = keras.Input((6,))
        one, other = keras.layers.Dense(2)(first), keras.layers.Dense(1)(first)
        return keras.Model(
            first, {"a": one, "b": other} if outputs == "dictionary" else [one, other]
        )
    return one_layer(place)


def with_train_step(place: Place) -> Any:
    """Returns a model with a `train_step` of its own, as the guide to customizing `fit` has it."""
    keras = place.keras

    class Own(keras.Sequential):  # type: ignore[misc, name-defined]
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data[:2]
            with tf.GradientTape() as tape:
                error = tf.reduce_mean(tf.square(self(x, training=True) - y), axis=-1)
                loss = tf.nn.compute_average_loss(error, global_batch_size=BATCH)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"steps": self.optimizer.iterations}

    return Own([keras.Input((6,)), keras.layers.Dense(2)])


def with_loss_of_the_guide(place: Place) -> Any:
    """Returns a model whose `train_step` reports its loss as Keras's guide to customizing `fit` does."""
    keras = place.keras

    class Own(keras.Sequential):  # type: ignore[misc, name-defined]
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data[:2]
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
            return {metric.name: metric.result() for metric in self.metrics}

    return Own([keras.Input((6,)), keras.layers.Dense(2)])


def with_compute_loss(place: Place) -> Any:
    """Returns a model with a loss of its own for `fit`: the mean over the examples that it gets."""
    keras = place.keras

    class Own(keras.Sequential):  # type: ignore[misc, name-defined]
        def compute_loss(self, x: Any, y: Any, y_pred: Any, *_: Any, **__: Any) -> Any:
            return tf.reduce_mean(tf.square(y_pred - y))

    return Own([keras.Input((6,)), keras.layers.Dense(2)])


CUSTOM = {
    "train_step": with_train_step,
    "train_step of the guide": with_loss_of_the_guide,
    "compute_loss": with_compute_loss,
}


# Inputs that are no dense numbers

WORDS = np.array(["red", "green", "blue"])


def words(x: Any) -> Any:
    return tf.constant(WORDS[(x > 0).astype(int) + (x > 1)])


def sparse(x: Any) -> Any:
    return tf.sparse.from_dense(x * (x > 0))


def ragged(x: Any) -> Any:
    return tf.RaggedTensor.from_tensor(x, lengths=1 + np.arange(len(x)) % x.shape[1])


INPUTS = {"strings": words, "sparse": sparse, "ragged": ragged}


def of_words(keras: Any) -> Any:
    lookup = keras.layers.StringLookup(vocabulary=list(WORDS))
    first = keras.Input((6,), dtype="string")
    flat = keras.layers.Flatten()(keras.layers.Embedding(4, 2)(lookup(first)))
    return keras.Model(first, keras.layers.Dense(2)(flat))


def of_sparse_rows(keras: Any) -> Any:
    return keras.Sequential([keras.Input((6,), sparse=True), keras.layers.Dense(2)])


def of_ragged_rows(keras: Any) -> Any:
    class Sums(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return tf.reshape(tf.reduce_sum(x, axis=1), (-1, 1))

    return keras.Sequential([keras.Input((None,), ragged=True), Sums(), keras.layers.Dense(2)])


NETWORKS = {"strings": of_words, "sparse": of_sparse_rows, "ragged": of_ragged_rows}


def trained(item: Item, place: Place, model: Any, x: Any, y: Any) -> Measured:
    named: dict[str, Any] = {"epochs": 2, **item.options.get("fitted", {})}
    if item.options.get("sample_weight"):
        named["sample_weight"] = random_weights(len(y))
    if "class_weight" in item.options:
        named["class_weight"] = item.options["class_weight"]
    if item.options.get("validation"):
        named["validation_data"] = (x[: BATCH - 3], y[: BATCH - 3])
    given = data(item, place, x, y)
    if len(given) == 1:
        named["batch_size"] = None
    kept: list[float] = []
    if item.options.get("batch_logs"):
        named["callbacks"] = [keeper(place.keras, kept)]
    logs = fit(model, *given, **named).history
    history = [np.asarray(logs[name]) for name in sorted(logs)]
    values = {"weights": weights_of(place, model), "loss": history}
    return Measured(values | ({"logs": kept} if item.options.get("batch_logs") else {}))


def random_weights(count: int) -> Any:
    return np.random.default_rng(5).uniform(0.2, 2, size=count).astype("float32")


def keeper(keras: Any, kept: list[float]) -> Any:
    """Returns a callback that keeps the numbers that it gets after each batch."""

    class Keeps(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            kept.extend(float(logs[name]) for name in sorted(logs))

    return Keeps()


def evaluated(item: Item, place: Place, model: Any, x: Any, y: Any) -> Any:
    named = dict(item.options.get("evaluated", {}))
    if item.options.get("sample_weight"):
        named["sample_weight"] = random_weights(len(y))
    given = data(item, place, x, y)
    sizes = {"batch_size": BATCH} if len(given) > 1 else {}
    found = model.evaluate(*given, **sizes | named, verbose=0)
    return [found[name] for name in sorted(found)] if isinstance(found, dict) else found


def data(item: Item, place: Place, x: Any, y: Any) -> tuple[Any, ...]:
    how = item.options.get("data")
    if how == "dataset":
        return (tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH),)
    if how == "generator":
        return ((batch for batch in batches(x, y)),)
    if how == "sequence":
        return (sequence(place, batches(x, y)),)
    if outputs := item.options.get("outputs"):
        return x, {"a": y, "b": y[:, :1]} if outputs == "dictionary" else [y, y[:, :1]]
    return x, y


def batches(x: Any, y: Any) -> list[Any]:
    return [
        (unaligned(x[n : n + BATCH]), unaligned(y[n : n + BATCH])) for n in range(0, len(x), BATCH)
    ]


def unaligned(values: Any) -> Any:
    """Returns a copy that does not begin at a multiple of 64 bytes: TensorFlow would use its memory, and may write there."""
    memory = np.empty(values.size + 32, values.dtype)
    start = (-memory.ctypes.data % 64 + 16) // values.itemsize
    found = memory[start : start + values.size].reshape(values.shape)
    found[:] = values
    return found


def sequence(place: Place, batches: list[Any]) -> Any:
    keras = place.keras
    base = keras.utils.Sequence if place.keras_version == 2 else keras.utils.PyDataset

    class Batches(base):  # type: ignore[misc, valid-type]
        def __len__(self) -> int:
            return len(batches)

        def __getitem__(self, index: int) -> Any:
            return batches[index]

    return Batches()


def predicted(item: Item, model: Any, x: Any) -> Any:
    if item.options.get("data") == "dataset":
        found = model.predict(tf.data.Dataset.from_tensor_slices(x).batch(BATCH), verbose=0)
    else:
        named = {"batch_size": BATCH} | item.options.get("predicted", {})
        found = model.predict(x, **named, verbose=0)
    if isinstance(found, dict):
        return [found[name] for name in sorted(found)]
    return found


def on_batch(item: Item, place: Place, x: Any, y: Any) -> Measured:
    """Calls the method once; `rows` is how many rows all replicas together have read."""
    keras = place.keras
    with place.scope():
        layers = [CountsRows(keras)] if item.options.get("counted") else []
        model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(2)])
        compile_model(model, keras.optimizers.SGD(0.1))
    if item.name == "predict_on_batch":
        return Measured({"outputs": model.predict_on_batch(x)})
    named = dict(item.options.get("on_batch", {}))
    if item.options.get("sample_weight"):
        named["sample_weight"] = random_weights(len(y))
    loss = getattr(model, item.name)(x, y, **named)
    loss = [loss[name] for name in sorted(loss)] if isinstance(loss, dict) else loss
    if item.name == "test_on_batch":
        return Measured({"loss": loss})
    if layers:
        return Measured({"rows": float(layers[0].rows.numpy())})
    return Measured({"weights": weights_of(place, model), "loss": loss})


def CountsRows(keras: Any) -> Any:  # noqa: N802 - makes a layer
    class Rows(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.rows = tf.Variable(
                0.0,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )

        def compute_output_shape(self, shape: Any) -> Any:
            return shape  # so that Keras does not trace the variable to infer it

        def call(self, x: Any) -> Any:
            if not tf.distribute.in_cross_replica_context():  # as when Keras builds the model
                self.rows.assign_add(tf.cast(tf.shape(x)[0], "float32"))
            return x

    return Rows()


def devices(place: Place, x: Any, y: Any) -> Measured:
    """Trains under keras.distribution.DataParallel; returns how many devices hold the model."""
    keras, count = place.keras, max(place.replicas, 1)
    names = [f"cpu:{number}" for number in range(count)]
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
    try:
        model = one_layer(place)
        compile_model(model, "sgd")
        fit(model, x, y)
    finally:
        keras.distribution.set_distribution(None)
    weights = [weight.value for weight in model.weights]
    held = {each.device for weight in weights for each in getattr(weight, "values", [weight])}
    return Measured({"devices": len(held)}, {"devices": count})
