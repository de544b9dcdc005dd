"""Programs that choose their batches by the number of replicas, compared on one device with the batches of two."""

import pytest
from edited_programs import examined
from strategy_clinic.examiner.recording import Role, observer_failures

pytestmark = pytest.mark.replayed

PROGRAM = """import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
EACH = 4
BATCH = EACH * strategy.num_replicas_in_sync
BEFORE
x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] - x[:, 1:2])).batch(BATCH)
with strategy.scope():
    weights = tf.Variable(np.linspace(0.1, 0.9, 24, dtype="float32").reshape(3, 8))
    optimizer = tf.keras.optimizers.SGD(RATE)
    optimizer.build([weights])


def step(x, y):
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum((x @ weights - y) ** 2, axis=-1)
        LOSS
    gradients = tape.gradient(loss, [weights])
    optimizer.apply_gradients(zip(gradients, [weights]))


@tf.function
def train_step(x, y):
    strategy.run(step, args=(x, y))


for x, y in strategy.experimental_distribute_dataset(data):
    train_step(x, y)
"""
NOISE = """losses += tf.reduce_mean((tf.random.normal([EACH, 3]) @ weights) ** 2)
        loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync"""
SHUFFLED = """losses = tf.reduce_sum((tf.random.shuffle(x) @ weights - y) ** 2, axis=-1)
        loss = tf.nn.compute_average_loss(losses)"""

RIGHT = {
    "the average": "loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)",
    "a count that was read before": "loss = tf.reduce_mean(losses) / count",
    "a share that was computed before": "loss = tf.reduce_mean(losses) * share",
    "a tensor that was made before": "loss = tf.reduce_mean(losses) / number",
    "the batch of one replica": "loss = tf.reduce_sum(losses) / EACH / strategy.num_replicas_in_sync",
    "noise for each replica": NOISE,
    "an order for each replica": SHUFFLED,
}
BEFORE = """count = strategy.num_replicas_in_sync
share = 1.0 / strategy.num_replicas_in_sync
number = tf.cast(strategy.num_replicas_in_sync, tf.float32)"""
PENALTY = "loss = tf.nn.compute_average_loss(losses) + 0.1 * tf.nn.l2_loss(weights)"
ONE_PART = "loss = tf.nn.compute_average_loss(losses) + tf.reduce_mean((x @ weights) ** 4)"
ONE_PART_TWICE = ONE_PART + " / count / count"
WRONG = {
    "the mean of a part": ("fm37", "loss = tf.reduce_mean(losses)"),
    "divided twice": (
        "fm37",
        "loss = tf.nn.compute_average_loss(losses) / strategy.num_replicas_in_sync",
    ),
    "the whole penalty": ("fm37", PENALTY),
    "one part of the loss": ("fm37", ONE_PART),
    "one part divided twice": ("fm37", ONE_PART_TWICE),
}


def examined_with(folder, loss, rate="0.05", optimizer="SGD"):
    text = (
        PROGRAM.replace("SGD", optimizer)
        .replace("BEFORE", BEFORE)
        .replace("LOSS", loss)
        .replace("RATE", rate)
    )
    examination = examined(folder, text)
    assert observer_failures(examination.recordings) == ()
    return examination, text.splitlines().index(f"        {loss.splitlines()[0]}") + 1


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_not_accused(name, tmp_path):
    examination, _ = examined_with(tmp_path, RIGHT[name])
    assert examination.findings == [] and not examination.failure


def test_a_rate_by_the_number_of_replicas_is_compared(tmp_path):
    rate = "0.05 * strategy.num_replicas_in_sync"
    examination, _ = examined_with(tmp_path, RIGHT["the average"], rate)
    matched = [each for each in examination.recordings if each.role is Role.MATCHED]
    assert examination.findings == examination.notes == [] and len(matched) == 1
    made = [each.words for each in examination.runs if each.role is Role.MATCHED]
    assert made == ["on 1 device (with the batches of 2 replicas)"]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_loss_is_found(name, tmp_path):
    mode, loss = WRONG[name]
    examination, line = examined_with(tmp_path, loss)
    assert [(each.mode, each.line) for each in examination.findings] == [(mode, line)]
    assert "with the batches of 2 replicas" in str(examination.findings[0].proof)


def test_another_loss_that_is_no_mean_of_examples(tmp_path):
    """The runs agree if all replicas have the same examples."""
    loss = "loss = tf.reduce_max(losses) / strategy.num_replicas_in_sync"
    examination, line = examined_with(tmp_path, loss)
    assert [(each.mode, each.line) for each in examination.findings] == [("fm55", line)]
    assert "with the same examples in all replicas the runs agree" in str(
        examination.findings[0].proof
    )


def test_a_loss_that_is_no_mean_and_is_not_divided_diverges(tmp_path):
    examination, _ = examined_with(tmp_path, "loss = tf.reduce_max(losses) * tf.reduce_max(y)")
    assert [each.mode for each in examination.findings] == ["diverges"]


@pytest.mark.parametrize(
    "name",
    [
        "the mean of a part",
        "the whole penalty",
        "one part of the loss",
    ],
)
def test_an_optimizer_that_keeps_squares_only(name, tmp_path):
    """Its updates do not grow with the gradients."""
    mode, loss = WRONG[name]
    examination, line = examined_with(tmp_path, loss, rate="0.01", optimizer="RMSprop")
    assert [(each.mode, each.line) for each in examination.findings] == [(mode, line)]


@pytest.mark.parametrize(
    "name, mode", [("the mean of a part", "fm37"), ("one part of the loss", "fm37")]
)
def test_a_wrong_loss_beside_clipping(name, mode, tmp_path):
    """Clipped gradients say nothing of their size: the runs are compared without clipping."""
    examination, line = examined_with(tmp_path, WRONG[name][1], rate="0.05, clipnorm=0.1")
    assert (mode, line) in [(each.mode, each.line) for each in examination.findings]


def test_a_right_loss_beside_clipping(tmp_path):
    examination, _ = examined_with(tmp_path, RIGHT["the average"], rate="0.05, clipnorm=0.1")
    assert [(each.mode, each.by_framework) for each in examination.findings] == [("fm50", True)]


DIVIDED = """import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
each = 8 // strategy.num_replicas_in_sync
with strategy.scope():
    weight = tf.Variable([0.5, 0.5])
    optimizer = tf.keras.optimizers.SGD(0.01)
    optimizer.build([weight])


def step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.linalg.matvec(rows, weight) - rows[:, 0])) / 8
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])


@tf.function
def train_step(rows):
    strategy.run(step, args=(rows,))


for number in range(6):
    batch = np.random.default_rng(number).normal(size=(8, 2)).astype("float32")
    part = lambda context: tf.constant(batch[context.replica_id_in_sync_group * each :][:each])
    train_step(strategy.experimental_distribute_values_from_function(part))
"""


def test_batches_that_nobody_has_seen_are_equal_where_the_runs_agree(tmp_path):
    """With the number of two replicas, one device would get half of each batch."""
    examination = examined(tmp_path, DIVIDED)
    assert examination.findings == examination.notes == []
    assert [each.role for each in examination.runs] == [Role.WATCHED, Role.COMPARED]
