"""Programs whose traced function makes several steps in a loop of the graph: they are compared one step at a time."""

import pytest
from edited_programs import examined
from strategy_clinic.examiner.recording import observer_failures
from strategy_clinic.observer.events import TrainedInLoop

pytestmark = pytest.mark.replayed

PROGRAM = """\
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] - x[:, 1:2])).repeat().batch(8)
batches = strategy.experimental_distribute_dataset(data)
with strategy.scope():
    weights = tf.Variable(np.linspace(0.1, 0.9, 24, dtype="float32").reshape(3, 8))
    optimizer = tf.keras.optimizers.Adam(0.05)
    optimizer.build([weights])


def step(x, y):
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum((x @ weights - y) ** 2, axis=-1)
        LOSS
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))


@tf.function
def epoch(iterator):
    LOOP


iterator = iter(batches)
for _ in range(3):
    epoch(iterator)
"""
LOOPS = {
    "a range": "for _ in tf.range(5):\n        strategy.run(step, args=next(iterator))",
    "while": (
        "number = 0\n    while tf.less(number, 5):\n        number += 1\n"
        "        strategy.run(step, args=next(iterator))"
    ),
    "a step, and a range": (
        "strategy.run(step, args=next(iterator))\n"
        "    for _ in tf.range(4):\n        strategy.run(step, args=next(iterator))"
    ),
    "batches": "for x, y in batches.take(5):\n        strategy.run(step, args=(x, y))",
}
AVERAGE = "loss = tf.nn.compute_average_loss(losses, global_batch_size=8)"
WRONG = {
    "the mean of a part": "loss = tf.reduce_mean(losses)",
    "the whole penalty": AVERAGE + " + 0.1 * tf.nn.l2_loss(weights)",
    "one part of the loss": AVERAGE + " + tf.reduce_mean((x @ weights) ** 4)",
}


def examined_with(folder, loss, loop):
    text = PROGRAM.replace("LOSS", loss).replace("LOOP", LOOPS[loop])
    if loop == "batches":
        # A distributed dataset is no tf.data.Dataset, and has no `take`.
        text = text.replace(".repeat()", "").replace("batches.take(5)", "batches")
    examination = examined(folder, text)
    assert observer_failures(examination.recordings) == ()
    return examination, text.splitlines().index(f"        {loss}") + 1


@pytest.mark.parametrize("loop", LOOPS)
def test_a_right_program_is_not_accused(loop, tmp_path):
    examination, _ = examined_with(tmp_path, AVERAGE, loop)
    assert examination.findings == examination.notes == [] and not examination.failure
    for recording in examination.recordings:
        assert bool(recording.of(TrainedInLoop)) == (loop != "batches")


@pytest.mark.parametrize("loop", ["a range", "while", ("a step, and a range")])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_loss_is_found(name, loop, tmp_path):
    examination, line = examined_with(tmp_path, WRONG[name], loop)
    assert [(each.mode, each.line) for each in examination.findings] == [("fm37", line)]
