"""What a step does to its gradients before it gives them to an optimizer: which of that is clipping or normalising."""

import pytest
from strategy_clinic.observer import events
from strategy_clinic.observer.events import Part
from strategy_clinic.observer.replacements import Replacement
from test_programs import run  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow

PROGRAM = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    weight = tf.Variable([2.0, 1.0])
    scale = tf.Variable(3.0, trainable=False)


def step(x):
    context = tf.distribute.get_replica_context()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sqrt(tf.square(weight * x) + 1.0))
    gradients = tape.gradient(loss, [weight])
    {line}
    optimizer.apply_gradients(zip(gradients, [weight]))


data = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(8.0), (4, 2))).batch(2)
for lines in range({count}):
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(0.1)
    train = tf.function(lambda x: strategy.run(step, args=(x,)))
    for x in strategy.experimental_distribute_dataset(data):
        train(x)
"""
CLIPS = {
    "a norm": "gradients = [each / tf.norm(each) for each in gradients]",
    "the sign": "gradients = [tf.sign(each) for each in gradients]",
    "the largest of all": "gradients = [each / tf.maximum(1.0, tf.reduce_max(tf.abs(gradients[0]))) for each in gradients]",
}
KEEPS = [
    "pass",
    "gradients = [each / context.num_replicas_in_sync for each in gradients]",
    "gradients = [each / scale for each in gradients]",
    "gradients = [each - tf.reduce_mean(each) for each in gradients]",
    "gradients = [tf.where(tf.math.is_finite(each), each, 0.0) for each in gradients]",
    "gradients = [each * tf.sqrt(loss) for each in gradients]",
    "length = tf.norm(gradients[0])",
    "gradients = [each / tf.norm(each) for each in context.all_reduce('SUM', gradients)]",
]


def used(run, line, count=1):  # noqa: F811
    watched = run(PROGRAM.format(line=line, count=count), "--devices", "2")
    assert watched.status == 0, watched.error
    assert watched.of(events.ObserverFailed) == []
    parts = watched.of(events.PartUsed)
    # A replica's thread does not know what has called it.
    assert {each.location[-1].function for each in parts} <= {"<module>"}
    return [(each.part, each.location[0].function) for each in parts]


@pytest.mark.parametrize("line", CLIPS.values(), ids=CLIPS)
def test_gradients_of_one_replica_that_are_clipped_or_normalised(run, line):  # noqa: F811
    assert used(run, line) == [(Part.CLIPPING, "step")]


def test_gradients_that_are_scaled_or_added_up_first(run):  # noqa: F811
    branches = [f"if lines == {i}: {line}" for i, line in enumerate(KEEPS)]
    assert used(run, "\n    ".join(branches), len(KEEPS)) == []


def test_an_optimizer_of_keras_2_gets_the_gradients_that_were_computed(run):  # noqa: F811
    """In a run that leaves out the clipping of a program's own, its steps are those of the program without it."""
    without = "--replace", Replacement.NO_OWN_CLIPPING.value
    printed = []
    for line, options in (("pass", ()), (CLIPS["the sign"], ()), (CLIPS["the sign"], without)):
        text = PROGRAM.format(line=line, count=1) + "print(weight.numpy())\n"
        watched = run(text, "--devices", "2", "--keras", "2", *options)
        assert watched.status == 0, watched.error
        printed.append(watched.output)
    plain, clipped, replaced = printed
    assert clipped != plain and replaced == plain
