"""Real files on disk: what each row of the table says it keeps is what comes back, on both versions of Keras."""

import pytest
from strategy_clinic import Setup
from strategy_clinic.programs.run import Job, run_programs
from strategy_clinic.setups import formats, runtime

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

# A model with momentum takes a step, is saved and loaded, and both take the next step. Without the slots it is another one.
PROGRAM = """import numpy as np
import tensorflow as tf

built = []


def make_model():
    built.append(1)
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def step(model):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones((4, 3))) ** 2)
    variables = model.trainable_variables
    model.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


def predict(model):
    return np.asarray(getattr(model, "serve", model)(tf.ones((2, 3))))


model = make_model()
step(model)
model.save("model.keras")
loaded = tf.keras.models.load_model("model.keras")
print("weights", np.allclose(predict(loaded), predict(model)))
print("architecture", len(built) == 1 and hasattr(loaded, "layers"))
try:
    step(model)
    step(loaded)
    same = all(map(np.allclose, loaded.get_weights(), model.get_weights()))
except Exception:
    same = False
print("optimizer", same)
"""
SETUPS = [
    Setup("default", 1, row.name, keras) for row in formats.ROWS for keras in runtime.KERAS_VERSIONS
]


def test_what_a_row_keeps_is_what_comes_back():
    runs = run_programs([Job(PROGRAM, setup) for setup in SETUPS])
    assert [run.error for run in runs] == [None] * len(runs)
    found = {str(setup): run.printed.split("\n")[-4:-1] for setup, run in zip(SETUPS, runs)}
    assert found == {
        str(setup): [
            f"{part} {formats.keeps(setup.save_format, part, setup.keras)}"
            for part in ("weights", "architecture", "optimizer")
        ]
        for setup in SETUPS
    }


def test_weights_h5_needs_a_built_optimizer():
    unbuilt = PROGRAM.replace("    model.optimizer.build(model.trainable_variables)\n", "")
    setups = [setup for setup in SETUPS if setup.save_format == "weights_h5"]
    runs = run_programs([Job(unbuilt, setup) for setup in setups])
    assert [run.printed.split("\n")[-2] for run in runs] == ["optimizer False"] * len(setups)


def test_npz_refuses_pickled_objects():
    pickled = """import numpy as np
import tensorflow as tf

np.savez("weights.npz", np.array([{"code": "runs"}], dtype=object))
"""
    load = "\n".join(formats.TABLE["npz"].loading).format(loaded="loaded")
    program = f"{pickled}\n\ndef make_model():\n    return tf.keras.Sequential()\n\n\n{load}\n"
    (run,) = run_programs([Job(program, Setup("default", 1, "npz"))])
    assert isinstance(run.error, ValueError) and "allow_pickle" in str(run.error)
