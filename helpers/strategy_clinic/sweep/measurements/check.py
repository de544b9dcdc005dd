"""What a run says of itself, beside what is so: counted, computed from its outputs, or from a run without a restart."""

import contextlib
import math
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ..items import BATCH, How, Item
from ..sizes import FEATURES
from .callback import in_new_folder
from .onednn import shape_of_the_last_part
from .own import Stop, stop_after
from .place import (
    Measured,
    Place,
    compile_model,
    fit,
    inputs,
    one_layer,
    targets,
    train_loop,
    weights_of,
)
from .training import data, unaligned

EPOCHS = 2
WAIT = 0.1  # seconds; a deletion that does not wait takes a hundredth at most
TRIES, ITERATORS = 30, 8  # of a race


def measure(item: Item, how: How, place: Place) -> Measured:
    with in_new_folder():
        return CHECKS[item.name](item, how, place)


def arrays(place: Place) -> tuple[Any, Any]:
    return inputs("vectors", place.rows), targets("numbers", place.rows)[:, :2]


def compiled(place: Place, rate: float = 0.1, **named: Any) -> Any:
    with place.scope():
        model = one_layer(place)
        compile_model(model, place.keras.optimizers.Adam(rate), **named)
    return model


def built(place: Place, model: Any, rate: float = 0.1) -> Any:
    with place.strategy.scope():
        optimizer = place.keras.optimizers.Adam(rate)
        optimizer.build(model.trainable_variables)
    return optimizer


# Steps that are counted are batches that are given


def steps(item: Item, how: How, place: Place) -> Measured:
    x, y = arrays(place)
    at_once = {"steps_per_execution": item.options["at_once"]} if "at_once" in item.options else {}
    model = compiled(place, **at_once)
    if how is How.LOOP:
        optimizer = built(place, model)
        train_loop(place, model, optimizer, place.dataset(x, y), EPOCHS)
        return counted(optimizer, EPOCHS * place.steps())
    given = data(item, place, x, y)
    epochs = 1 if item.options.get("data") == "generator" else EPOCHS
    named = {"batch_size": None} if len(given) == 1 else {}
    count = item.options.get("steps")
    fit(model, *given, epochs=epochs, steps_per_epoch=count, **named)
    return counted(model.optimizer, epochs * (count or place.steps()))


def counted(optimizer: Any, right: int) -> Measured:
    return Measured({"steps": int(optimizer.iterations.numpy())}, {"steps": right})


# A loss that is reported is that of the outputs


def loss(item: Item, how: How, place: Place) -> Measured:
    """Compares the loss with that of all rows, for weights that no step changes."""
    x, y = arrays(place)
    model = compiled(place, rate=0.0)
    right = float(np.mean(np.square(model.predict(x, batch_size=BATCH, verbose=0) - y)))
    if item.option == "compute_loss in the scope":
        with place.strategy.scope():
            found = float(model.compute_loss(x=x, y=y, y_pred=model(x)))
        return Measured({"loss": found}, {"loss": right})
    if how is How.LOOP:
        found = train_loop(place, model, built(place, model, 0.0), place.dataset(x, y))
        last = slice((place.steps() - 1) * BATCH, None)
        outputs = model.predict(x[last], verbose=0)
        return Measured({"loss": found}, {"loss": float(np.mean(np.square(outputs - y[last])))})
    if how is How.EVALUATE:
        return Measured(
            {"loss": model.evaluate(x, y, batch_size=BATCH, verbose=0)}, {"loss": right}
        )
    return Measured({"loss": fit(model, x, y).history["loss"][-1]}, {"loss": right})


# What is interrupted is as what is not


def restart(item: Item, how: How, place: Place) -> Measured:
    x, y = arrays(place)
    if how is How.LOOP:
        return Measured(
            {"weights": loop_of(place, x, y, restarted=True)},
            {"weights": loop_of(alone(place), x, y, restarted=False)},
        )
    if how is How.EVALUATE:
        return evaluated_after_restart(place, x, y)
    return Measured(
        {"weights": fitted_again(place, x, y, interrupted=True)},
        {"weights": fitted_again(alone(place), x, y, interrupted=False)},
    )


def alone(place: Place) -> Place:
    return Place(place.keras_version, 0, place.parts)


def loop_of(place: Place, x: Any, y: Any, restarted: bool) -> list[Any]:
    model = compiled(place)
    optimizer = built(place, model)
    train_loop(place, model, optimizer, place.dataset(x, y))
    if restarted:
        path = tf.train.Checkpoint(model=model, optimizer=optimizer).save("checkpoint")
        model = compiled(place)
        optimizer = built(place, model)
        tf.train.Checkpoint(model=model, optimizer=optimizer).restore(path)
    train_loop(place, model, optimizer, place.dataset(x, y))
    return weights_of(place, model)


def evaluated_after_restart(place: Place, x: Any, y: Any) -> Measured:
    model = compiled(place)
    fit(model, x, y)
    right = model.evaluate(x, y, batch_size=BATCH, verbose=0)
    model.save("model.keras")
    with place.strategy.scope():
        model = place.keras.models.load_model("model.keras")
    return Measured({"loss": model.evaluate(x, y, batch_size=BATCH, verbose=0)}, {"loss": right})


def fitted_again(place: Place, x: Any, y: Any, interrupted: bool) -> list[Any]:
    keras, model = place.keras, compiled(place)
    if interrupted:
        stop = stop_after(keras, place.steps())
        with contextlib.suppress(Stop):
            fit(model, x, y, epochs=EPOCHS, callbacks=[backup(keras), stop])
        model = compiled(place)
    fit(model, x, y, epochs=EPOCHS, callbacks=[backup(keras)] if interrupted else [])
    fit(model, x, y, epochs=EPOCHS)
    return weights_of(place, model)


def backup(keras: Any) -> Any:
    return keras.callbacks.BackupAndRestore("backup")


# What is known otherwise


def unchanged_arrays(item: Item, how: How, place: Place) -> Measured:
    """Returns whether the arrays are as before; a generator gives slices, which TensorFlow reads where they are, or copies."""
    x, y = map(aligned, arrays(place))
    before, taken = (x.copy(), y.copy()), unaligned if item.options.get("copied") else np.asarray
    slices = (
        (taken(x[n : n + BATCH]), taken(y[n : n + BATCH])) for _ in range(9) for n in (0, BATCH)
    )
    fit(compiled(place), slices, epochs=EPOCHS, steps_per_epoch=2, batch_size=None)
    changed = [np.abs(one - other).max() for one, other in zip((x, y), before)]
    return Measured({"changed": float(max(changed))}, {"changed": 0.0})


def aligned(values: Any) -> Any:
    memory = np.empty(values.size + 16, values.dtype)
    start = -memory.ctypes.data % 64 // values.itemsize
    memory[start : start + values.size] = values.ravel()
    return memory[start : start + values.size].reshape(values.shape)


def paper(item: Item, how: How, place: Place) -> Measured:
    """Compares the steps on x * x with those of arXiv:2405.15682."""
    with place.scope():
        variable = place.keras.Variable(1.0)
        optimizer = place.keras.optimizers.ScheduleFreeAdamW(0.1, weight_decay=None)
        optimizer.build([variable])
    found = []
    for _ in range(4):
        place.strategy.run(lambda: optimizer.apply([2.0 * variable.value], [variable]))
        found.append(float(variable.numpy()))
    return Measured({"steps": np.asarray(found)}, {"steps": np.asarray(steps_of_the_paper(4))})


def steps_of_the_paper(count: int) -> list[float]:
    beta_1, beta_2, rate = 0.9, 0.999, 0.1
    z = x = y = 1.0
    v, found = 0.0, []
    for step in range(1, count + 1):
        v = beta_2 * v + (1 - beta_2) * (2 * y) ** 2
        z -= rate * 2 * y / (math.sqrt(v / (1 - beta_2**step)) + 1e-8)
        x += (z - x) / step
        y = (1 - beta_1) * z + beta_1 * x
        found.append(y)
    return found


def history(item: Item, how: How, place: Place) -> Measured:
    """Returns the largest input that a model of 8 bits remembers, and the largest that it was given."""
    x, y = arrays(place)
    x[BATCH - 1] *= 10  # the last part of a batch has the largest
    with place.scope():
        model = one_layer(place)
        model.quantize("float8")
        compile_model(model, "sgd")
    fit(model, x, y)
    found = float(np.max(model.layers[0].inputs_amax_history.numpy()))
    return Measured({"largest": found}, {"largest": float(np.max(np.abs(x)))})


def rows_of_a_sum(item: Item, how: How, place: Place) -> Measured:
    x, y = arrays(place)
    with place.scope():
        counter = summing(place.keras)
        layers = [place.keras.Input((FEATURES,)), counter, place.keras.layers.Dense(2)]
        model = place.keras.Sequential(layers)
        compile_model(model, "sgd")
    fit(model, x, y)
    return Measured({"rows": float(counter.rows.numpy())}, {"rows": float(place.rows)})


def summing(keras: Any) -> Any:
    class Counts(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.rows = self.add_weight(
                initializer="zeros", trainable=False, aggregation="sum", name="rows"
            )
            self.built = True

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                self.rows.assign_add(tf.cast(tf.shape(x)[0], "float32"))
            return x

    return Counts()


def norm_of_repeated_ids(item: Item, how: How, place: Place) -> Measured:
    """Returns how far one step of an embedding goes, whose gradient is clipped to the norm 0.1."""
    keras, ids = place.keras, np.zeros((BATCH, 1), "int32")
    with place.scope():
        model = keras.Sequential([keras.Input((1,), dtype="int32"), keras.layers.Embedding(2, 2)])
        compile_model(model, keras.optimizers.SGD(1.0, clipnorm=0.1))
    before = weights_of(place, model)[0]
    fit(model, ids, np.ones((BATCH, 1, 2), "float32"))
    return Measured(
        {"norm": float(np.linalg.norm(weights_of(place, model)[0] - before))}, {"norm": 0.1}
    )


def shape_of_a_part(item: Item, how: How, place: Place) -> Measured:
    """Returns the shape of what a convolution gives of the last part, which on one device has always a row."""
    if not place.replicas:
        return Measured({"shape": np.asarray((6, 6, 4))})
    shape = shape_of_the_last_part(place.replicas, place.parts, item.options["onednn"])
    return Measured({"shape": np.asarray(shape)})


def deletion_of_an_iterator(item: Item, how: How, place: Place) -> Measured:
    """Returns whether a deletion waits for the thread that autotunes the data, which is more often so on one CPU."""
    if not place.replicas:
        return Measured({"waits": 0.0})
    options = tf.data.Options()
    options.autotune.enabled = item.options["autotuned"]
    data = tf.data.Dataset.range(9).prefetch(tf.data.AUTOTUNE).with_options(options)
    with on_one_cpu():
        waits = any(longest_deletion(data) > WAIT for _ in range(TRIES))
    return Measured({"waits": float(waits)})


@contextlib.contextmanager
def on_one_cpu() -> Iterator[None]:
    """Lets this thread, and those that it starts, run on one CPU, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def longest_deletion(data: Any) -> float:
    """Returns the seconds that the slowest of some deletions takes, after as long as a step of training."""
    iterators = [iter(data) for _ in range(ITERATORS)]
    for iterator in iterators:
        next(iterator)
    time.sleep(0.4)
    times = [time.perf_counter()]
    while iterators:
        iterators.pop()
        times.append(time.perf_counter())
    return max(after - before for before, after in zip(times, times[1:]))


def orders_of_fit(item: Item, how: How, place: Place) -> Measured:
    """Each epoch of `fit` has an order of its own, though the program has a seed."""
    taken: list[float] = []

    class Kept(place.keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, rows: Any) -> Any:
            tf.py_function(lambda rows: taken.extend(rows.numpy()[:, 0]), [rows], [])
            return rows

    layers = place.keras.layers
    model = place.keras.Sequential([place.keras.Input((1,)), Kept(), layers.Dense(1)])
    compile_model(model, place.keras.optimizers.SGD(0.0))
    rows = np.arange(place.rows, dtype="float32")[:, None]
    fit(model, rows, rows, epochs=EPOCHS, shuffle=True)
    orders = {tuple(epoch) for epoch in np.reshape(taken, (EPOCHS, -1))}
    return Measured({"orders": len(orders)}, {"orders": EPOCHS})


CHECKS = {
    "steps": steps,
    "loss": loss,
    "restart": restart,
    "order": orders_of_fit,
    "arrays": unchanged_arrays,
    "paper": paper,
    "history": history,
    "rows": rows_of_a_sum,
    "repeated ids": norm_of_repeated_ids,
    "shape": shape_of_a_part,
    "deletion": deletion_of_an_iterator,
}
