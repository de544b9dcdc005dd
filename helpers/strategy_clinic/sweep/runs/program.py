"""The program of a cell, as short as Keras lets it be: it prints what one device gives and what several replicas give."""

import ast
import functools
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..code import source_of
from ..items import BATCH, ROWS, Call, Cell, How, Item, Kind
from ..sizes import CLASSES, FEATURES, TIME

PACKAGE = __package__.rpartition(".")[0]
LIMIT = 240  # seconds for a look inside

PROGRAM = """import keras
import numpy as np
import tensorflow as tf
{own}
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * {replicas})


def run(strategy):
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(2)
{body}


{prints}"""
ONE_DEVICE = 'print("one device:", run(tf.distribute.get_strategy()))'
REPLICAS = """names = [each.name for each in tf.config.list_logical_devices("CPU")]
replicas = tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice())
print("{replicas} replicas:", run(replicas))"""

# Where Keras is told more than a row of a table has, the program runs the row.
OF_ROW = """from {package}.runs import cells

cells.start()
{prints}"""
ROW_ON = 'print("{where}:", cells.values_of_cell("{name}", {replicas}))'

FIT = "batch_size=16, epochs=2, shuffle=False, verbose=0"
RETURNS = {
    How.FIT: f"""    losses = model.fit(x, y, {FIT}).history["loss"]
    return losses, model.get_weights()""",
    How.EVALUATE: "    return model.evaluate(x, y, batch_size=16, verbose=0)",
    How.PREDICT: "    return model.predict(x, batch_size=16, verbose=0)",
}
BODIES = {
    Kind.OPTIMIZER: f"""    x = random.normal(size=({{rows}}, {FEATURES})).astype("float32")
    y = random.normal(size=({{rows}}, 2)).astype("float32")
    with strategy.scope():
        model = keras.Sequential([keras.Input(({FEATURES},)), keras.layers.Dense(2)])
        model.compile({{made}}, "mse", jit_compile=False)
""",
    Kind.LOSS: f"""    x = random.normal(size=({{rows}}, {FEATURES})).astype("float32")
    y = {{targets}}
    with strategy.scope():
        softmax = keras.layers.Dense({CLASSES}, activation="softmax")
        model = keras.Sequential([keras.Input(({FEATURES},)), softmax])
        model.compile(keras.optimizers.SGD(0.5), {{made}}, jit_compile=False)
""",
    Kind.LAYER: """    x = {inputs}
    y = x.reshape(len(x), -1).mean(axis=1, keepdims=True)
    with strategy.scope():
        first = keras.Input(x.shape[1:], dtype=x.dtype)
        between = keras.ops.cast({made}(first), "float32")
        last = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.1))
        model = keras.Model(first, last(keras.layers.Flatten()(between)))
        rate = 0.2 / last.kernel.shape[0]
        model.compile(keras.optimizers.SGD(rate), "mse", jit_compile=False)
""",
    Kind.METRIC: f"""    x = random.uniform(0.05, 1, size=({{rows}}, {CLASSES})).astype("float32")
    x /= x.sum(axis=1, keepdims=True)
    y = {{targets}}
    with strategy.scope():
        model = keras.Sequential([keras.Input(({CLASSES},)), keras.layers.Activation("linear")])
        model.compile(loss=lambda y, x: 0.0 * tf.reduce_sum(x, axis=-1), metrics=[{{made}}])
""",
}
RANDOM = """    x = np.repeat({inputs}[:1], {batch} // strategy.num_replicas_in_sync, axis=0)
    with strategy.scope():
        layer = {made}
        layer.build(x.shape)
    outputs = strategy.run(tf.function(lambda: layer(x, training=True)))
    outputs = np.concatenate(strategy.experimental_local_results(outputs))
    halves = np.split(outputs, 2)
    return "equal halves" if np.array_equal(*halves) else "halves that differ"
"""
TARGETS = {
    "onehot": f'np.eye({CLASSES}, dtype="float32")[random.integers({CLASSES}, size={{rows}})]',
    "sparse": f'random.integers({CLASSES}, size={{rows}}).astype("int32")',
    "binary": f'random.integers(2, size=({{rows}}, {CLASSES})).astype("float32")',
    "signs": f'random.integers(2, size=({{rows}}, {CLASSES})).astype("float32") * 2 - 1',
    "numbers": f'random.normal(size=({{rows}}, {CLASSES})).astype("float32")',
    "positive": f'random.uniform(0.5, 2, size=({{rows}}, {CLASSES})).astype("float32")',
}


def program(cell: Cell) -> str:
    """Returns a program that runs a cell; it imports Keras alone where a table says all that is special in the row."""
    one = ONE_DEVICE if is_plain(cell) else row_on(cell, 0)
    return source(cell, f"{one}\n{on_replicas(cell)}")


def on_replicas(cell: Cell) -> str:
    return (
        REPLICAS.format(replicas=cell.replicas) if is_plain(cell) else row_on(cell, cell.replicas)
    )


def row_on(cell: Cell, replicas: int) -> str:
    where = f"{replicas} replicas" if replicas else "one device"
    return ROW_ON.format(where=where, name=cell.name, replicas=replicas)


def source(cell: Cell, prints: str) -> str:
    heading = f"# {cell.name}: {cell.item.make or cell.item.option}\n"
    if not is_plain(cell):
        return heading + OF_ROW.format(package=PACKAGE, prints=prints)
    own = "".join(f"\n\n{text}\n\n" for text in sources_of_own(cell.item.make))
    body = body_of(cell).rstrip("\n")
    return heading + PROGRAM.format(replicas=cell.replicas, own=own, body=body, prints=prints)


def is_plain(cell: Cell) -> bool:
    """Returns whether one of the programs above is that of the cell, with its row's class in it."""
    item = cell.item
    if item.with_ or not item.make or item.option == "repeated ids":
        return False
    if cell.how is How.LOOP:
        return item.kind is Kind.LAYER
    return item.kind in BODIES and not (item.kind is not Kind.LAYER and item.inputs)


def body_of(cell: Cell) -> str:
    item, rows = cell.item, ROWS[cell.parts]
    text = RANDOM if cell.how is How.LOOP else BODIES[item.kind] + RETURNS[cell.how]
    targets = TARGETS[item.targets or "numbers"].format(rows=rows)
    inputs = inputs_of(item, rows) if item.kind is Kind.LAYER else ""
    made = written(item.make)
    return text.format(rows=rows, targets=targets, inputs=inputs, made=made, batch=BATCH)


def inputs_of(item: Item, rows: int) -> str:
    size = (rows, *shapes()[item.inputs])
    if item.inputs == "ids":
        return f'random.integers(1, 9, size={size}).astype("int32")'
    return f'random.normal(size={size}).astype("float32")'


@functools.cache
def shapes() -> dict[str, tuple[int, ...]]:
    """Returns the shapes of inputs in `measurements/place.py`, which is read and not imported: it imports TensorFlow."""
    body = ast.parse(source_of("measurements.place")).body
    table = next(
        each for each in body if isinstance(each, ast.Assign) and "SHAPES" in ast.unparse(each)
    )
    sizes = {"BATCH": BATCH, "FEATURES": FEATURES, "TIME": TIME}
    return dict(eval(ast.unparse(table.value), sizes))


def written(value: Any) -> str:
    """Returns a value as source, with calls of Keras and of `measurements/own.py`."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(written, value))
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{comma})"
    if not isinstance(value, Call):
        return repr(value)
    own = value.name.startswith("own.")
    name = value.name.removeprefix("own.") if own else f"keras.{value.name}"
    named = [f"{key}={written(each)}" for key, each in value.named]
    return f"{name}({', '.join([*['keras'] * own, *map(written, value.arguments), *named])})"


def sources_of_own(value: Any) -> list[str]:
    """Returns the functions of `measurements/own.py` that a value calls."""
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in sources_of_own(each)]
    if not isinstance(value, Call):
        return []
    inner = [value.arguments, tuple(each for _, each in value.named)]
    mine = [own()[value.name[4:]]] if value.name.startswith("own.") else []
    return mine + [text for each in inner for text in sources_of_own(each)]


@functools.cache
def own() -> dict[str, str]:
    """Returns the source of each function of `measurements/own.py`, without types and with the sizes that it reads."""
    text = source_of("measurements.own")
    functions = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    return {each.name: plain_source(each) for each in functions}


def plain_source(function: ast.FunctionDef) -> str:
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(function).replace("FEATURES", str(FEATURES))


# Where it differs first


def first_difference(cell: Cell) -> str:
    """Returns the first step in which replicas and one device differ, as `clinic show` prints it, or why there is none."""
    if importlib.util.find_spec("strategy_clinic") is None:
        return "Where it differs first is not shown: strategy_clinic is not installed."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell.py"
        path.write_text(source(cell, on_replicas(cell)))
        command = [sys.executable, "-m", "strategy_clinic", "show", "--devices", str(cell.replicas)]
        try:
            done = subprocess.run(
                [*command, "--keras", str(cell.keras), str(path)],
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"Where it differs first is not shown: no end within {LIMIT} seconds."
    return (done.stdout or done.stderr).strip()
