"""Measures how large each error of `upstream` is on ordinary data: `python tools/measure_sizes.py [NAME ...]` prints it.

Small usual models are trained on a thousand generated examples, on one device and on two and four virtual devices of a CPU.
Each line compares what Keras gives with what is right: the mean and the standard deviation over seeds, and in per cent the
change at the same seed. What is right is the training on one device, unless a case says what else.
`--write` writes what was measured into the reports.
"""

import argparse
import contextlib
import functools
import inspect
import io
import json
import math
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

UPSTREAM = Path(__file__).parents[1] / "upstream"
ROWS, BATCH, EPOCHS, CLASSES = 1000, 32, 5, 5
STEPS = -(-ROWS // BATCH)
LONGER = 20  # epochs
SECTION = re.compile(r"(?<=^## Size\n\n```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
TEXT = "1,000 texts of 20 words of 200 by Zipf's law in 5 classes, batches of 32, 5 epochs"
TABLE = "1,000 rows of 20 numbers in 5 classes, batches of 32, 5 epochs"

Value = float | str
Values = dict[str, Value]


class Case(NamedTuple):
    """The data in words; what Keras gives and what is right, each by the number of devices and the seed."""

    data: str
    got: Callable[[int, int], Values]
    right: Callable[[int, int], Values]
    devices: Sequence[int] = (2, 4)
    seeds: int = 3


CASES: dict[str, Case] = {}


def case(data: str, right: Callable | None = None, **choices):
    """Adds a function to the table, by its name."""

    def add(got: Callable[[int, int], Values]):
        CASES[got.__name__] = Case(data, got, right or (lambda _, seed: got(1, seed)), **choices)
        return got

    return add


# Data and models


class Data(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray]


def parts(x, y, rows: int) -> Data:
    return Data(x[:rows], y[:rows], (x[rows:], y[rows:]))


def table_of(seed: int, rows: int = ROWS) -> Data:
    """Returns rows of numbers whose class a matrix decides, with noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows + ROWS, 20)).astype("float32")
    noise = random.normal(size=(len(x), CLASSES))
    return parts(x, np.argmax(x @ random.normal(size=(20, CLASSES)) + 2 * noise, axis=1), rows)


def texts_of(seed: int) -> Data:
    """Returns rows of words, of which some are frequent and most are not, and the class that most of the words speak for."""
    random = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, 201)
    x = random.choice(200, size=(2 * ROWS, 20), p=frequency / frequency.sum())
    speaks = random.normal(size=(200, CLASSES))
    return parts(x, np.argmax(speaks[x].sum(axis=1), axis=1), ROWS)


def sequences_of(seed: int, rows: int = ROWS, length: int = 20) -> Data:
    """Returns sequences of numbers with a class for each step."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows + ROWS, length, 8)).astype("float32")
    noise = random.normal(size=(len(x), length, CLASSES))
    return parts(x, np.argmax(x @ random.normal(size=(8, CLASSES)) + noise, axis=2), rows)


def classifier(*layers, kind: type = keras.Sequential, shape: tuple = (20,)) -> keras.Model:
    """Returns a network of two dense layers, with these layers between them."""
    first = keras.layers.Dense(32, activation="relu")
    return kind([keras.Input(shape), first, *layers, keras.layers.Dense(CLASSES)])


def strategy_of(devices: int):
    names = [f"CPU:{n}" for n in range(devices)]
    return tf.distribute.MirroredStrategy(names) if devices > 1 else tf.distribute.get_strategy()


def cross_entropy(**choices):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, **choices)


def sgd(**choices):
    return keras.optimizers.SGD(0.1, **choices)


def compiled(strategy, seed: int, make=classifier, optimizer=sgd, loss=cross_entropy, **choices):
    """Returns a model of the strategy, which begins with the same weights under each."""
    keras.utils.set_random_seed(seed)
    with strategy.scope():
        model = make()
        model.compile(optimizer(), loss(), jit_compile=False, **choices)
    return model


def fitted(model, data: Data, **choices) -> dict[str, list[float]]:
    usual = {"batch_size": BATCH, "epochs": EPOCHS, "shuffle": False, "verbose": 0}
    return model.fit(data.x, data.y, **usual | choices).history


def tested(model, data: Data, make=classifier) -> Values:
    """Returns the loss and the accuracy of the weights for other examples, on one device."""
    plain = make()
    plain.set_weights(model.get_weights())
    plain.compile(loss=cross_entropy(), metrics=["accuracy"], jit_compile=False)
    loss, accuracy = plain.evaluate(*data.test, batch_size=200, verbose=0)
    return {"test loss": loss, "test accuracy": accuracy}


def trained(strategy, seed: int, data: Data, make=classifier, **choices) -> tuple[Values, Any]:
    """Returns the reported loss and the test of a model after a training, and the model."""
    model = compiled(strategy, seed, make, **choices)
    reported = fitted(model, data)["loss"][-1]
    return {"reported loss": reported} | tested(model, data, make), model


def named(name: str, values: Values) -> Values:
    return {f"{name}, {key}": value for key, value in values.items()}


def outcome(call: Callable[[], Any]) -> str:
    """Returns the error that the call raises, or that it did not."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "trained"


def without(values: Values, *names: str) -> Values:
    return {name: value for name, value in values.items() if name not in names}


# The loss, and its scale


@case(f"{TABLE}, CentralStorageStrategy")
def assign_add_of_a_sum(devices: int, seed: int) -> Values:
    names = [f"CPU:{n}" for n in range(devices)]
    strategy = tf.distribute.experimental.CentralStorageStrategy(names, "CPU:0")
    return trained(strategy if devices > 1 else strategy_of(1), seed, table_of(seed))[0]


@case(f"{TABLE}, an own compute_loss that returns a mean")
def compute_loss_overridden(devices: int, seed: int) -> Values:
    class Own(keras.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return tf.reduce_mean(cross_entropy(reduction=None)(y, y_pred))

    def make():
        return classifier(kind=Own)

    found: Values = {}
    for name, optimizer in {"SGD": sgd, "Adam": keras.optimizers.Adam}.items():
        model = compiled(strategy_of(devices), seed, make, optimizer)
        reported = fitted(model, table_of(seed))["loss"][-1]
        values = {"reported loss": reported} | tested(model, table_of(seed))
        found |= named(name, values)
    return found


@case('1,000 rows of 20 numbers with a number for each, batches of 32, 5 epochs, "mse"')
def scalar_loss_in_fit(devices: int, seed: int) -> Values:
    data = table_of(seed)
    x, y = data.x, data.x.sum(axis=1) / 5
    found: Values = {}
    for name, optimizer in {
        "SGD(0.01)": lambda: keras.optimizers.SGD(0.01),
        "Adam": keras.optimizers.Adam,
    }.items():

        def make():
            layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
            return keras.Sequential([keras.Input((20,)), *layers, keras.layers.Reshape(())])

        model = compiled(strategy_of(devices), seed, make, optimizer, lambda: "mse")
        reported = fitted(model, Data(x, y, data.test))["loss"][-1]
        plain = make()
        plain.set_weights(model.get_weights())
        test = data.test[0]
        error = np.square(plain(test).numpy() - test.sum(axis=1) / 5).mean()
        found |= named(name, {"reported loss": reported, "test loss": float(error)})
    return found


@case(f"{TABLE}, the train_step of the guide")
def loss_of_own_train_step(devices: int, seed: int) -> Values:
    class Own(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
            variables = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            self.metrics[0].update_state(loss)
            return {metric.name: metric.result() for metric in self.metrics}

    data = table_of(seed)
    model = compiled(strategy_of(devices), seed, lambda: classifier(kind=Own))
    reported = fitted(model, data)["loss"][-1]
    return {"reported loss": reported} | tested(model, data)


@case(f"{TABLE}, then the loss of all rows")
def loss_in_scope(devices: int, seed: int) -> Values:
    data = table_of(seed)
    model = compiled(strategy_of(1), seed)
    fitted(model, data)
    with strategy_of(devices).scope():
        return {"loss, called in the scope": float(cross_entropy()(data.y, model(data.x)))}


@case(
    "1,000 sequences of 1 to 20 steps of 8 numbers with a mask, a class for each step, batches of 32, 5 epochs"
)
def masked_loss_mean_of_means(devices: int, seed: int) -> Values:
    data = sequences_of(seed)
    lengths = np.random.default_rng(seed).integers(1, 21, size=len(data.x))
    x = np.where(np.arange(20)[None, :, None] < lengths[:, None, None], data.x, 0)

    def make():
        return keras.Sequential([keras.layers.Masking(), classifier(shape=(20, 8))])

    def built():
        (model := make()).build((None, 20, 8))
        return model

    return trained(strategy_of(devices), seed, Data(x, data.y, data.test), built)[0]


@case("rows of 20 numbers in 5 classes, batches of 32 and one row in the last one, 5 epochs")
def fit_counts_empty_parts(devices: int, seed: int) -> Values:
    found: Values = {}
    for rows in (1025, 129):
        values, _ = trained(strategy_of(devices), seed, table_of(seed, rows))
        found |= named(f"{rows:,} rows", values)
    return found


def over_time(data: Data, weights: np.ndarray, seed: int) -> Values:
    """Returns the test of a model that was trained with weights, and how a training of a thousand rows ends."""

    def make():
        return classifier(shape=(32, 8))

    model = compiled(strategy_of(1), seed, make)
    fitted(model, data, sample_weight=weights)
    few = Data(data.x[:ROWS], data.y[:ROWS], data.test)
    ended = outcome(lambda: fitted(model, few, sample_weight=weights[:ROWS], epochs=1))
    return tested(model, data, make) | {"fit of 1,000 sequences": ended}


def weighted(seed: int) -> tuple[Data, np.ndarray]:
    """Returns sequences of which half are labelled at random, and a weight for each: 0.1 for those."""
    data = sequences_of(seed, 1024, 32)
    random = np.random.default_rng(seed)
    odd = random.random(len(data.x)) < 0.5
    data.y[odd] = random.integers(0, CLASSES, size=data.y[odd].shape)
    return data, np.where(odd, 0.1, 1.0).astype("float32")


def repeated_over_time(devices: int, seed: int) -> Values:
    data, weights = weighted(seed)
    return over_time(data, np.repeat(weights[:, None], 32, axis=1), seed)


SEQUENCES = "1,024 sequences of 32 steps, half with random labels and the weight 0.1, batches of 32, 5 epochs"


@case(SEQUENCES, repeated_over_time, devices=(1,))
def sample_weight_over_time(devices: int, seed: int) -> Values:
    data, weights = weighted(seed)
    return over_time(data, weights, seed)


# Optimizers


class LongestUpdate(keras.callbacks.Callback):
    """Keeps the longest step of the weights."""

    longest = 0.0

    def weights(self) -> np.ndarray:
        return np.concatenate([np.ravel(each) for each in self.model.get_weights()])

    def on_train_batch_begin(self, batch, logs=None):
        self.before = self.weights()

    def on_train_batch_end(self, batch, logs=None):
        self.longest = max(self.longest, float(np.linalg.norm(self.weights() - self.before)))


@case(f"{TABLE}, SGD(0.1, global_clipnorm=...)")
def clipping_before_all_reduce(devices: int, seed: int) -> Values:
    found: Values = {}
    for norm in (1.0, 0.1):
        optimizer = functools.partial(sgd, global_clipnorm=norm)
        model = compiled(strategy_of(devices), seed, optimizer=optimizer)
        fitted(model, table_of(seed), callbacks=[update := LongestUpdate()])
        times = {"longest update / largest allowed": update.longest / norm / 0.1}
        found |= named(f"norm {norm}", times | tested(model, table_of(seed)))
    return found


def embedding():
    layers = [keras.layers.Embedding(200, 16), keras.layers.GlobalAveragePooling1D()]
    return keras.Sequential([keras.Input((20,)), *layers, keras.layers.Dense(CLASSES)])


def matrix():
    """Returns the same network, whose table is a matrix for one-hot inputs."""
    dense = keras.layers.Dense(
        16, use_bias=False, kernel_initializer=keras.initializers.RandomUniform(-0.05, 0.05)
    )
    layers = [dense, keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(CLASSES)]
    return keras.Sequential([keras.Input((20, 200)), *layers])


def one_hot(data: Data) -> Data:
    eye = np.eye(200, dtype="float32")
    return Data(eye[data.x], data.y, (eye[data.test[0]], data.test[1]))


def of_words(make, data: Data, devices: int, seed: int, optimizers: dict) -> Values:
    found: Values = {}
    for name, optimizer in optimizers.items():
        model = compiled(strategy_of(devices), seed, make, optimizer)
        fitted(model, data, callbacks=[update := LongestUpdate()])
        values = named(name, tested(model, data, make))
        found |= values | ({f"{name}, longest update": update.longest} if "clip" in name else {})
    return found


ADAPTIVE = {
    "Adam(0.01)": lambda: keras.optimizers.Adam(0.01),
    "RMSprop(0.01)": lambda: keras.optimizers.RMSprop(0.01),
    "Adagrad(0.1)": lambda: keras.optimizers.Adagrad(0.1),
}
CLIPPED = {
    f"SGD(1.0, global_clipnorm={norm})": lambda norm=norm: keras.optimizers.SGD(
        1.0, global_clipnorm=norm
    )
    for norm in (1.0, 0.1)
}


@case(
    TEXT,
    lambda _, seed: of_words(matrix, one_hot(texts_of(seed)), 1, seed, ADAPTIVE),
    devices=(1, 2, 4),
)
def embedding_duplicate_ids(devices: int, seed: int) -> Values:
    return of_words(embedding, texts_of(seed), devices, seed, ADAPTIVE)


@case(
    TEXT, lambda _, seed: of_words(matrix, one_hot(texts_of(seed)), 1, seed, CLIPPED), devices=(1,)
)
def clipping_of_duplicate_ids(devices: int, seed: int) -> Values:
    return of_words(embedding, texts_of(seed), devices, seed, CLIPPED)


@case(f"{TABLE}, mixed_float16, a loss scale that is doubled each 2,000 steps (default) or 10")
def loss_scale_of_first_replica(devices: int, seed: int) -> Values:
    found: Values = {}
    keras.mixed_precision.set_global_policy("mixed_float16")
    for steps in (2000, 10):

        def optimizer(steps=steps):
            scaled = keras.mixed_precision.LossScaleOptimizer
            return scaled(sgd(), dynamic_growth_steps=steps)

        _, model = trained(strategy_of(devices), seed, table_of(seed), optimizer=optimizer)
        values = {"weights that are not finite": lost(model)} | tested(model, table_of(seed))
        found |= named(f"{steps:,} steps", values)
    keras.mixed_precision.set_global_policy("float32")
    return found


def lost(model) -> float:
    return float(sum(np.sum(~np.isfinite(weight)) for weight in model.get_weights()))


@case(f"{TABLE}, SGD(0.1, use_ema=True, ema_overwrite_frequency=32)", seeds=1)
def ema_overwrite_frequency(devices: int, seed: int) -> Values:
    average = {"use_ema": True, "ema_overwrite_frequency": 32}
    model = compiled(strategy_of(devices), seed, optimizer=lambda: sgd(**average))
    return {"fit": outcome(lambda: fitted(model, table_of(seed)))}


def copying() -> type:
    """Returns the optimizer with the repair of the report."""
    module = sys.modules[keras.optimizers.ScheduleFreeAdamW.__module__]
    names = dict(vars(module))
    source = inspect.getsource(module).replace("= momentum.value", "= ops.copy(momentum.value)")
    exec(re.sub(r"@keras_export\(.*?\)\n", "", source, flags=re.DOTALL), names)
    return names["ScheduleFreeAdamW"]


def schedule_free(kind: type, seed: int) -> Values:
    found: Values = {}
    for rate in (0.0025, 0.025):
        model = compiled(strategy_of(1), seed, optimizer=functools.partial(kind, rate))
        model.optimizer.build(model.trainable_variables)
        fitted(model, table_of(seed), epochs=10)
        found |= named(f"rate {rate}", tested(model, table_of(seed)))
    return found


@case(
    TABLE.replace("5 epochs", "10 epochs"),
    lambda _, seed: schedule_free(copying(), seed),
    devices=(1,),
)
def schedule_free_adamw_alias(devices: int, seed: int) -> Values:
    return schedule_free(keras.optimizers.ScheduleFreeAdamW, seed)


def tuned(seed: int, built: bool) -> Values:
    """Returns the test of a model that is trained from its first weights, and from those that a training has left."""
    data, found = table_of(seed), {}
    model = compiled(strategy_of(1), seed)
    for name in ("new weights, 5 epochs", "trained weights, 1 epoch more"):
        optimizer = keras.optimizers.ScheduleFreeAdamW(0.0025)
        model.compile(optimizer, cross_entropy(), jit_compile=False)
        if built:
            optimizer.build(model.trainable_variables)
        fitted(model, data, epochs=EPOCHS if "new" in name else 1)
        found |= named(name, tested(model, data))
        model = compiled(strategy_of(1), seed)
        fitted(model, data)
    return found


@case(TABLE, lambda _, seed: tuned(seed, True), devices=(1,))
def schedule_free_adamw_forgets_weights(devices: int, seed: int) -> Values:
    return tuned(seed, False)


# Layers


@case("rows of 20 numbers in 5 classes, BatchNormalization, batches of 32, one epoch", seeds=1)
def batch_normalization_empty_part(devices: int, seed: int) -> Values:
    def make():
        return classifier(keras.layers.BatchNormalization())

    found: Values = {}
    for rows in (1000, 1025, 1026, 1027):
        model = compiled(strategy_of(devices), seed, make)
        fitted(model, table_of(seed, rows), epochs=1)
        found[f"{rows:,} rows, weights that are NaN"] = lost(model)
    return found


@case("images of 8 x 8 x 3 in 5 classes, a convolution, batches of 32, one epoch", seeds=1)
def conv2d_of_an_empty_batch(devices: int, seed: int) -> Values:
    def make():
        layers = [keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(CLASSES)]
        return keras.Sequential([keras.Input((8, 8, 3)), *layers])

    found: Values = {}
    for rows in (1000, 1025):
        x = np.random.default_rng(seed).normal(size=(rows, 8, 8, 3)).astype("float32")
        model = compiled(strategy_of(devices), seed, make)
        data = Data(x, np.arange(rows) % CLASSES, (x, x))
        found[f"{rows:,} images, fit"] = outcome(functools.partial(fitted, model, data, epochs=1))
    return found


@case(f"{TABLE}, Dropout(0.5)", seeds=10)
def dropout_same_mask(devices: int, seed: int) -> Values:
    def make():
        return classifier(keras.layers.Dropout(0.5))

    return trained(strategy_of(devices), seed, table_of(seed), make)[0]


@case(f'{TABLE}, quantize("float8")')
def float8_history_of_first_replica(devices: int, seed: int) -> Values:
    def make():
        model = classifier()
        with contextlib.redirect_stdout(io.StringIO()):
            model.quantize("float8")
        return model

    values, model = trained(strategy_of(devices), seed, table_of(seed), make)
    largest = float(tf.reduce_max(model.layers[0].inputs_amax_history))
    return {"largest input in the history": largest} | values


def normalized(*layers):
    return classifier(keras.layers.BatchNormalization(), *layers)


def statistics_of_all(model) -> list[np.ndarray]:
    """Returns the weights, where each is the mean of the replicas' values."""
    read = [getattr(each.value, "values", [each.value]) for each in model.weights]
    return [np.mean([np.asarray(value) for value in values], axis=0) for values in read]


def of_statistics(devices: int, seed: int, all_replicas: bool) -> Values:
    data = table_of(seed)
    values, model = trained(strategy_of(devices), seed, data, normalized)
    averaged = normalized()
    averaged.set_weights(statistics_of_all(model) if all_replicas else model.get_weights())
    variance = float(np.mean(averaged.layers[1].moving_variance))
    return {"mean moving variance": variance} | tested(averaged, data, normalized)


@case(
    f"{TABLE}, BatchNormalization; right is the mean of the replicas' statistics",
    lambda devices, seed: of_statistics(devices, seed, True),
)
def moving_statistics_of_first_replica(devices: int, seed: int) -> Values:
    return of_statistics(devices, seed, False)


# Data


def batches_of(x: np.ndarray, y: np.ndarray, epochs: int = 1) -> Iterator:
    """Returns the batches of a generator of Python, which are slices of the arrays."""
    for _ in range(epochs):
        for start in range(0, len(x), BATCH):
            yield x[start : start + BATCH], y[start : start + BATCH]


def changed_by_fit(x: np.ndarray, y: np.ndarray, devices: int, seed: int, *layers) -> float:
    """Returns the per cent of the numbers of an array that an epoch changes."""

    def make():
        dense = keras.layers.Dense(CLASSES)
        return keras.Sequential([keras.Input((20,)), *layers, dense])

    before = x.copy()
    model = compiled(strategy_of(devices), seed, make)
    model.fit(batches_of(x, y), steps_per_epoch=STEPS, verbose=0)
    return float(100 * np.mean(x != before))


@case(f"{TABLE.replace('5 epochs', 'one epoch')}, a generator of slices of an array")
def distributed_generator_overwrites_arrays(devices: int, seed: int) -> Values:
    data, found = table_of(seed), {}
    arrays = {"an array of NumPy": np.array, "tensor.numpy()": lambda x: tf.identity(x).numpy()}
    for name, array in arrays.items():
        for first in ("Dense", "Rescaling"):
            layers = [keras.layers.Rescaling(0.5)] if first == "Rescaling" else []
            changed = changed_by_fit(array(data.x), data.y, devices, seed, *layers)
            found[f"{name}, {first} first, numbers changed in per cent"] = changed
    return found


@case(f"{TABLE}, a generator of 32 batches for each epoch")
def generator_loses_batches(devices: int, seed: int) -> Values:
    data, steps = table_of(seed), []
    model = compiled(strategy_of(devices), seed, metrics=["accuracy"])
    count = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: steps.append(batch)
    )
    for _ in range(EPOCHS):
        model.fit(batches_of(data.x, data.y), verbose=0, callbacks=[count])
    _, accuracy = model.evaluate(batches_of(*data.test), verbose=0)
    return {"batches trained": float(len(steps)), "accuracy of evaluate": accuracy} | tested(
        model, data
    )


def scheduled(seed: int, generator: bool) -> Values:
    """Returns the test of a training whose learning rate falls with the iterations."""
    data = table_of(seed)
    rate = keras.optimizers.schedules.CosineDecay(0.1, STEPS * EPOCHS)
    model = compiled(strategy_of(1), seed, optimizer=lambda: keras.optimizers.SGD(rate))
    for _ in range(EPOCHS):
        if generator:
            model.fit(batches_of(data.x, data.y), verbose=0)
        else:
            fitted(model, data, epochs=1)
    return {"iterations": float(model.optimizer.iterations)} | tested(model, data)


@case(f"{TABLE}, CosineDecay", lambda _, seed: scheduled(seed, False), devices=(1,))
def iterations_of_a_generator(devices: int, seed: int) -> Values:
    return scheduled(seed, True)


def ends_of_epochs(devices: int, seed: int, autotune: bool) -> Values:
    """Returns the seconds between the last step of an epoch and the next statement."""
    data, strategy = table_of(seed), strategy_of(devices)
    options = tf.data.Options()
    options.autotune.enabled = autotune
    rows = tf.data.Dataset.from_tensor_slices((data.x, data.y)).batch(BATCH).prefetch(-1)
    distributed = strategy.experimental_distribute_dataset(rows.with_options(options))
    model = compiled(strategy, seed)
    step = tf.function(lambda x: strategy.run(model, args=(x,)))
    longest = 0.0
    for _ in range(10):
        for x, _ in distributed:
            step(x)
            last = time.perf_counter()
        longest = max(longest, time.perf_counter() - last)
    return {"seconds of the slowest end of 10 epochs": longest}


@case(
    "1,000 rows of 20 numbers, batches of 32, 10 epochs of a loop; right is without autotuning",
    lambda devices, seed: ends_of_epochs(devices, seed, False),
)
def iterator_deletion_waits(devices: int, seed: int) -> Values:
    return ends_of_epochs(devices, seed, True)


# What is trained


def fine_tuned(seed: int, rate: float, is_set: bool) -> Values:
    """Returns what a model learns of a second task, whose base was frozen layer by layer until its head was trained."""
    keras.utils.set_random_seed(seed)
    dense = [keras.layers.Dense(32, activation="relu") for _ in range(2)]
    base = keras.Sequential([keras.Input((20,)), *dense])

    def make():
        return keras.Sequential([keras.Input((20,)), base, keras.layers.Dense(CLASSES)])

    fitted(compiled(strategy_of(1), seed, make), table_of(seed))
    second = table_of(seed + 100)
    for layer in base.layers:
        layer.trainable = False
    model = compiled(strategy_of(1), seed, make)
    fitted(model, second)
    if is_set:
        base.trainable = False  # so that the next value is another one
    base.trainable = True
    model.compile(keras.optimizers.SGD(rate), cross_entropy(), jit_compile=False)
    before = model.get_weights()
    fitted(model, second)
    changed = sum((old != new).any() for old, new in zip(before, model.get_weights()))
    return {"weights trained": float(changed)} | tested(model, second, make)


def fine_tuned_by_rates(seed: int, is_set: bool) -> Values:
    found: Values = {}
    for rate in (0.1, 0.01):
        found |= named(f"SGD({rate})", fine_tuned(seed, rate, is_set))
    return found


@case(
    f"{TABLE}; for other classes 5 of a new head on frozen layers, and 5 after base.trainable = True",
    lambda _, seed: fine_tuned_by_rates(seed, True),
    devices=(1,),
)
def trainable_set_again(devices: int, seed: int) -> Values:
    return fine_tuned_by_rates(seed, False)


# fit and its callbacks


class Stop(keras.callbacks.Callback):
    def __init__(self, step: int):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == self.step:
            raise KeyboardInterrupt


def interrupted(folder: str, seed: int, step: int, **choices):
    """Returns a model after a training that was interrupted at this step and resumed."""
    for stops in ([Stop(step)], []):
        model = compiled(strategy_of(1), seed)
        backup = keras.callbacks.BackupAndRestore(folder, **choices)
        with contextlib.suppress(KeyboardInterrupt):
            fitted(model, table_of(seed), callbacks=[backup, *stops])
    return model


def tested_with_steps(model, seed: int) -> Values:
    return {"updates": float(model.optimizer.iterations)} | tested(model, table_of(seed))


def uninterrupted(_: int, seed: int) -> Values:
    model = compiled(strategy_of(1), seed)
    fitted(model, table_of(seed))
    return tested_with_steps(model, seed)


@case(f"{TABLE}, save_freq=8, interrupted after 2.5 epochs", uninterrupted, devices=(1,))
def backup_repeats_batches(devices: int, seed: int) -> Values:
    with tempfile.TemporaryDirectory() as folder:
        return tested_with_steps(interrupted(folder, seed, STEPS * 5 // 2, save_freq=8), seed)


def trained_again(seed: int, resumed: bool) -> Values:
    """Returns what a second fit of three epochs does after a training of five."""
    with tempfile.TemporaryDirectory() as folder:
        if resumed:
            model = interrupted(folder, seed, STEPS * 5 // 2)
        else:
            model = compiled(strategy_of(1), seed)
            fitted(model, table_of(seed))
    epochs = len(fitted(model, table_of(seed), epochs=3).get("loss", ()))
    return {"epochs of a later fit(epochs=3)": float(epochs)} | tested(model, table_of(seed))


@case(
    f"{TABLE}, interrupted after 2.5 epochs and resumed, and 3 epochs more",
    lambda _, seed: trained_again(seed, False),
    devices=(1,),
)
def initial_epoch_stays(devices: int, seed: int) -> Values:
    return trained_again(seed, True)


def in_another_order(data: Data, random: np.random.Generator) -> Data:
    order = random.permutation(len(data.x))
    return Data(data.x[order], data.y[order], data.test)


def shuffled_each_epoch(_: int, seed: int) -> Values:
    """Returns what the same epochs do in an order of their own each."""
    data, model, random = (
        table_of(seed),
        compiled(strategy_of(1), seed),
        np.random.default_rng(seed),
    )
    for _ in range(LONGER):
        fitted(model, in_another_order(data, random), epochs=1)
    return tested(model, data)


@case(
    f"1,000 rows of 20 numbers in 5 classes, batches of 32, {LONGER} epochs of `fit` with shuffle=True after a seed",
    shuffled_each_epoch,
    devices=(1,),
    seeds=10,
)
def fit_has_one_order(devices: int, seed: int) -> Values:
    model = compiled(strategy_of(devices), seed)
    fitted(model, table_of(seed), shuffle=True, epochs=LONGER)
    return tested(model, table_of(seed))


@case(
    "1,000 rows of 20 numbers in 2 classes, batches of 32, 5 epochs; the mean over the batches of an epoch"
)
def logs_of_each_batch(devices: int, seed: int) -> Values:
    data = table_of(seed)
    kept: list[dict[str, float]] = []

    def make():
        dense = keras.layers.Dense(1, activation="sigmoid")
        return keras.Sequential([keras.Input((20,)), dense])

    strategy = strategy_of(devices)
    with strategy.scope():
        precision, auc = keras.metrics.Precision(name="precision"), keras.metrics.AUC(name="auc")
    choices = {"loss": lambda: "binary_crossentropy", "metrics": ["accuracy", precision, auc]}
    model = compiled(strategy, seed, make, **choices)
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: kept.append(dict(logs))
    )
    labels = (data.y < 1).astype("float32")[:, None]
    fitted(model, Data(data.x, labels, data.test), callbacks=[keep])
    return {
        name: statistics.mean(float(logs[name]) for logs in kept[-STEPS:])
        for name in ("loss", "accuracy", "precision", "auc")
    }


def per_epoch(seed: int, steps_per_execution: int) -> Values:
    """Returns the updates of five epochs of 32 batches, and the test."""
    data = table_of(seed)
    batches = tf.data.Dataset.from_tensor_slices((data.x, data.y)).repeat().batch(BATCH)
    model = compiled(strategy_of(1), seed, steps_per_execution=steps_per_execution)
    model.fit(batches, steps_per_epoch=STEPS, epochs=EPOCHS, verbose=0)
    rows = len(model.predict(batches, steps=STEPS, verbose=0))
    return tested_with_steps(model, seed) | {"rows of predict(steps=32)": float(rows)}


def by_executions(seed: int, *numbers: int) -> Values:
    found: Values = {}
    for shown, number in zip((8, 10), numbers):
        found |= named(f"steps_per_execution={shown}", per_epoch(seed, number))
    return found


@case(
    f"{TABLE} of 32 steps",
    lambda _, seed: by_executions(seed, 1, 1),
    devices=(1,),
)
def steps_per_execution_overruns(devices: int, seed: int) -> Values:
    return by_executions(seed, 8, 10)


ROWS_OF_CALLS: list[int] = []


class Rows(keras.layers.Layer):
    """Keeps how many rows each call gets."""

    def call(self, x):
        tf.py_function(lambda n: ROWS_OF_CALLS.append(int(n)), [tf.shape(x)[0]], [])
        return x


def shared_rows(devices: int, seed: int) -> Values:
    values = uninterrupted(1, seed)
    shares = {"rows of a batch on each device": BATCH / devices}
    return shares | {"rows of predict_on_batch": float(BATCH)} | without(values, "updates")


@case(f"{TABLE}, train_on_batch", shared_rows)
def on_batch_methods_not_distributed(devices: int, seed: int) -> Values:
    data = table_of(seed)
    model = compiled(strategy_of(devices), seed, lambda: classifier(Rows()))
    ROWS_OF_CALLS.clear()
    for x, y in batches_of(data.x, data.y, EPOCHS):
        model.train_on_batch(x, y)
    found = {"rows of a batch on each device": float(ROWS_OF_CALLS[0])}
    found["rows of predict_on_batch"] = float(len(model.predict_on_batch(data.x[:BATCH])))
    return found | tested(model, data)


@case(
    f"{TABLE}, DataParallel",
    lambda devices, seed: without(shared_rows(devices, seed), "rows of predict_on_batch"),
)
def keras_distribution_tensorflow(devices: int, seed: int) -> Values:
    names = keras.distribution.list_devices("cpu")[:devices]
    ROWS_OF_CALLS.clear()
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
    data = table_of(seed)
    model = compiled(strategy_of(1), seed, lambda: classifier(Rows()))
    fitted(model, data)
    keras.distribution.set_distribution(None)
    return {"rows of a batch on each device": float(max(ROWS_OF_CALLS))} | tested(model, data)


def as_worker() -> None:
    """Prints how `fit` ends on this worker, and ends the process, which would wait for the other."""
    model = compiled(tf.distribute.MultiWorkerMirroredStrategy(), 0)
    print(outcome(lambda: fitted(model, table_of(0))), flush=True)
    os._exit(0)


@case(f"{TABLE}, workers with a device each", seeds=1)
def fit_of_several_workers(devices: int, seed: int) -> Values:
    if devices == 1:
        return {"fit": "trained"}
    cluster = {"worker": [f"localhost:{25500 + n}" for n in range(devices)]}
    tasks = [{"cluster": cluster, "task": {"type": "worker", "index": n}} for n in range(devices)]
    run = [sys.executable, __file__, "--worker"]
    workers = [
        subprocess.Popen(
            run, env=os.environ | {"TF_CONFIG": json.dumps(task)}, stdout=-1, stderr=-3
        )
        for task in tasks
    ]
    ended = {worker.communicate()[0].decode().strip() or "ended" for worker in workers}
    return {"fit": " and ".join(sorted(ended))}


@case(
    f"{TABLE}, saved as .h5 and loaded",
    lambda *_: {"fit of the loaded model": "trained"},
    devices=(1,),
    seeds=1,
)
def h5_optimizer_without_variables(devices: int, seed: int) -> Values:
    data, model = table_of(seed), compiled(strategy_of(1), seed)
    fitted(model, data)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.h5")
        loaded = keras.models.load_model(f"{folder}/model.h5")
    return {"fit of the loaded model": outcome(lambda: fitted(loaded, data))}


# What is printed


def number(value: float) -> str:
    """Returns a number with three digits that say something."""
    if not math.isfinite(value) or value == int(value):
        return f"{value:.0f}"
    return digits(value, 3)


def digits(value: float, count: int) -> str:
    """Returns a number with so many digits that say something, and no exponent."""
    return f"{value:.{max(0, count - 1 - math.floor(math.log10(abs(value))))}f}"


def shown(values: Sequence[Value]) -> str:
    """Returns the mean and the standard deviation, or the only outcome."""
    if isinstance(values[0], str):
        return " or ".join(sorted(set(map(str, values))))
    numbers = [float(value) for value in values]
    mean = float(np.mean(numbers))
    spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0
    return number(mean) + (f" ± {digits(spread, 2)}" if spread > 1e-6 * abs(mean) else "")


def change(got: Sequence[Value], right: Sequence[Value]) -> str:
    """Returns the change in per cent at the same seed, where both are numbers."""
    if isinstance(got[0], str) or not all(right) or not np.all(np.isfinite(np.array(got, float))):
        return ""
    changes = [100 * (float(a) / float(b) - 1) for a, b in zip(got, right)]
    spread = f" ± {statistics.stdev(changes):.1f}" if len(changes) > 1 else ""
    return f": {statistics.mean(changes):+.1f}{spread} %"


def lines_of(name: str, devices: int) -> list[str]:
    """Returns a line for each quantity."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    case = CASES[name]
    got = [case.got(devices, seed) for seed in range(case.seeds)]
    right = [case.right(devices, seed) for seed in range(case.seeds)]
    place = "1 device" if devices == 1 else f"{devices} devices"
    return [f"{place}, {key}: {compared(key, got, right)}" for key in got[0]]


def compared(key: str, got: list[Values], right: list[Values]) -> str:
    pair = [each[key] for each in got], [each[key] for each in right]
    return f"got {shown(pair[0])}, right {shown(pair[1])}{change(*pair)}"


def measured(name: str) -> str:
    """Returns what a case shows. Each number of devices has a process, since TensorFlow reduces over one number of them."""
    case = CASES[name]
    lines = [f"{case.data}; {case.seeds} seeds" if case.seeds > 1 else case.data]
    for devices in case.devices:
        with multiprocessing.get_context("fork").Pool(1) as process:
            lines += process.apply(lines_of, (name, devices))
    return "\n".join(lines) + "\n"


def write(name: str, lines: str) -> None:
    report = UPSTREAM / f"{name}.md"
    report.write_text(SECTION.sub(lambda _: lines, report.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a report, such as loss_in_scope")
    parser.add_argument("--write", action="store_true", help="write the lines into the reports")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        as_worker()
    if unknown := sorted(set(arguments.names) - set(CASES)):
        parser.error(f"no report {', '.join(unknown)}; there are {', '.join(sorted(CASES))}")
    for name in arguments.names or CASES:
        print(name, lines := measured(name), sep="\n", flush=True)
        if arguments.write:
            write(name, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
