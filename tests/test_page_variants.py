"""What pages tell to paste works in other models than theirs, and what they say of the next form of their programs holds."""

import ast
import textwrap

import pytest
from conftest import ROOT
from strategy_clinic import Setup
from strategy_clinic.base import files
from strategy_clinic.programs.run import Job, run_program, run_programs
from thorough import mostly_thorough

PROGRAM = (ROOT / "tests" / "page_variants.py").read_text()
MARKER = "# paste\n"


def class_in(mode: str, subject: str, name: str) -> str:
    """Returns the source of a class of a page's program, with its decorators."""
    text = files.program_text(mode, subject)
    (found,) = [each for each in ast.parse(text).body if getattr(each, "name", "") == name]
    return ast.unparse(found)


def method_in(mode: str, subject: str, name: str, method: str) -> str:
    """Returns the source of a method of a class of a page's program."""
    (found,) = [
        each
        for each in ast.parse(class_in(mode, subject, name)).body[0].body
        if getattr(each, "name", "") == method
    ]
    return ast.unparse(found)


def block_in(mode: str, words: str) -> str:
    """Returns the block of code in the text of a page that has these words."""
    lines = files.mode_pages()[mode].read_text().splitlines()
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines)
    blocks = [each.partition("```\n")[0] for each in text.split("```python\n")[1:]]
    (found,) = [each for each in blocks if words in each]
    return found


def with_methods(head: str, block: str) -> str:
    return f"{head}\n{textwrap.indent(block, '    ')}\n"


WRAPPING = """\
@tf.keras.utils.register_keras_serializable()
class Wrapping(tf.keras.layers.Layer):
    def __init__(self, inner, **options):
        super().__init__(**options)
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)
"""
SCALING = """\
@tf.keras.utils.register_keras_serializable()
class Scaling(tf.keras.Model):
    def __init__(self, factor=1.0, **options):
        super().__init__(**options)
        self.factor, self.words = factor, tf.keras.layers.Embedding(7, 2)
        self.score = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.factor * self.score(tf.reduce_mean(self.words(inputs), axis=1))
"""


def pasted() -> str:
    pieces = [
        class_in("fm50", "fixed", "ClipsTheSum"),
        block_in("fm51", "def finite_everywhere").partition("\noptimizer")[0],
        class_in("fm56", "fixed", "OwnDropout"),
        f"PATCH = {block_in('fm56', 'def next_of_replica')!r}",
        block_in("fm55", "def dice"),
        block_in("fm54", "class Remembering"),
        with_methods(WRAPPING, block_in("fm30", "def from_config")),
        with_methods(SCALING, method_in("fm72", "fixed", "Scaled", "get_config")),
        class_in("fm33", "fixed", "Centre"),
    ]
    return "\n\n".join(pieces)


@pytest.mark.slow
@pytest.mark.parametrize("keras", mostly_thorough([3, 2]))
def test_what_is_pasted_works_in_other_models(keras):
    assert PROGRAM.count(MARKER) == 1
    text = PROGRAM.replace(MARKER, pasted())
    run = run_program(Job(text, Setup("default", 1, keras=keras), seconds=240))
    assert (run.error, run.printed) == (None, "all cases have run: True\n"), run


def test_the_class_that_is_shown_is_the_one_in_the_picture():
    shown = block_in("fm54", "class Remembering").partition("\n\n\nclass Stopping")[0]
    assert shown.partition("import json")[2] in files.mode_pages()["fm54"].read_text()


SAVED = f"""\
import tensorflow as tf

workers = tf.distribute.MultiWorkerMirroredStrategy()
strategy = workers
with strategy.scope():
    options = {{"aggregation": tf.VariableAggregation.SUM}}
    seen = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, **options)
checkpoint = tf.train.Checkpoint(seen=seen)
{block_in("fm47", "should_checkpoint")}
seen.numpy()  # ends when all workers have saved
print("one file stays:", tf.io.gfile.glob("saved/*.index") + tf.io.gfile.glob("scratch/*"))
"""
STAYS = "one file stays: ['saved/model-1.index']\n"


@pytest.mark.slow
@pytest.mark.parametrize("setup", mostly_thorough([Setup("default", 1), Setup("multi_worker", 2)]))
def test_each_worker_saves_and_one_file_stays(setup):
    """Without `TF_CONFIG`, as where a program is started once, the only worker keeps its file."""
    run = run_program(Job(SAVED, setup))
    assert (run.error, run.printed) == (None, STAYS), run


# What pages say of the next form of their programs.

CONDITION = """import tensorflow as tf

strategy = tf.distribute.get_strategy()
x = tf.ones((8, 1))


@tf.function
def choose(number):
    if number > 0.5:
        return 2.0 * number
    return number


class Counts(tf.keras.metrics.Metric):
    def __init__(self):
        super().__init__()
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, labels, outputs, sample_weight=None):
        self.total.assign_add(choose(tf.reduce_max(labels)))

    def result(self):
        return tf.identity(self.total)


class Own(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs * choose(tf.reduce_max(inputs)))


def error(labels, outputs):
    return tf.reduce_mean((labels - outputs) ** 2, axis=-1) * choose(tf.reduce_max(labels))


with strategy.scope():
    model = Own()
    model.compile("sgd", error, metrics=[Counts()])
model.fit(x, x, batch_size=8, verbose=0)
print("works")
"""
GRAPH = "    @tf.function\n"
CALL, UPDATE, FIT = "    def call(", "    def update_state(", "model.fit("
ASSIGN = "        self.total.assign_add(choose(tf.reduce_max(labels)))\n"
BRANCH = "        if tf.reduce_max(labels) > 0.5:\n            self.total.assign_add(1.0)\n"
BUILD = (
    "    def build(self, shape):\n        self.dense.build(shape)\n        self.built = True\n\n"
)
OF_CALL = CONDITION.replace(CALL, GRAPH + CALL)
CONDITIONS = {
    "none": CONDITION.replace("@tf.function\n", ""),
    "function": CONDITION,
    "call": OF_CALL,
    "call, called": OF_CALL.replace(FIT, f"model(x)\n{FIT}"),
    "call, build": OF_CALL.replace(GRAPH + CALL, BUILD + GRAPH + CALL),
    "update_state": CONDITION.replace(UPDATE, GRAPH + UPDATE).replace(ASSIGN, BRANCH),
}
MIRRORED = """import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
"""
BOOLEAN = f"""{MIRRORED}with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((tf.ones((24, 3)), tf.ones((24, 1)))).batch(12)
model.METHOD(data.map(lambda x, y: (x, LABELS)), verbose=0)
print("works")
"""
FIVE = f"""{MIRRORED}with strategy.scope():
    layers = [tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([tf.keras.Input((1,)), *layers])
    model.compile("sgd", loss="mse")
x = tf.reshape(tf.range(21.0) % 4, (21, 1))
data = tf.data.Dataset.from_tensor_slices((x, x))
model.fit(data.BATCHES, verbose=0)
weights = [tf.reduce_all(tf.math.is_finite(each)) for each in model.get_weights()]
print("finite:", bool(tf.reduce_all(weights)))
"""


def ends(text: str, *setups: Setup) -> list[str]:
    """Returns what a program prints under each setup, or its error."""
    runs = run_programs([Job(text, setup) for setup in setups])
    return [repr(run.error) if run.error else run.printed.strip() for run in runs]


@pytest.mark.slow
@pytest.mark.thorough
def test_a_condition_may_be_in_a_function_of_tensors_and_not_in_each_method():
    alone = [Setup("default", 1, keras=keras) for keras in (3, 2)]
    mirrored = [Setup("mirrored", count, keras=3) for count in (2, 4)]
    found = {name: ends(text, *alone, *mirrored) for name, text in CONDITIONS.items()}
    assert found["function"] == ["works"] * 4
    assert "Python `bool` is not allowed" in found["none"][0]
    for name in ("call", "call, called"):
        assert "No gradients provided" in found[name][0] and found[name][1] == "works"
    assert found["call, build"][:2] == ["works"] * 2
    assert found["update_state"][:2] == ["works"] * 2
    assert all("InaccessibleTensorError" in each for each in found["update_state"][2:])


@pytest.mark.slow
@pytest.mark.parametrize("method", mostly_thorough(["fit", "evaluate"], "fit"))
def test_labels_that_are_booleans_are_made_numbers(method):
    one, two = (Setup("mirrored", count, keras=3) for count in (1, 2))
    keras_2 = Setup("mirrored", 2, keras=2)
    text = BOOLEAN.replace("METHOD", method)
    found = ends(text.replace("LABELS", "y > 0.0"), one, two, keras_2)
    assert (found[0], found[2]) == ("works", "works")
    assert "InvalidArgumentError" in found[1] and "of bool" in found[1]
    assert ends(text.replace("LABELS", "tf.cast(y > 0.0, tf.float32)"), two) == ["works"]


@pytest.mark.slow
@pytest.mark.thorough
def test_five_examples_leave_one_of_four_replicas_without():
    two, four = (Setup("mirrored", count, keras=3) for count in (2, 4))
    assert ends(FIVE.replace("BATCHES", "batch(16)"), two, four) == [
        "finite: True",
        "finite: False",
    ]
    before, behind = "repeat().batch(16)", "batch(16).repeat()"
    found = [
        *ends(FIVE.replace("BATCHES", f"{before}, steps_per_epoch=3"), four),
        *ends(FIVE.replace("BATCHES", f"{behind}, steps_per_epoch=3"), four),
    ]
    assert found == ["finite: True", "finite: False"]
