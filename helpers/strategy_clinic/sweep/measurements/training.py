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
        return Measured({"loss": model.evaluate(x, y, batch_size=BATCH, verbose=0)})
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
            loss = "sparse_categorical_crossentropy" if "class_weight" in item.options else "mse"
            compile_model(model, sgd, loss, **named)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    return model


def network(item: Item, place: Place) -> Any:
    keras = place.keras
    if "class_weight" in item.options:
        return one_layer(place, activation="softmax")
    if item.options.get("custom"):
        return with_train_step(place)
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


def trained(item: Item, place: Place, model: Any, x: Any, y: Any) -> Measured:
    named: dict[str, Any] = {"epochs": 2, **item.options.get("fitted", {})}
    if item.options.get("sample_weight"):
        random = np.random.default_rng(5)
        named["sample_weight"] = random.uniform(0.2, 2, size=len(x)).astype("float32")
    if "class_weight" in item.options:
        named["class_weight"] = item.options["class_weight"]
    given = data(item, place, x, y)
    if len(given) == 1:
        named["batch_size"] = None
    if item.options.get("data") == "generator":
        named["steps_per_epoch"] = place.steps()
    logs = fit(model, *given, **named).history
    history = [np.asarray(logs[name]) for name in sorted(logs)]
    return Measured({"weights": weights_of(place, model), "loss": history})


def data(item: Item, place: Place, x: Any, y: Any) -> tuple[Any, ...]:
    batches = [(x[n : n + BATCH], y[n : n + BATCH]) for n in range(0, len(x), BATCH)]
    how = item.options.get("data")
    if how == "dataset":
        return (tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH),)
    if how == "generator":
        return ((batch for _ in range(9) for batch in batches),)
    if how == "sequence":
        return (sequence(place, batches),)
    return x, y


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
        found = model.predict(x, batch_size=BATCH, verbose=0)
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
    if item.name == "test_on_batch":
        return Measured({"loss": model.test_on_batch(x, y)})
    loss = model.train_on_batch(x, y)
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
