"""Random numbers that replicas draw: which of them are the same, in a graph and outside of one."""

import pytest
from strategy_clinic.observer import events
from strategy_clinic.observer.events import Owner
from test_programs import run  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow

CONSTANT = "tf.random.stateless_normal([2, 4], seed=[7, 1])"
OF_EACH_REPLICA = "tf.random.stateless_normal([2, 4], seed=[7, tf.cast(own, tf.int32)])"
# What draws, and whether each replica draws the same: each is a line of a step that is taken three times.
DRAWS = {
    "tf.random.normal(tf.shape(x), seed=5)": True,
    "tf.random.stateless_normal(tf.shape(x), seed=tf.stack([7, count]))": True,
    "tf.random.stateless_uniform([2, 4], seed=[7, 2 * count + 1])": True,
    "tf.random.stateless_uniform([2, 4], seed=[7, given])": True,
    "tf.random.stateless_normal([2, 4], seed=[7, central])": True,
    "tf.nn.dropout(x, 0.5, seed=3)": True,
    "layer(x, training=True)": True,
    "tf.keras.random.normal([2, 4], seed=seeds)": True,
    "tf.random.normal(tf.shape(x))": False,
    "tf.nn.dropout(x, 0.5)": False,
    "generator.normal([2, 4])": False,
    CONSTANT: True,
    "tf.random.stateless_normal([2, 4], seed=[replica(), count])": False,
    "tf.random.stateless_normal([2, 4], seed=fold_in([7, count], replica()))": False,
    "tf.random.stateless_normal([2, 4], seed=[7, tf.cast(x[0, 0], tf.int32)])": False,
    OF_EACH_REPLICA: False,
    "tf.random.shuffle(x, seed=5)": False,  # no numbers
}
PROGRAM = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
fold_in = tf.random.experimental.stateless_fold_in
central = tf.Variable(0)
with strategy.scope():
    count = tf.Variable(0)
    own = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, trainable=False)
    layer = tf.keras.layers.Dropout(0.5)
    seeds = tf.keras.random.SeedGenerator(1)
    generator = tf.random.Generator.from_seed(1)


def replica():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def step(x, given):
    {lines}


@tf.function
def train(x, given):
    strategy.run(step, args=(x, given))


tf.config.run_functions_eagerly({eager})
data = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(48.0), (12, 4))).batch(4)
for number, x in enumerate(strategy.experimental_distribute_dataset(data)):
    train(x, tf.constant(number))
    count.assign_add(1)
    central.assign_add(1)
"""


@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_numbers_that_all_replicas_draw(run, eager):  # noqa: F811
    watched = run(
        PROGRAM.format(lines="\n    ".join(DRAWS), eager=eager), "--devices", "2", "--seed", "1"
    )
    assert watched.status == 0, watched.error
    assert watched.of(events.ObserverFailed) == []
    text = PROGRAM.format(lines="\n    ".join(DRAWS), eager=eager).splitlines()
    repeated = {
        text[each.location[0].line - 1].strip(): each for each in watched.of(events.NumbersRepeated)
    }
    # Outside of graphs the numbers themselves are compared: a variable that nothing writes to is a constant.
    constants = [CONSTANT, OF_EACH_REPLICA] if eager else [CONSTANT]
    expected = DRAWS | {OF_EACH_REPLICA: eager}
    assert {line: line in repeated for line in DRAWS} == expected
    of_keras = [line for line, each in repeated.items() if each.drawer is Owner.LAYER]
    assert of_keras == ["layer(x, training=True)"]
    of_generator = [line for line, each in repeated.items() if each.of_generator]
    assert of_generator == [*of_keras, "tf.keras.random.normal([2, 4], seed=seeds)"]
    assert [line for line, each in repeated.items() if not each.changes] == constants
    assert {(each.shape[-1], each.replicas) for each in repeated.values()} == {(4, 2)}
