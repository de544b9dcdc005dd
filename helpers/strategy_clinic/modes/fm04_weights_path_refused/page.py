# %% [markdown]
# # FM04. Saving weights to a path without `.weights.h5` is refused
#
# `model.save_weights("./my_checkpoint")` is in many tutorials. Keras 3 trains as Keras 2 did, and raises at this line, when the
# training is done.
#
# ```text
# Keras 3  ValueError: The filename must end in `.weights.h5`. Received: filepath=./my_checkpoint
# ```
#
# *Loud, on Keras 3 only. The ending of the path decides, and the strategy does not matter. Documents: the answer on
# `get_weights()` in `strategy.run` (000) and the one on loading under `MirroredStrategy` (004).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm04",
    slug="weights_path_refused",
    title="Saving weights to a path without `.weights.h5` is refused",
    sees='`save_weights("./my_checkpoint")` raises: the filename must end in `.weights.h5`',
    fix="end the path in `.weights.h5`; use `tf.train.Checkpoint` if you want a checkpoint",
    document="000",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"The filename must end in `\.weights\.h5`",
            formats=("keras", "h5", "checkpoint", "saved_model", "npz"),
            keras=(3,),
        ),
    ),
    claims=(
        Claim(
            "000-C7",
            "`save_weights` to a bare path, then `load_weights`, gives the weights outside `run`",
            {2: "true", 3: "false"},
        ),
        Claim("000-C9", "saving weights during distributed training is safe", "half"),
        Claim(
            "004-C12",
            "`ModelCheckpoint(save_weights_only=True)` takes a bare path",
            {2: "true", 3: "false"},
        ),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm04", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that you may choose the path, and that `save_weights` writes a TensorFlow checkpoint there. On Keras 2 both
# were true.

# %%
import contextlib
import tempfile

import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

BATCH = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
NAMES = {
    "keras": "my_model.keras",
    "h5": "my_weights.h5",
    "weights_h5": "my.weights.h5",
    "checkpoint": "my_checkpoint",
    "saved_model": "my_model",
    "npz": "my_weights.npz",
}


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def place(setup, folder):
    """The current folder, as scripts have it; a parameter server has another one, and gets the whole path."""
    return folder if setup.strategy == "parameter_server" else "."


def make_two(strategy):
    """The model to train, and one for the weights to come back to."""
    with strategy.scope():
        return make_model(), make_model()


def train(strategy, model):
    """One step, with the loss divided by the replicas, since their gradients are added."""

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.constant(BATCH)) - 1.0))
            loss /= strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    strategy.run(tf.function(step))


def same_weights(model, again):
    """On every device, each weight of one model against that of the other."""
    got, want = [
        [copy for weight in each.weights for copy in figures.values_of(weight)]
        for each in (again, model)
    ]
    return Proof("every copy of every loaded weight is the trained one", got, want)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    model, again = make_two(strategy)
    train(strategy, model)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = f"{place(setup, folder)}/{NAMES[setup.save_format]}"  # guilty: wrong ending
        model.save_weights(path)
        again.load_weights(path)
    return same_weights(model, again)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Keras 2 has two formats for weights, and the ending chooses. `.h5` and `.keras` give one HDF5 file. Any other ending gives the
# files of a TensorFlow checkpoint.
#
# Keras 3 also runs on JAX and PyTorch, which write no TensorFlow checkpoints. It has one format of its own, with the ending
# `.weights.h5`. A plain `.h5` may hold a whole model. `save_weights` checks the ending before it reads a weight, so the strategy
# does not matter.
#
# The picture tries three calls with four paths: yes means that the file is written and that its counterpart reads the weights
# back. See [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving).

# %%
one = session.setup.but(strategy="default", devices=1)


def by_save_weights(model, path):
    again = make_model()
    model.save_weights(path)
    again.load_weights(path)
    return again


def by_save(model, path):
    model.save(path)
    return tf.keras.models.load_model(path)


def by_checkpoint(model, path):
    again = make_model()
    tf.train.Checkpoint(model=model).write(path)
    tf.train.Checkpoint(model=again).read(path).assert_existing_objects_matched()
    return again


def comes_back(way, name):
    model = make_model()
    with tempfile.TemporaryDirectory() as folder:
        try:
            again = way(model, f"{folder}/{name}")
        except ValueError:
            return False
    return same_weights(model, again).holds


CALLS = {"save_weights": by_save_weights, "save": by_save, "Checkpoint.write": by_checkpoint}
ENDINGS = ["my_checkpoint", "my.h5", "my.weights.h5", "my.keras"]
BACK = {name: [comes_back(way, name) for way in CALLS.values()] for name in ENDINGS}
figures.grid(BACK, list(CALLS), "yes", "no", "Which call takes which path?")

# %% [markdown]
# ## The fix
#
# End the path in `.weights.h5`. Before:
#
# ```python
# import tensorflow as tf
#
# model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
# model.save_weights("./my_checkpoint")  # ValueError: The filename must end in `.weights.h5`
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
# model.save_weights("my.weights.h5")
# again = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
# again.load_weights("my.weights.h5")
# print(again.get_weights()[0])  # [[1.]]
# ```
#
# `ModelCheckpoint(save_weights_only=True)` needs this ending too. Keras 2 takes it, and Keras 3 opens what Keras 2 has written
# under it: load an old checkpoint in Keras 2 and save it again with this ending. That keeps the weights, and not the optimizer.
# If you want a checkpoint, `tf.train.Checkpoint(model=model)` takes any path.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    model, again = make_two(strategy)
    train(strategy, model)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = f"{place(setup, folder)}/my.weights.h5"  # repair
        model.save_weights(path)
        again.load_weights(path)
    return same_weights(model, again)


session.proves(fixed)

# %%
bare = session.setup.but(strategy="mirrored", devices=2, save_format="checkpoint")
SETUPS = [bare, one.but(save_format="checkpoint")]
SETUPS += [bare.but(save_format=each) for each in ("h5", "weights_h5")]
SETUPS += [bare.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the save format: it chooses the ending here. On Keras 3 only `weights_h5` works, on Keras 2 all do, under every strategy.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?" (000), on its
# third example:
#
# > After training,  the weights are loaded from the checkpoint outside the `strategy.run` context, eliminating the risk of
# > accessing weights from an incorrect replica.
#
# On Keras 3 the path of this example raises. With `.weights.h5` it works, and the file is not needed: outside `strategy.run` the
# weights can be read at any time. Save there too. Saving inside a step works in an eager step, and raises in a traced one.
#
# The answer on loading under `MirroredStrategy` (004) has:
#
# > model.fit(..., callbacks=[tf.keras.callbacks.ModelCheckpoint(filepath=checkpoint_prefix, save_weights_only=True)])
#
# Its path has no ending. Keras 2 takes it, Keras 3 raises.


# %% tags=["claims"]
def done(save, *arguments):
    """Does saving work, and do the weights come back?"""
    try:
        return save(*arguments).holds
    except (ValueError, NotImplementedError):
        return False


def between_steps(path):
    """As the document's third example does it: after each step, on the host."""
    strategy = build_strategy(bare)
    model, again = make_two(strategy)
    for _ in range(2):
        train(strategy, model)
        model.save_weights(path)
    again.load_weights(path)
    return same_weights(model, again)


def in_a_step(path, trace):
    strategy = build_strategy(bare)
    model, again = make_two(strategy)

    def step():
        model.save_weights(path)

    strategy.run(trace(step))
    again.load_weights(path)
    return same_weights(model, again)


def by_callback(path):
    model, again = make_model(), make_model()
    callback = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    callback.set_model(model)
    callback.on_epoch_end(0, {})
    again.load_weights(path)
    return same_weights(model, again)


with tempfile.TemporaryDirectory() as folder:
    good, bad = f"{folder}/my.weights.h5", f"{folder}/my_checkpoint"
    session.judges(
        {
            "000-C7": [done(between_steps, bad)],
            "000-C9": [
                done(between_steps, good),
                done(in_a_step, good, lambda step: step),
                done(in_a_step, good, tf.function),
            ],
            "004-C12": [done(by_callback, bad)],
        },
    )

# %% [markdown]
# ## Exercise
#
# This script saves after every epoch, and continues from the last file. Repair its path. Then one more line raises, since
# `tf.train.latest_checkpoint` finds TensorFlow checkpoints only.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    model, again = make_two(strategy)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        here = place(setup, folder)
        for epoch in range(2):
            train(strategy, model)
            model.save_weights(f"{here}/epoch-{epoch}")
        again.load_weights(tf.train.latest_checkpoint(here))
    return same_weights(model, again)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    model, again = make_two(strategy)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        here = place(setup, folder)
        for epoch in range(2):
            train(strategy, model)
            path = f"{here}/epoch-{epoch}.weights.h5"
            model.save_weights(path)
        again.load_weights(path)
    return same_weights(model, again)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): the failure that the document wants to avoid with a file.
# - [fm08 checkpoint_path_wrong](fm08_checkpoint_path_wrong.ipynb): a path that TensorFlow takes, and does not find again.
# - [fm27 format_not_loadable](fm27_format_not_loadable.ipynb): files that `load_model` refuses.
