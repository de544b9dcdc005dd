"""Real files on disk: what each row of the table says it keeps is what comes back, on both Keras generations."""

import tempfile

import pytest
from sessions import verdicts
from strategy_clinic import Proof, Setup, experiment
from strategy_clinic.setups import formats, runtime

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]


def make_model():
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(
        optimizer=tf.keras.optimizers.SGD(0.1, momentum=0.9),
        loss=tf.keras.losses.MeanSquaredError(),
    )
    model.optimizer.build(model.trainable_variables)
    return model


def step(model):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones((4, 3))) ** 2)
    variables = model.trainable_variables
    model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


def trained():
    model = make_model()
    step(model)
    return model


def refuse_to_build():
    raise AssertionError("the file holds the architecture, so nobody should build it")


def predict(model):
    import numpy as np
    import tensorflow as tf

    return np.asarray(getattr(model, "serve", model)(tf.ones((2, 3))))


@experiment
def predictions_return(setup):
    model = trained()
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, setup.save_format)
        loaded = formats.load(folder, setup.save_format, make_model)
    return Proof("the loaded model predicts the same", [predict(loaded)], [predict(model)])


@experiment
def architecture_returns(setup):
    model = trained()
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, setup.save_format)
        loaded = formats.load(folder, setup.save_format, refuse_to_build)
    return Proof("the layers come back", [len(loaded.layers)], [len(model.layers)])


@experiment
def optimizer_returns(setup):
    """Slots included: with momentum the next step is another one without them."""
    model = trained()
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, setup.save_format)
        loaded = formats.load(folder, setup.save_format, make_model)
    step(model), step(loaded)
    return Proof("the next step is the same", loaded.get_weights(), model.get_weights())


@experiment
def optimizer_returns_unbuilt(setup):
    """What weights_h5 says about an optimizer that has no slots yet: nothing arrives in it."""
    import tensorflow as tf

    def make_unbuilt():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
        model.compile(optimizer="adam", loss=tf.keras.losses.MeanSquaredError())
        return model

    model = trained()
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, setup.save_format)
        loaded = formats.load(folder, setup.save_format, make_unbuilt)
    return Proof("the optimizer has taken one step", [int(loaded.optimizer.iterations)], [1])


SETUPS = [
    Setup("default", 1, row.name, keras) for row in formats.ROWS for keras in runtime.GENERATIONS
]


def test_weights_return_in_every_format():
    found = verdicts({"weights": predictions_return}, SETUPS)
    assert {str(each.setup): each.outcome for each in found} == {
        str(setup): "works" for setup in SETUPS
    }


@pytest.mark.parametrize(
    "part, check", [("architecture", architecture_returns), ("optimizer", optimizer_returns)]
)
def test_what_a_row_keeps_is_what_comes_back(part, check):
    found = verdicts({part: check}, SETUPS)
    kept = {str(each.setup): each.outcome == "works" for each in found}
    assert kept == {
        str(setup): formats.keeps(setup.save_format, part, setup.keras) for setup in SETUPS
    }


@pytest.mark.filterwarnings("ignore:Skipping variable loading")
def test_weights_h5_needs_a_built_optimizer():
    setups = [setup for setup in SETUPS if setup.save_format == "weights_h5"]
    assert [
        each.outcome for each in verdicts({"optimizer": optimizer_returns_unbuilt}, setups)
    ] == ["silent", "silent"]


def test_npz_refuses_pickled_objects(tmp_path):
    import numpy as np

    (tmp_path / "model.json").write_text(make_model().to_json())
    np.savez(tmp_path / "weights.npz", np.array([{"code": "runs"}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        formats.load(tmp_path, "npz", make_model)
