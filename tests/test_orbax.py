"""What the page on asynchronous checkpoints says of Orbax, each sentence by a run. `make orbax` installs it."""

import importlib.util
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not importlib.util.find_spec("orbax"),
        reason="orbax-checkpoint is not installed; run: make orbax",
    ),
]

HEAD = """\
import os, pathlib, sys

import keras
import numpy as np
import tensorflow as tf

x = np.ones((8, 3), "float32")
y = np.arange(8.0, dtype="float32").reshape(8, 1)


def sequential(name=None):
    return compiled(keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name=name)]))


def functional(name=None):
    inputs = keras.Input((3,))
    return compiled(keras.Model(inputs, keras.layers.Dense(1, name=name)(inputs)))


def compiled(model):
    model.compile(keras.optimizers.Adam(0.1), "mse")
    return model


def saving(folder, **options):
    return keras.callbacks.OrbaxCheckpoint(os.path.abspath(folder), **options)


def train(model, *callbacks, epochs=2):
    model.fit(x, y, epochs=epochs, verbose=0, callbacks=callbacks)


def state_of(model):
    return [np.array(each) for each in [*model.weights, *model.optimizer.variables]]


def same(one, other):
    return "".join("1" if np.array_equal(a, b) else "0" for a, b in zip(one, other, strict=True))
"""
# One process for each end: in the third epoch, when its save has begun.
ENDS = """
class End(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 2:
            END


orbax = saving("saved", max_to_keep=None)
train(functional(), orbax, End(), epochs=4)
"""
SAVES = """
for make in (sequential, functional):
    keras.utils.clear_session()  # names begin again, as in a new process
    model = make()
    train(model, saving(make.__name__))
    np.savez(make.__name__, *state_of(model))
    print(model.weights[0].path)
"""
RELATIVE = """
for epochs in (1, 2):
    try:
        train(functional(), keras.callbacks.OrbaxCheckpoint(f"relative{epochs}"), epochs=epochs)
        print("no error", end=" ")
    except ValueError as error:
        print(str(error).partition(".")[0], end=" ")
    print([each.name for each in pathlib.Path(f"relative{epochs}").iterdir()])
"""
MIRRORED = """
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = functional()
train(model, saving("mirrored"))
"""
# Eight values: two weights, and iterations, rate and four slots of the optimizer, which has slots once it is built.
LOADS = """
for make in (sequential, functional):
    keras.utils.clear_session()
    saved = list(np.load(make.__name__ + ".npz").values())
    folder = os.path.abspath(make.__name__)
    first = make()
    first.load_weights(folder)
    built = [same(saved[:4], state_of(first))]
    first.optimizer.build(first.trainable_variables)
    built.append(same(saved[4:], state_of(first)[4:]))
    first.load_weights(folder)
    print(make.__name__, *built, same(saved, state_of(first)))
    second = make()
    before = state_of(second)
    second.load_weights(folder)
    print(second.weights[0].path, same(before[:2], state_of(second)[:2]))
    loaded = keras.models.load_model(folder)
    print(loaded.weights[0].path, same(saved, state_of(loaded)))
"""
LATEST = """
model = functional()
model.load_weights(os.path.abspath("saved"))
print(int(model.optimizer.iterations))
"""


def run(text: str, folder) -> tuple[list[str], str]:
    """Returns the lines that a program prints in a folder, and the last line of its error."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + text], cwd=folder, capture_output=True, text=True, timeout=300
    )
    lines = done.stderr.strip().splitlines()
    return done.stdout.splitlines(), lines[-1] if done.returncode and lines else ""


@pytest.mark.parametrize(
    ("end", "last", "steps"),
    [
        ("os._exit(1)", "2.orbax-checkpoint-tmp", "2"),
        ("raise KeyError", "2.orbax-checkpoint-tmp", "2"),
        ("orbax.wait_until_finished(); os._exit(1)", "2", "3"),
    ],
)
def test_the_last_save_is_complete_if_the_program_waits(end, last, steps, tmp_path):
    run(ENDS.replace("END", end), tmp_path)
    assert sorted(each.name for each in (tmp_path / "saved").iterdir()) == ["0", "1", last]
    assert run(LATEST, tmp_path) == ([steps], "")


def test_a_relative_folder_holds_no_complete_save(tmp_path):
    temporary = "['0.orbax-checkpoint-tmp']"
    assert run(RELATIVE, tmp_path) == (
        [f"no error {temporary}", f"Checkpoint path should be absolute {temporary}"],
        "",
    )


def test_fit_under_mirrored_strategy_raises(tmp_path):
    _, error = run(MIRRORED, tmp_path)
    assert error.startswith("TypeError: int() argument must be") and "MirroredVariable" in error


def test_variables_are_found_by_their_paths_and_others_stay(tmp_path):
    assert run(SAVES, tmp_path) == (["sequential/dense/kernel", "dense/kernel"], "")
    assert run(LOADS, tmp_path) == (
        [
            "sequential 1111 0000 11111111",
            "sequential_1/dense_1/kernel 11",
            "dense/kernel 00110000",  # only iterations and rate
            "functional 1111 0000 11111111",
            "dense_1/kernel 11",
            "dense/kernel 11111111",
        ],
        "",
    )
