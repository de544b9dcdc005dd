"""Real programs with one fault each, planted in correct programs that look alike and must stay without a finding."""

import pytest
from strategy_clinic.examiner.blame import code_at
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process

pytestmark = pytest.mark.replayed

DATA = """\
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
BATCH = 16
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 3)).astype("float32")
y = x @ np.array([[3.0], [-2.0], [5.0]], "float32") + 4
strategy = tf.distribute.MirroredStrategy()
"""
LOOP = f"""\
{DATA}

class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.unused = tf.keras.layers.Dense(3)
        self.first = tf.keras.layers.Dense(3, kernel_regularizer=tf.keras.regularizers.L2(0.01))
        self.last = tf.keras.layers.Dense(3)

    def call(self, inputs):
        self.unused(inputs)
        features = self.first(inputs)
        return tf.reduce_sum(self.last(features), axis=1, keepdims=True)


def built():
    model = Net()
    model(x[:1])
    return model


with strategy.scope():
    model = built()
    teacher = built()
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)
    first_only = tf.VariableAggregation.ONLY_FIRST_REPLICA
    count = tf.Variable(0, dtype=tf.int64, aggregation=first_only)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, count=count)
dataset = tf.data.Dataset.from_tensor_slices((x, y))
dataset = dataset.batch(BATCH)


def step(a, b):
    soft = teacher(a)
    weight = tf.minimum(1.0, tf.cast(count + 1, tf.float32) / 8.0)
    weights = model.trainable_variables
    with tf.GradientTape() as tape:
        output = model(a)
        errors = (tf.square(output - b) + tf.square(output - soft))[:, 0]
        loss = weight * tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
        loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
    found = tape.gradient(loss, weights)
    pairs = [(g, w) for g, w in zip(found, weights) if g is not None]
    optimizer.apply_gradients(pairs)
    count.assign_add(1)
    return loss


@tf.function
def train(a, b):
    losses = strategy.run(step, args=(a, b))
    return strategy.reduce("SUM", losses, axis=None)


for epoch in range(2):
    for a, b in strategy.experimental_distribute_dataset(dataset):
        loss = train(a, b)
    checkpoint.save("saved/epoch")
"""
OPTIMIZER = """\
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)
"""
SCALED = "tf.nn.scale_regularization_loss(tf.add_n(model.losses))"
PAIRS = "[(g, w) for g, w in zip(found, weights) if g is not None]"
OUTSIDE = [
    ("    teacher = built()\n", ""),
    ("with strategy.scope", "teacher = built()\nwith strategy.scope"),
]
IN_LOOP = {
    "an optimizer outside the scope": (
        "fm23",
        "optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)",
        [(OPTIMIZER, ""), ("checkpoint = tf", OPTIMIZER.replace("    ", "") + "checkpoint = tf")],
    ),
    "a loss that is divided twice": (
        "fm37",
        "loss /= strategy.num_replicas_in_sync",
        [("    found =", "        loss /= strategy.num_replicas_in_sync\n    found =")],
    ),
    "a penalty that is not divided": (
        "fm37",
        "loss += tf.add_n(model.losses)",
        [(SCALED, "tf.add_n(model.losses)")],
    ),
    "the batch of a replica, divided again": (
        "fm21",
        "dataset = dataset.batch(BATCH // strategy.num_replicas_in_sync)",
        [("batch(BATCH)", "batch(BATCH // strategy.num_replicas_in_sync)")],
    ),
    "data that are not distributed": (
        "fm53",
        "for a, b in dataset:",
        [("strategy.experimental_distribute_dataset(dataset)", "dataset")],
    ),
    "a count that is not saved, and a teacher outside the scope": (
        "fm05",
        "checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)",
        [(", count=count", ""), *OUTSIDE],
    ),
    "a list of gradients that is too short": (
        "fm13",
        "found = [each for each in found if each is not None]",
        [
            (
                f"pairs = {PAIRS}",
                "found = [each for each in found if each is not None]\n    pairs = zip(found, weights)",
            )
        ],
    ),
    "a variable that no gradient reaches": (
        "fm34",
        "features = tf.round(self.first(inputs))",
        [("self.first(inputs)", "tf.round(self.first(inputs))")],
    ),
}

FIT = f"""\
{DATA}

def compiled():
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        # Keras counts the end of data as a step, sometimes on one replica only, and updates of Adam depend on that.
        model.compile(tf.keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")
    return model


rows = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda a, b: True).batch(BATCH)
model = compiled()
model.fit(rows.repeat(), steps_per_epoch=4, epochs=2, verbose=0)
model.optimizer.learning_rate.assign(0.005)
model.fit(rows, validation_data=rows, verbose=0)
tf.train.Checkpoint(model=model, optimizer=model.optimizer).write("saved")
model = compiled()
print(model.optimizer.learning_rate.numpy())
tf.train.Checkpoint(model=model, optimizer=model.optimizer).read("saved")
start = float(model.optimizer.learning_rate.numpy())
decay = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: start * 0.9**epoch)
model.fit(rows, epochs=2, verbose=0, callbacks=[decay])
"""
READ = "start = float(model.optimizer.learning_rate.numpy())\n"
FAULTS_IN_FIT = [
    ("rows.repeat()", "rows"),
    (READ, ""),
    ("print(model.optimizer.learning_rate.numpy())\n", READ),
]


def found(text, edits, folder):
    """Returns the modes and lines that the examiner names in a program after these edits."""
    for old, new in edits:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    (folder / "train.py").write_text(text)
    server = python_process.fork_server()
    spec = ProgramSpec(("train.py",), folder, keras=3, fork_server=server)
    examination = plan.examine(spec)
    assert all(each.finished for each in examination.recordings)
    return [
        (each.mode, code_at(str(folder / "train.py"), each.line)) for each in examination.findings
    ]


@pytest.mark.parametrize("fault", IN_LOOP)
def test_a_fault_in_a_loop(fault, tmp_path):
    mode, line, edits = IN_LOOP[fault]
    others = [("fm25", "teacher = built()")] if "teacher" in fault else []
    assert found(LOOP, edits, tmp_path) == [(mode, line), *others]


def test_faults_around_fit(tmp_path):
    stops = "model.fit(rows, steps_per_epoch=4, epochs=2, verbose=0)"
    expected = [("fm42", stops), ("fm46", READ.strip())]
    assert sorted(found(FIT, FAULTS_IN_FIT, tmp_path)) == expected


@pytest.mark.parametrize("text", [LOOP, FIT], ids=["loop", "fit"])
def test_the_correct_programs(text, tmp_path):
    assert found(text, [], tmp_path) == []
