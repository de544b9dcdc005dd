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
