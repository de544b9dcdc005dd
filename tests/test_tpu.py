"""TPUStrategy without a TPU: what its own class traces gives, run on CPU devices, the numbers that other strategies give."""

import pytest
from strategy_clinic import Setup, build_strategy, runner
from strategy_clinic.base.errors import Unavailable, UserError
from strategy_clinic.programs.checks import variable_of
from strategy_clinic.programs.run import Run
from strategy_clinic.programs.verdicts import classify
from strategy_clinic.setups import tpu

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

EMULATED = Setup("tpu_traced", 8)
MIRRORED = Setup("mirrored", 8)


def trained(setup, steps=5):
    """Losses and weights of a small classifier after some steps of Adam on the same batches."""
    import numpy as np
    import tensorflow as tf

    tf.keras.utils.set_random_seed(3)
    strategy, layers = build_strategy(setup), tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [tf.keras.Input((6,)), layers.Dense(8, "tanh"), layers.Dense(2)]
        )
        optimizer = tf.keras.optimizers.Adam(0.05)
        optimizer.build(model.trainable_variables)

    def step(data, wanted):
        with tf.GradientTape() as tape:
            losses = tf.keras.losses.sparse_categorical_crossentropy(
                wanted, model(data), from_logits=True
            )
            loss = tf.nn.compute_average_loss(losses, global_batch_size=32)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def train_step(data, wanted):
        return strategy.reduce("SUM", strategy.run(step, args=(data, wanted)), axis=None)

    random = np.random.default_rng(0)
    data = random.normal(size=(steps * 32, 6)).astype("float32")
    wanted = (data.sum(axis=1) > 0).astype("int32")
    batches = zip(np.split(data, steps), np.split(wanted, steps))
    losses = [train_step(*[parted(strategy, part) for part in batch]) for batch in batches]
    copies = [
        strategy.experimental_local_results(variable_of(each)) for each in model.trainable_variables
    ]
    return losses, model.get_weights(), [copy for each in copies for copy in each]


def parted(strategy, batch):
    """Each replica's part of a batch. A distributed dataset would do it too, and letting go of one waits up to a minute for
    each thread of its own that tunes a pipeline."""
    import numpy as np
    import tensorflow as tf

    parts = np.split(batch, strategy.num_replicas_in_sync)
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


@pytest.mark.parametrize("setup", [MIRRORED, EMULATED], ids=str)
def test_five_steps_are_those_of_one_device(setup):
    """Sums of gradients (CrossReplicaSum) and, on Keras 3, of an integer counter (AllToAll) pass between the replicas."""
    import numpy as np

    losses, weights, copies = trained(setup)
    wanted_losses, wanted, _ = trained(setup.but(strategy="default", devices=1))
    each = len(copies) // len(wanted)
    found = [*losses, *weights, *copies]
    right = [*wanted_losses, *wanted, *[weight for weight in wanted for _ in range(each)]]
    assert len(found) == len(right)
    assert all(np.allclose(a, b, 1e-6, 1e-6) for a, b in zip(found, right))


def on_replicas(step, arguments=(), strategy=None):
    """What every replica returns, in order."""
    strategy = strategy or build_strategy(EMULATED)
    results = runner(strategy)(step, args=arguments)
    return [float(each) for each in strategy.experimental_local_results(results)]


def context():
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def test_every_replica_knows_its_number():
    assert on_replicas(lambda: context().replica_id_in_sync_group) == list(range(8))


def test_replicas_sum_and_gather():
    import tensorflow as tf

    def number():
        return tf.cast(context().replica_id_in_sync_group, tf.float32)

    def summed():
        return context().all_reduce("SUM", number())

    def gathered():
        return tf.reduce_max(context().all_gather(number()[None], 0)) + number()

    def whole_numbers():
        mine = tf.cast(context().replica_id_in_sync_group, tf.int64)
        return context().all_gather(mine[None], 0)[5] + 10 * mine

    assert on_replicas(summed) == [28.0] * 8
    assert on_replicas(gathered) == [7.0 + i for i in range(8)]
    assert on_replicas(whole_numbers) == [5.0 + 10 * i for i in range(8)]


def test_a_variable_outside_the_scope_is_written_once_with_the_value_of_the_first_replica():
    """So TensorFlow's passes for TPUs have it: each replica reads what was there before, and its own writes."""
    import tensorflow as tf

    strategy, outside, kept = build_strategy(EMULATED), tf.Variable(1.0), tf.Variable([1.0, 1.0])

    def step():
        number = tf.cast(context().replica_id_in_sync_group, tf.float32)
        outside.assign_add(number + 2.0)
        outside.assign(10.0 * outside)
        return outside.read_value() + kept[0]

    @tf.function
    def two_steps():
        first = strategy.run(step)
        outside.assign_add(100.0)
        return first, strategy.run(step)

    for _ in range(2):
        outside.assign(1.0)
        first, second = map(strategy.experimental_local_results, two_steps())
        assert [float(each) for each in first] == [31.0 + 10 * i for i in range(8)]
        assert [float(each) for each in second] == [1321.0 + 10 * i for i in range(8)]
        assert outside.numpy() == 1320.0


def test_a_condition_in_the_step_writes_a_variable_outside_the_scope_once():
    import tensorflow as tf

    strategy = build_strategy(EMULATED)
    counter = tf.Variable(0, dtype=tf.int64)

    def step():
        here = tf.cast(context().replica_id_in_sync_group, tf.float32) < 100.0
        tf.cond(here, lambda: counter.assign_add(1), lambda: counter.assign(0))

    runner(strategy)(step)
    assert counter.numpy() == 1


def test_structures_and_nothing_come_back_as_they_are():
    import tensorflow as tf

    strategy = build_strategy(EMULATED)
    found = runner(strategy)(lambda: {"one": tf.ones(2) + 1, "none": None})
    assert found["none"] is None
    assert len(strategy.experimental_local_results(found["one"])) == 8
    assert runner(strategy)(lambda: None) is None


def test_a_function_that_is_traced_already_runs_eagerly_and_is_traced_once():
    import tensorflow as tf

    strategy, traces = build_strategy(EMULATED), []

    @tf.function
    def noise():
        traces.append(1)
        return tf.random.normal(())

    drawn = [strategy.experimental_local_results(strategy.run(noise)) for _ in range(3)]
    assert len({float(each[0]) for each in drawn}) == 3
    assert len(traces) == 1


def test_what_the_class_refuses_is_refused_and_called_traced():
    with pytest.raises(NotImplementedError, match="pure eager execution") as refused:
        build_strategy(EMULATED).run(lambda: 1.0)
    found = classify("broken", EMULATED, Run(error=refused.value))
    assert (found.outcome, found.evidence) == ("raises", "traced")


def test_one_core_exchanges_with_nobody():
    import tensorflow as tf

    def step():
        whole = context().all_gather(tf.constant([3], tf.int64), 0)
        return context().all_reduce("SUM", tf.cast(whole[0], tf.float32))

    one = tpu.strategy(replicas=1)
    assert (one.num_replicas_in_sync, on_replicas(step, strategy=one)) == (1, [3.0])


def test_an_exchange_inside_a_condition_is_refused_in_words():
    import tensorflow as tf

    def step():
        here = tf.cast(context().replica_id_in_sync_group, tf.float32) < 100.0
        return tf.cond(here, lambda: context().all_reduce("SUM", tf.ones(3)), lambda: tf.zeros(3))

    with pytest.raises(Unavailable, match="exchange values inside a condition"):
        on_replicas(step)


@pytest.mark.parametrize("name", tpu.TPUS)
def test_every_described_tpu_runs_its_replicas(name):
    strategy = tpu.strategy(name)
    assert strategy.num_replicas_in_sync == (4 if name == "v4-8" else 8)
    numbers = on_replicas(lambda: context().replica_id_in_sync_group, strategy=strategy)
    assert numbers == list(range(strategy.num_replicas_in_sync))


@pytest.mark.parametrize("spmd", [False, True])
def test_a_replica_spread_over_two_cores_gives_the_same_numbers(spmd):
    import tensorflow as tf

    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd)

    def step():
        split = strategy.experimental_split_to_logical_devices(tf.ones((3, 4)), [1, 2])
        return context().all_reduce("SUM", tf.reduce_sum(split))

    assert on_replicas(step, strategy=strategy) == [48.0] * 4


def test_variables_on_every_logical_device_are_not_emulated():
    import tensorflow as tf

    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd=True)
    with strategy.scope():
        variable = tf.Variable(1.0)
    with pytest.raises(Unavailable, match="on every logical device"):
        on_replicas(lambda: variable.read_value(), strategy=strategy)


def test_an_unknown_tpu_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match="v5e-8"):
        tpu.strategy("v9-8")


def test_an_uneven_batch_is_padded_and_cut_again():
    import tensorflow as tf

    strategy = build_strategy(EMULATED)
    dataset = tf.data.Dataset.from_tensor_slices(tf.range(13.0)).batch(13)
    for batch in strategy.experimental_distribute_dataset(dataset):
        doubled = runner(strategy)(lambda part: 2.0 * part, args=(batch,))
        sizes = [len(part) for part in strategy.experimental_local_results(doubled)]
        assert sizes == [2, 2, 2, 2, 2, 2, 1, 0]
        assert strategy.gather(doubled, axis=0).numpy().tolist() == [2.0 * i for i in range(13)]
