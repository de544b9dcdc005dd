"""Each check raises on the bug, stays quiet on the fix, and needs nothing but TensorFlow."""

import ast
from pathlib import Path

import pytest

from helpers import Setup, SilentFailure, build_strategy, checks


def dense():
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("strategy", ["mirrored", "central_storage"])
def test_distributed(strategy):
    chosen = build_strategy(Setup(strategy, 2))
    with pytest.raises(SilentFailure, match="2 of 2 variables"):
        checks.assert_distributed(dense().variables, chosen)
    with chosen.scope():
        model = dense()
    checks.assert_distributed(model.variables, chosen)


def test_distributed_has_nothing_to_say_about_one_device():
    for name in ("mirrored", "one_device", "default", "central_storage"):
        setup = Setup(name, 1)
        checks.assert_distributed(dense().variables, build_strategy(setup))


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


def test_same_values():
    checks.assert_same_values("the weights", [1.0, 2.0], [1.0, 2.0])
    for other in ([1.0, 2.1], [1.0], [1.0, float("nan")]):
        with pytest.raises(SilentFailure, match="the weights differ"):
            checks.assert_same_values("the weights", [1.0, 2.0], other)


def test_checks_import_nothing_but_tensorflow():
    tree = ast.parse(Path(checks.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {alias.name for node in imports for alias in node.names} == {"tensorflow"}


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
