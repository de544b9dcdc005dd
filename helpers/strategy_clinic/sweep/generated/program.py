"""A small training program of Keras 3 as choices, and its source."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

BATCH = 16
ARRAYS = "arrays"
PLAIN = "fit"
LONG = "long sequences"  # as many steps as rows in a batch, with an output for each step
TWO_OUTPUTS = "TwoOutputs"
IN_SCOPE = "compute_loss in the scope"
LOOP = "a loop with strategy.run"
DISTRIBUTION = "keras.distribution"
# The rounding of each policy, and with it how much a first weight is changed to see how a rounding error grows.
NUDGES = {"float32": 1e-6, "float8": 1e-6, "mixed_float16": 1e-3}

# What the batches of each kind of data are, given to `fit` and to `evaluate`.
DATA = {
    ARRAYS: "x, y, batch_size=16",
    "a tf.data.Dataset": "tf.data.Dataset.from_tensor_slices((x, y)).batch(16)",
    "a generator": "batches(x, y), steps_per_epoch=-(-len(x) // 16)",
    "a generator of slices": "slices(x, y), steps_per_epoch=-(-len(x) // 16)",
    "a generator of one epoch": "batches(x, y, epochs=1)",
    "a PyDataset": "Batches(x, y)",
}
INPUTS = {
    "vectors": "random.normal(size=({rows}, 6)).astype('float32')",
    "sequences": "random.normal(size=({rows}, 5, 4)).astype('float32')",
    "padded sequences": "padded(random.normal(size=({rows}, 5, 4)).astype('float32'))",
    "ids": "random.integers(0, 9, size=({rows}, 5))",
    "images": "random.normal(size=({rows}, 8, 8, 3)).astype('float32')",
    LONG: "random.normal(size=({rows}, 16, 4)).astype('float32')",
}
SHAPES = {
    "vectors": "(6,)",
    "sequences": "(5, 4)",
    "padded sequences": "(5, 4)",
    "ids": "(5,), dtype='int32'",
    "images": "(8, 8, 3)",
    LONG: "(16, 4)",
}
TARGETS = {
    "numbers": "random.normal(size=({rows}, 3)).astype('float32')",
    "one number": "random.normal(size={rows}).astype('float32')",
    "classes": "random.integers(0, 3, size={rows})",
    "onehot": "np.eye(3, dtype='float32')[random.integers(0, 3, size={rows})]",
    "binary": "random.integers(0, 2, size=({rows}, 3)).astype('float32')",
    "of each step": "random.normal(size=({rows}, 16, 3)).astype('float32')",
}
# What is done after one of two epochs, and before the other: the run must go on as if it had not been interrupted.
SAVES = {
    "saved as .keras": ".keras",
    "saved as .h5": ".h5",
}
# What BackupAndRestore is given, and after how many of the steps of an epoch the run is stopped.
BACKUPS = {
    "stopped between epochs": ("'backup'", "{epoch}"),
    "stopped in an epoch": ("'backup', save_freq=1", "1"),
}
HELPERS = {
    "batches(": """
def batches(x, y, epochs=9):
    for _ in range(epochs):
        for n in range(0, len(x), 16):
            yield x[n : n + 16].copy(), y[n : n + 16].copy()
""",
    "slices(": """
def slices(x, y):
    for _ in range(9):
        for n in range(0, len(x), 16):
            yield x[n : n + 16], y[n : n + 16]
""",
    "aligned(": '''
def aligned(values):
    """Returns a copy in memory that TensorFlow uses as it is."""
    memory = np.empty(values.size + 16, values.dtype)
    start = -memory.ctypes.data % 64 // values.itemsize
    memory[start : start + values.size] = values.ravel()
    return memory[start : start + values.size].reshape(values.shape)
''',
    "Batches(": """
class Batches(keras.utils.PyDataset):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return -(-len(self.x) // 16)

    def __getitem__(self, n):
        rows = slice(16 * n, 16 * n + 16)
        return self.x[rows].copy(), self.y[rows].copy()
""",
    "padded(": """
def padded(x):
    lengths = 1 + np.arange(len(x)) % x.shape[1]
    x[np.arange(x.shape[1]) >= lengths[:, None]] = 0
    return x
""",
    "AddsLoss(": """
class AddsLoss(keras.layers.Layer):
    def call(self, x):
        self.add_loss(0.01 * tf.reduce_sum(tf.square(x)))
        return x
""",
    "Logs(": """
class Logs(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs):
        self.losses.append(logs["loss"])
""",
    "Counts(": """
class Counts(keras.layers.Layer):
    def __init__(self, aggregation):
        super().__init__()
        self.rows = self.add_weight(
            initializer="zeros", trainable=False, aggregation=aggregation
        )

    def call(self, x, training=False):
        if training:
            self.rows.assign_add(tf.cast(tf.shape(x)[0], "float32"))
        return x
""",
    "Stop": """
class Stop(Exception):
    pass


class Stops(keras.callbacks.Callback):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def on_train_batch_begin(self, batch, logs):
        if int(self.model.optimizer.iterations.numpy()) >= self.steps:
            raise Stop
""",
    "densify(": """
def densify(optimizer):
    apply = optimizer.apply
    optimizer.apply = lambda gradients, variables=None: apply(
        [tf.convert_to_tensor(each) for each in gradients], variables
    )
""",
    "devices_of(": """
def devices_of(model):
    values = [weight.value for weight in model.weights]
    return len({each.device for value in values for each in getattr(value, "values", [value])})
""",
    "TwoOutputs(": """
def TwoOutputs(layers):
    model = keras.Sequential(layers)
    return keras.Model(model.inputs, [model.outputs[0], 2.0 * model.outputs[0]])
""",
    "in_loop(": """
def in_loop(strategy, model, x, y):
    def replica(x, y):
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(model(x, training=True) - y), axis=-1)
            loss = tf.nn.compute_average_loss(error, global_batch_size=16)
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica, batch), axis=None)

    with strategy.scope():
        model.optimizer.build(model.trainable_variables)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    return [float(step(batch)) for batch in strategy.experimental_distribute_dataset(data)]
""",
    "OwnStep(": """
class OwnStep(keras.Sequential):
    def train_step(self, data):
        x, y = data[:2]
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}
""",
    "OwnLoss(": """
class OwnLoss(keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return tf.reduce_mean(tf.square(y_pred - y))
""",
}


class Loss(NamedTuple):
    """The source of a loss, and the targets that it needs."""

    source: str
    targets: str


@dataclass(frozen=True)
class Program:
    """The choices of which a program is made; the first one of each list in `draws.py` is the plainest."""

    inputs: str = "vectors"
    layers: tuple[str, ...] = ()
    loss: Loss = Loss("keras.losses.MeanSquaredError()", "numbers")
    optimizer: str = "SGD"
    options: tuple[str, ...] = ()  # of the optimizer
    compiled: tuple[str, ...] = ()
    model: str = "keras.Sequential"
    data: str = ARRAYS
    rows: int = 2 * BATCH
    replicas: int = 2
    fitted: tuple[str, ...] = ()
    method: str = PLAIN
    policy: str = "float32"
    values: str = "finite"
    strategy: str = "MirroredStrategy"
    interrupted: str = ""  # a key of SAVES or BACKUPS
    again: str = ""  # "fit again"

    @property
    def choices(self) -> frozenset[str]:
        """Returns what is not plain in it, in words."""
        found: set[str] = set()
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Loss) or value == field.default:
                continue
            found |= set(value) if isinstance(value, tuple) else {f"{field.name}: {value}"}
        if self.loss != Program().loss:
            of = " of one number" if self.loss.targets == "one number" else ""
            found.add(f"loss: {self.loss.source}{of}")
        return frozenset(found)

    @property
    def nudge(self) -> float:
        return NUDGES[self.policy]

    @property
    def source(self) -> str:
        """Returns the program: `run(strategy)` trains a model and returns its numbers, and pairs that must be equal."""
        body = "\n".join(["def run(strategy):", *(f"    {line}" for line in self.lines())])
        used = [text.strip("\n") for name, text in HELPERS.items() if name in body]
        return "\n\n\n".join([IMPORTS, *used, body]) + "\n"

    @property
    def twins(self) -> dict[str, str]:
        """Returns the sources of programs that must give the same weights on one device, by what is other in them."""
        found = {}
        if self.interrupted:
            found["not interrupted"] = replace(self, interrupted="")
        if "run_eagerly=True" in self.compiled:
            found["traced"] = self.without_argument("run_eagerly=True")
        if "jit_compile=True" in self.compiled:
            found["not compiled by XLA"] = self.without_argument("jit_compile=True")
        sources = {name: each.source for name, each in found.items()}
        if self.inputs == "ids":
            sources["with dense gradients"] = self.source.replace(
                "return model\n", "densify(model.optimizer)\n        return model\n", 1
            ).replace("\n\n\ndef run(", f"\n{HELPERS['densify(']}\n\ndef run(", 1)
        return sources

    def without_argument(self, text: str) -> "Program":
        return replace(self, compiled=tuple(each for each in self.compiled if each != text))

    def lines(self) -> list[str]:
        logs = "Logs()" in self.fitted_text
        counted = [f'"{name}": ({pair}),' for name, pair in self.pairs().items()]
        return [
            *self.distribution(),
            "def made():",
            *[f"    {line}" for line in self.made()],
            "",
            "random = np.random.default_rng(2)",
            f"x = {INPUTS[self.inputs].format(rows=self.rows)}",
            f"y = {TARGETS[self.targets].format(rows=self.rows)}",
            *([f"x[{min(self.rows, BATCH) - 1}] = np.inf"] if self.values != "finite" else []),
            *(["x, y = aligned(x), aligned(y)"] if "slices" in self.data else []),
            "model = made()",
            *(["logs = Logs()"] if logs else []),
            *self.training_lines(),
            "values = {'weights': model.get_weights(), 'reported': numbers}",
            *(["values['after each batch'] = logs.losses"] if logs else []),
            *(
                ["pairs = {", *(f"    {line}" for line in counted), "}"]
                if counted
                else ["pairs = {}"]
            ),
            "return values, pairs",
        ]

    def distribution(self) -> list[str]:
        if self.strategy != DISTRIBUTION:
            return []
        return [
            "replicas = strategy.num_replicas_in_sync",
            'devices = [f"cpu:{number}" for number in range(replicas)]',
            "keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))",
            "strategy = tf.distribute.get_strategy()",
        ]

    def made(self) -> list[str]:
        policy = [f"keras.config.set_dtype_policy({self.policy!r})"]
        quantized = ["    model.quantize('float8')"]
        return [
            "keras.utils.set_random_seed(1)",
            *(policy if self.policy.startswith("mixed") else []),
            "with strategy.scope():",
            f"    model = {self.model}(",
            "        [",
            *[f"            {layer}," for layer in self.stack()],
            "        ]",
            "    )",
            *(quantized if self.policy == "float8" else []),
            f"    model.compile({self.compile_text})",
            "return model",
        ]

    @property
    def targets(self) -> str:
        return "of each step" if self.inputs == LONG else self.loss.targets

    def stack(self) -> list[str]:
        flat = [] if self.inputs in ("vectors", LONG) else ["keras.layers.Flatten()"]
        one = self.loss.targets == "one number"
        last = [f"keras.layers.Dense({1 if one else 3})"]
        if "crossentropy" in self.loss.source.lower() or "keras.losses.Dice" in self.loss.source:
            last = ["keras.layers.Dense(3, activation='softmax')"]
        shaped = ["keras.layers.Reshape(())"] if one else []
        return [f"keras.Input({SHAPES[self.inputs]})", *self.layers, *flat, *last, *shaped]

    @property
    def compile_text(self) -> str:
        arguments = ", ".join(["0.05", *self.options])
        optimizer = f"keras.optimizers.{self.optimizer}({arguments})"
        compiled = (
            "" if any(each.startswith("jit") for each in self.compiled) else "jit_compile=False"
        )
        loss = self.loss.source
        if self.model == TWO_OUTPUTS:
            loss = f"[{loss}, {loss}]"
        return ", ".join(filter(None, [optimizer, loss, compiled, *self.compiled]))

    @property
    def fitted_text(self) -> str:
        return ", ".join(self.fitted)

    @property
    def data_text(self) -> str:
        return (
            DATA[self.data].replace("y,", "[y, y],")
            if self.model == TWO_OUTPUTS
            else DATA[self.data]
        )

    @property
    def steps_of_an_epoch(self) -> int:
        return 1 if "steps_per_epoch=1" in self.fitted else -(-self.rows // BATCH)

    @property
    def epochs(self) -> int:
        return 1 if "epochs=1" in DATA[self.data] or "initial_epoch=1" in self.fitted else 2

    def pairs(self) -> dict[str, str]:
        """Returns what a program says of itself, and what is so: the source of both, by name."""
        found = {}
        if self.strategy == DISTRIBUTION:
            found["devices"] = "devices_of(model), replicas"
        skips = self.values != "finite" or any("accumulation" in each for each in self.options)
        if self.method == PLAIN and not skips:
            steps = self.steps_of_an_epoch * self.epochs * (2 if self.again else 1)
            found["steps"] = f"int(model.optimizer.iterations.numpy()), {steps}"
        if self.method == "evaluate" and self.is_recomputed:
            found["loss"] = "numbers[: len(recomputed)], np.array(recomputed)"
        return found

    @property
    def is_recomputed(self) -> bool:
        """Returns whether the loss of all rows is the mean of what the loss gives for each of them."""
        adds = any(word in each for each in self.layers for word in ("regularizer", "Adds", "Mask"))
        odd = any(word in self.loss.source for word in ("reduction", "ignore", "lambda", "Dice"))
        usual = self.model in (Program().model, TWO_OUTPUTS) and self.policy == "float32"
        return usual and self.values == "finite" and not adds and not odd

    def training_lines(self) -> list[str]:
        usual = f"numbers = [model.{self.method}(x[:16], y[:16]) for _ in range(2)]"
        ways: dict[str, Callable[[], list[str]]] = {
            PLAIN: self.fit_lines,
            "evaluate": self.evaluate_lines,
            "predict": lambda: ["numbers = model.predict(x, batch_size=16, verbose=0)"],
            "predict_on_batch": lambda: ["numbers = model.predict_on_batch(x[:16])"],
            IN_SCOPE: self.scope_lines,
            LOOP: lambda: ["numbers = in_loop(strategy, model, x, y)"],
        }
        return ways[self.method]() if self.method in ways else [usual]

    def scope_lines(self) -> list[str]:
        return [
            "with strategy.scope():",
            "    numbers = float(model.compute_loss(x=x, y=y, y_pred=model(x)))",
        ]

    def evaluate_lines(self) -> list[str]:
        lines = [f"numbers = np.ravel(model.evaluate({self.data_text}, verbose=0))"]
        if not self.is_recomputed:
            return lines
        total = ["recomputed = [sum(recomputed), *recomputed]"] if self.model == TWO_OUTPUTS else []
        return [
            *lines,
            f"loss = keras.losses.get({self.loss.source})",
            "found = model.predict(x, batch_size=16, verbose=0)",
            "found = found if isinstance(found, list) else [found]",
            "recomputed = [float(np.mean(loss(y, each))) for each in found]",
            *total,
        ]

    def fit_lines(self) -> list[str]:
        last = "history = model.fit({}).history"
        after = [last.format(self.given(2))] if self.again else []
        return [
            *self.first_lines(),
            *after,
            "numbers = [history[name] for name in sorted(history)]",
        ]

    def first_lines(self) -> list[str]:
        if suffix := SAVES.get(self.interrupted):
            return [
                f"model.fit({self.given(1)})",
                f"model.save('model{suffix}')",
                "with strategy.scope():",
                f"    model = keras.models.load_model('model{suffix}')",
                f"history = model.fit({self.given(2, 'initial_epoch=1')}).history",
            ]
        if self.interrupted:
            arguments, steps = BACKUPS[self.interrupted]
            backup = f"keras.callbacks.BackupAndRestore({arguments})"
            stops = f"Stops({steps.format(epoch=self.steps_of_an_epoch)})"
            return [
                "with contextlib.suppress(Stop):",
                f"    model.fit({self.given(2, f'callbacks=[{backup}, {stops}]')})",
                "model = made()",
                f"history = model.fit({self.given(2, f'callbacks=[{backup}]')}).history",
            ]
        return [f"history = model.fit({self.given(2)}).history"]

    def given(self, epochs: int, *more: str) -> str:
        """Returns the arguments of `fit`."""
        data = self.data_text
        given = "" if "epochs=1" in data else f"epochs={epochs}"
        fitted = self.fitted_text.replace("Logs()", "logs")
        return ", ".join(filter(None, [data, given, "shuffle=False", "verbose=0", fitted, *more]))


IMPORTS = "import contextlib\n\nimport keras\nimport numpy as np\nimport tensorflow as tf"
