"""Each check raises on the bug, stays quiet on the fix, and needs nothing but TensorFlow."""

import ast
from pathlib import Path

import pytest
from strategy_clinic import Setup, SilentFailure, build_strategy, runner
from strategy_clinic.programs import checks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]


def dense():
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("strategy", ["mirrored", "central_storage"])
def test_distributed(strategy):
    chosen = build_strategy(Setup(strategy, 2))
    with pytest.raises(SilentFailure, match="2 of 2 variables"):
        checks.assert_distributed(chosen, dense().variables)
    with chosen.scope():
        model = dense()
    checks.assert_distributed(chosen, model.variables)


def test_distributed_has_nothing_to_say_about_one_device():
    for name in ("mirrored", "one_device", "default", "central_storage"):
        setup = Setup(name, 1)
        checks.assert_distributed(build_strategy(setup), dense().variables)


def test_tracked_in_a_model():
    import tensorflow as tf

    model, helper = dense(), tf.Variable(0.0, name="helper")
    with pytest.raises(SilentFailure, match="1 of 3 variables would not be saved: helper"):
        checks.assert_tracked(model, [*model.variables, helper])
    checks.assert_tracked(model, model.variables)


def test_tracked_in_a_checkpoint():
    import tensorflow as tf

    model, helper = dense(), tf.Variable(0.0, name="helper")
    with pytest.raises(SilentFailure, match="helper"):
        checks.assert_tracked(
            tf.train.Checkpoint(model=model), [*model.trainable_variables, helper]
        )
    checks.assert_tracked(
        tf.train.Checkpoint(model=model, helper=helper), [*model.trainable_variables, helper]
    )


def test_tracked_takes_what_a_tape_watched():
    import tensorflow as tf

    model, scale = dense(), tf.Variable(2.0, name="scale")
    with tf.GradientTape() as tape:
        model(tf.ones((1, 3))) * scale
    with pytest.raises(SilentFailure, match="scale"):
        checks.assert_tracked(model, tape.watched_variables())


def test_checks_import_nothing_but_tensorflow():
    """And the name of a type, which the text that is pasted does without."""
    tree = ast.parse(Path(checks.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {alias.name for node in imports for alias in node.names} == {"tensorflow", "Any"}


def test_restored(tmp_path):
    import tensorflow as tf

    path = tf.train.Checkpoint(model=dense()).save(str(tmp_path / "training"))
    checks.assert_restored(tf.train.Checkpoint(model=dense()).restore(path))
    more = tf.train.Checkpoint(model=dense(), extra=tf.Variable(0.0))
    for wrong in (path, None):
        with pytest.raises(SilentFailure, match="left variables as they were"):
            checks.assert_restored(more.restore(wrong))


def test_gradients_fit():
    import tensorflow as tf

    kernel, bias = dense().trainable_variables
    good = [tf.zeros((3, 2)), tf.zeros((2,))]
    checks.assert_gradients_fit(good, [kernel, bias])
    bad = [[], [good[0], None], [good[0], good[0]], [good[0], good[1][:1]]]
    words = ["0 gradients for 2 variables", "is None", r"has shape \(3, 2\)", r"has shape \(1,\)"]
    for gradients, says in zip(bad, words):
        with pytest.raises(SilentFailure, match=says):
            checks.assert_gradients_fit(gradients, [kernel, bias])


def test_gradients_fit_knows_sparse_gradients():
    import tensorflow as tf

    table = tf.Variable(tf.zeros((5, 2)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [1, 1, 3]))
    checks.assert_gradients_fit([tape.gradient(loss, table)], [table])


def test_same_global_batch():
    four = build_strategy(Setup("mirrored", 4))
    with pytest.raises(SilentFailure, match="32 examples on 4 replicas, and 8 before"):
        checks.assert_same_global_batch(four, 8, 8)
    checks.assert_same_global_batch(four, 2, 8)
    checks.assert_same_global_batch(build_strategy(Setup("default", 1)), 8, 8)


def test_optimizer_resumed():
    import tensorflow as tf

    model = dense()
    checks.assert_optimizer_resumed(model, 0)
    with pytest.raises(SilentFailure, match="at step 0 of 3, with 6 of 6 variables"):
        checks.assert_optimizer_resumed(model, 3)
    model.optimizer.iterations.assign(3)
    checks.assert_optimizer_resumed(model, 3)
    model.compile(tf.keras.optimizers.SGD(momentum=0.9), "mse")
    model.optimizer.build([])  # what Keras 3 leaves behind when it loads an .h5 file
    with pytest.raises(SilentFailure, match="at step 0 of 0, with 2 of 4 variables"):
        checks.assert_optimizer_resumed(model, 0)


def test_shared():
    import tensorflow as tf

    model = dense()
    checks.assert_shared(model, model)
    checks.assert_shared(model, model.layers[-1])
    with pytest.raises(SilentFailure, match="2 of 2 variables are not shared"):
        checks.assert_shared(model, tf.keras.models.clone_model(model))


def test_shared_is_not_said_of_layers_without_weights():
    import tensorflow as tf

    with pytest.raises(SilentFailure, match="0 of 0"):
        checks.assert_shared(tf.keras.layers.Dense(2), tf.keras.layers.Dense(2))


@pytest.mark.parametrize("strategy, devices", [("mirrored", 4), ("tpu_traced", 8)])
def test_loss_of_whole_batch(strategy, devices):
    import tensorflow as tf

    chosen = build_strategy(Setup(strategy, devices))
    mean, part = (
        runner(chosen)(lambda: 3.0 * tf.ones(())),
        runner(chosen)(lambda: 3.0 * tf.ones(()) / devices),
    )
    with pytest.raises(SilentFailure, match=rf"of {devices} replicas add up to {devices}.00 times"):
        checks.assert_loss_of_whole_batch(chosen, mean, 3.0)
    checks.assert_loss_of_whole_batch(chosen, part, 3.0)


def test_loss_of_whole_batch_takes_a_loss_for_each_example():
    import tensorflow as tf

    alone = build_strategy(Setup("default", 1))
    with pytest.raises(SilentFailure, match="of 1 replicas add up to 16.00 times"):
        checks.assert_loss_of_whole_batch(alone, alone.run(lambda: tf.ones(16)), 1.0)


@pytest.mark.parametrize("strategy, devices", [("mirrored", 4), ("tpu_traced", 8)])
def test_replicas_agree(strategy, devices):
    import tensorflow as tf

    chosen, on_read = build_strategy(Setup(strategy, devices)), tf.VariableSynchronization.ON_READ
    with chosen.scope():
        one = tf.Variable(0.0, name="one")
        many = tf.Variable(0.0, name="many", aggregation=tf.VariableAggregation.MEAN)
        read = tf.Variable(0.0, synchronization=on_read, aggregation=many.aggregation)

    def write():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        for variable in (one, many, read):
            variable.assign(tf.cast(replica, tf.float32))

    checks.assert_replicas_agree(chosen, [one, many, read])
    runner(chosen)(write)
    checks.assert_replicas_agree(chosen, [many, read])
    with pytest.raises(SilentFailure, match=rf"1 of 2 .* not the same on all {devices} .*: one"):
        checks.assert_replicas_agree(chosen, [one, many])


def test_replicas_agree_where_there_is_one():
    checks.assert_replicas_agree(build_strategy(Setup("default", 1)), dense().variables)


def test_scope_of_writers():
    import tensorflow as tf

    four, count = build_strategy(Setup("mirrored", 4)), tf.Variable(0.0, name="count")
    with pytest.raises(SilentFailure, match="4 replicas write to count, which was made outside"):
        checks.assert_scope_of_writers(four, [count])
    checks.assert_scope_of_writers(build_strategy(Setup("mirrored", 1)), [count])
    with four.scope():
        checks.assert_scope_of_writers(four, [tf.Variable(0.0)])


@pytest.mark.parametrize("rest, wrong", [([8.0], 5.0), ([], float("nan"))])
def test_mean_of_all(rest, wrong):
    import tensorflow as tf

    strategy, parts = build_strategy(Setup("mirrored", 2)), [[1.0, 2.0, 3.0], rest]
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )
    checks.assert_mean_of_all(strategy, strategy.reduce("MEAN", values, axis=0), values)
    with pytest.raises(SilentFailure, match=r"that of all [34] examples is [23]\.[05]000"):
        checks.assert_mean_of_all(strategy, wrong, values)


def test_global_batch():
    import tensorflow as tf

    strategy = build_strategy(Setup("mirrored", 2))
    dataset = tf.data.Dataset.from_tensor_slices({"a": tf.ones((16, 3)), "b": tf.ones(16)}).batch(8)
    divided = strategy.experimental_distribute_dataset(dataset)
    checks.assert_global_batch(strategy, next(iter(divided)), 8)
    each = strategy.distribute_datasets_from_function(lambda context: dataset)
    with pytest.raises(SilentFailure, match="takes in 16 examples, and a global batch is 8"):
        checks.assert_global_batch(strategy, next(iter(each)), 8)
    checks.assert_global_batch(build_strategy(Setup("default", 1)), next(iter(dataset)), 8)


def test_learning_rate():
    import tensorflow as tf

    optimizer = tf.keras.optimizers.SGD(0.05)
    checks.assert_learning_rate(optimizer, 0.05)
    optimizer.learning_rate = 0.25  # as a restore does
    with pytest.raises(SilentFailure, match="is 0.25, and not 0.05"):
        checks.assert_learning_rate(optimizer, 0.05)
