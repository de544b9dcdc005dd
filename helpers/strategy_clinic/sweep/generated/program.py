"""A small training program of Keras 3 as choices, and its source."""

from dataclasses import dataclass, fields
from typing import NamedTuple

BATCH = 16
ARRAYS = "arrays"
PLAIN = "fit"

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
}
SHAPES = {
    "vectors": "(6,)",
    "sequences": "(5, 4)",
    "padded sequences": "(5, 4)",
    "ids": "(5,), dtype='int32'",
    "images": "(8, 8, 3)",
}
TARGETS = {
    "numbers": "random.normal(size=({rows}, 3)).astype('float32')",
    "one number": "random.normal(size={rows}).astype('float32')",
    "classes": "random.integers(0, 3, size={rows})",
    "onehot": "np.eye(3, dtype='float32')[random.integers(0, 3, size={rows})]",
    "binary": "random.integers(0, 2, size=({rows}, 3)).astype('float32')",
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
    "OwnStep(": """
class OwnStep(keras.Sequential):
    def train_step(self, data):
        x, y = data
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
    loss: Loss = Loss("'mse'", "numbers")
    optimizer: str = "SGD"
    options: tuple[str, ...] = ()  # of the optimizer
    compiled: tuple[str, ...] = ()
    model: str = "keras.Sequential"
    data: str = ARRAYS
    rows: int = 2 * BATCH
    replicas: int = 2
    fitted: tuple[str, ...] = ()
    method: str = PLAIN

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
    def source(self) -> str:
        """Returns the program: `run(strategy)` trains a model and returns its numbers."""
        body = "\n".join(["def run(strategy):", *(f"    {line}" for line in self.lines())])
        used = [text.strip("\n") for name, text in HELPERS.items() if name in body]
        return "\n\n\n".join([IMPORTS, *used, body]) + "\n"

    def lines(self) -> list[str]:
        logs = "Logs()" in self.fitted_text
        return [
            "keras.utils.set_random_seed(1)",
            "random = np.random.default_rng(2)",
            f"x = {INPUTS[self.inputs].format(rows=self.rows)}",
            f"y = {TARGETS[self.loss.targets].format(rows=self.rows)}",
            *(["x, y = aligned(x), aligned(y)"] if "slices" in self.data else []),
            "with strategy.scope():",
            f"    model = {self.model}(",
            "        [",
            *[f"            {layer}," for layer in self.stack()],
            "        ]",
            "    )",
            f"    model.compile({self.compile_text})",
            *(["logs = Logs()"] if logs else []),
            *self.training_lines(),
            f"return model.get_weights(), numbers{', logs.losses' if logs else ''}",
        ]

    def stack(self) -> list[str]:
        flat = [] if self.inputs == "vectors" else ["keras.layers.Flatten()"]
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
        return ", ".join(filter(None, [optimizer, self.loss.source, compiled, *self.compiled]))

    @property
    def fitted_text(self) -> str:
        return ", ".join(self.fitted)

    def training_lines(self) -> list[str]:
        if self.method != PLAIN:
            return [f"numbers = [model.{self.method}(x[:16], y[:16]) for _ in range(2)]"]
        data = DATA[self.data]
        epochs = "" if "epochs=1" in data else "epochs=2"
        fitted = self.fitted_text.replace("Logs()", "logs")
        given = ", ".join(filter(None, [data, epochs, "shuffle=False", "verbose=0", fitted]))
        return [
            f"history = model.fit({given}).history",
            "numbers = [history[name] for name in sorted(history)]",
        ]


IMPORTS = "import keras\nimport numpy as np\nimport tensorflow as tf"
