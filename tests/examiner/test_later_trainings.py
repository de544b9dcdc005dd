"""Programs that train more than once: a later training is compared as the first one is."""

import pytest
from edited_programs import examined
from strategy_clinic.examiner.recording import observer_failures
from strategy_clinic.observer.events import StepEnded, StepsCounted

pytestmark = pytest.mark.replayed

LOOP = """\
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] - x[:, 1:2])).batch(8)
batches = strategy.experimental_distribute_dataset(data)
with strategy.scope():
    weights = tf.Variable(np.linspace(0.1, 0.9, 24, dtype="float32").reshape(3, 8))


def average(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size=8)


def train(step):
    @tf.function
    def train_step(x, y):
        strategy.run(step, args=(x, y))

    for x, y in batches:
        train_step(x, y)


def optimizer_of(rate):
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(rate)
        optimizer.build([weights])
    return optimizer


first, second = optimizer_of(0.05), optimizer_of(0.01)


def first_step(x, y):
    with tf.GradientTape() as tape:
        loss = average(tf.reduce_sum((x @ weights - y) ** 2, axis=-1))
    first.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))


def second_step(x, y):
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum((x @ weights - y) ** 2, axis=-1)
        loss = LOSS
    second.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))


train(first_step)
train(second_step)
"""
KERAS = """\
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MirroredStrategy()
x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] - x[:, 1:2])).batch(8)
with strategy.scope():
    body = tf.keras.layers.Dense(4, activation="relu")
    model = tf.keras.Sequential([tf.keras.Input((3,)), body, tf.keras.layers.Dense(1)])
    body.trainable = False
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.MeanSquaredError())
model.fit(data, verbose=0)
with strategy.scope():
    body.trainable = True
    model.compile(tf.keras.optimizers.Adam(0.001), LOSS)
model.fit(data, verbose=0)
"""
RIGHT = {
    "a loop": LOOP.replace("LOSS", "average(losses)"),
    "fit": KERAS.replace("LOSS", "tf.keras.losses.MeanSquaredError()"),
}
TRAIN = """\
    for x, y in batches:
        train_step(x, y)
"""
IN_GRAPH = """\
    @tf.function
    def train_steps(iterator):
        for _ in tf.range(2):
            strategy.run(step, args=next(iterator))

    iterator = iter(batches)
    for _ in range(2):
        train_steps(iterator)
"""
WRONG = {
    "the mean of a part": "tf.reduce_mean(losses)",
    "the average divided again": "average(losses) / strategy.num_replicas_in_sync",
    "a mean added to the average": "average(losses) + tf.reduce_mean(losses * losses)",
}


def seen_whole(folder, text):
    examination = examined(folder, text)
    assert observer_failures(examination.recordings) == ()
    return examination


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT.keys())
def test_two_right_trainings(text, tmp_path):
    examination = seen_whole(tmp_path, text)
    assert examination.findings == examination.notes == [] and not examination.failure
    steps = examination.recordings[0].of(StepEnded)
    assert [each.name for each in steps] == [
        "step 1", "step 2", "step 3",
        "step 1 of training 2", "step 2 of training 2", "step 3 of training 2",
    ]  # fmt: skip


def test_steps_in_a_loop_of_the_graph(tmp_path):
    """The graph of a step is then that of a loop, which names operations outside of it."""
    assert LOOP.count(TRAIN) == 1
    examination = seen_whole(tmp_path, RIGHT["a loop"].replace(TRAIN, IN_GRAPH))
    assert examination.findings == examination.notes == []
    steps = examination.recordings[0].of(StepEnded)
    assert [each.name for each in steps] == [
        "step 1", "step 2", "step 1 of training 2", "step 2 of training 2",
    ]  # fmt: skip
    counted = examination.recordings[0].last(StepsCounted)
    assert counted.activations is not None


@pytest.mark.parametrize("loss", WRONG.values(), ids=WRONG.keys())
def test_the_loss_of_the_second_training(loss, tmp_path):
    text = LOOP.replace("LOSS", loss)
    examination = seen_whole(tmp_path, text)
    line = text.splitlines().index(f"        loss = {loss}") + 1
    assert [(each.mode, each.line) for each in examination.findings] == [("fm37", line)]
    assert "in step 1 of training 2" in str(examination.findings[0].proof)


def test_a_loss_of_keras_in_the_second_training(tmp_path):
    """Keras 3 does not divide what a loss returns for its whole batch."""
    text = KERAS.replace("LOSS", "lambda y, p: tf.reduce_mean((y - p) ** 2)")
    examination = seen_whole(tmp_path, text)
    assert [each.mode for each in examination.findings] == ["fm49"]


INPUT = """\
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] - x[:, 1:2])).batch(8)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])


def step(x, y, net, optimizer):
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum((net(x) - y) ** 2, axis=-1)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=8)
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))


def train(batches, rate):
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(rate)
        optimizer.build(model.trainable_variables)

    @tf.function
    def train_step(x, y):
        strategy.run(step, args=(x, y, model, optimizer))

    for x, y in batches:
        train_step(x, y)


train(strategy.experimental_distribute_dataset(data), 0.05)
train(LATER, 0.01)
"""


@pytest.mark.parametrize(
    "later, modes",
    [("data", ["fm53"]), ("strategy.experimental_distribute_dataset(data)", [])],
    ids=["not distributed", "distributed"],
)
def test_the_input_of_a_later_training(later, modes, tmp_path):
    """It goes through the same lines as that of the first, with a model and an optimizer beside it."""
    examination = examined(tmp_path, INPUT.replace("LATER", later))
    assert [each.mode for each in examination.findings] == modes
    assert observer_failures(examination.recordings) == () and not examination.failure


WARMUP = """\
class Warmup(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return 0.05 * tf.minimum(tf.cast(step, tf.float32) / 4, 1)


"""


@pytest.mark.parametrize("name", ["right", "wrong"])
def test_a_rate_that_begins_at_0(name, tmp_path):
    """The first step changes nothing, so that the second is the first update."""
    loss = "average(losses)" if name == "right" else "tf.reduce_mean(losses)"
    text = LOOP.replace("def average", WARMUP + "def average").replace("LOSS", "average(losses)")
    text = text.replace("optimizer_of(0.05)", "optimizer_of(Warmup())")
    before, _, after = text.partition("average(tf.reduce_sum")
    text = f"{before}{loss.replace('losses', '')[:-1]}tf.reduce_sum{after}"
    examination = examined(tmp_path, text)
    assert [each.mode for each in examination.findings] == ([] if name == "right" else ["fm37"])
