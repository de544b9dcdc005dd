# %% [markdown]
# # FM27. `load_model` raises `File format not supported`: checkpoint, SavedModel, `.weights.h5` and `.h5`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` ValueError: File format not supported: filepath=… Keras 3 only supports V3 `.keras` files, legacy H5 format files (`.h5` extension). … `` | `load_model` of a SavedModel folder, a checkpoint or `.npz` | 3 |
# | `ValueError: No model config found in the file at …` | `load_model` of `.weights.h5` | 2, 3 |
# | `ValueError: File not found: filepath=model.keras. …` | `load_model`, wrong folder or name | 3 |
# | `ValueError: Could not deserialize 'keras.metrics.mse' because it is not a KerasSaveable subclass` | `load_model` of `.h5`, loss `"mse"`; older Keras 3: `Could not locate function 'mse'` | 3 before 3.16 |
# | `OSError: No file or directory found at saved/checkpoint-1` | `load_model` of a checkpoint, or a wrong name; of its folder: `SavedModel file does not exist at: saved/`; of `.npz`: `Unable to synchronously open file` | 2 |
# | `AttributeError: '_UserObject' object has no attribute 'predict'` | `predict` of what `tf.saved_model.load` gives for a `model.export`; called: `'_UserObject' object is not callable` | 2, 3 |
#
# `load_model` reads files that contain a whole model, with its architecture. Every other kind of file has its own call.
#
# *Raises on Keras 2 and 3, under every strategy, in every format but `.keras` and most `.h5` files.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm27",
    slug="format_not_loadable",
    title="`load_model` raises `File format not supported`: checkpoint, SavedModel, `.weights.h5` and `.h5`",
    sees="`load_model` refuses a checkpoint, a SavedModel, a weights file, or an `.h5` file",
    fix="read a SavedModel by `TFSMLayer`, weights and a checkpoint into a model that your code makes, `.h5` with `compile=False`",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"File format not supported: filepath=\S+ Keras 3 only supports V3 `.keras` files",
            formats=("checkpoint", "npz"),
            keras=(3,),
        ),
        Symptom("ValueError", r"No model config found in the file at", formats=("weights_h5",)),
        Symptom(
            "OSError",
            r"No file or directory found at saved/checkpoint-1",
            formats=("checkpoint",),
            keras=(2,),
        ),
        Symptom("OSError", r"file signature not found", formats=("npz",), keras=(2,)),
    ),
    prints="prediction: 4.0",
    exercise_prints="same bias: True",
    unavailable={
        "multi_worker": "its workers would write the same file at the same time",
        "saved_model": "`export` prints a report that is different in each run; see the table",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm27", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# It gives `load_model` the path of the newest checkpoint. Its folder `saved` fails as well, and so do the files in it.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# A checkpoint has no architecture. Make the model in your code, in the scope of your strategy, and restore its values.
# The table below the program has the calls for files of Keras.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# Writes each file in a new process, reads it with the call in the table, and predicts.
from strategy_clinic import text_table

SAVE, LOAD, SHOW = (
    'tf.train.Checkpoint(model=model).save("saved/checkpoint")',
    """loaded = make_model()  # fixed: a checkpoint needs the model
tf.train.Checkpoint(model=loaded).restore(tf.train.latest_checkpoint("saved"))  # fixed""",
    'print("prediction:", float(loaded(tf.ones((1, 3)))[0, 0]))',
)
here = session.setup.but(strategy="default", devices=1, save_format="checkpoint", keras=3)


def show_calls(files, show=SHOW):
    """Prints the call for each file. Each must predict 4.0."""
    texts = {kind: f"{save}\n\n{call}\n{show}" for kind, (save, call) in files.items()}
    programs = session.variants("fixed", f"{SAVE}\n\n{LOAD}\n{SHOW}", texts)
    printed = session.prints(programs, [here])
    assert all(words.endswith("prediction: 4.0") for (words,) in printed.values()), printed
    calls = [[kind, call.replace("\n", "; ")] for kind, (_, call) in files.items()]
    print(text_table([["file", "call that reads it"], *calls]))


FILES = {
    ".keras": ('model.save("best.keras")', 'loaded = tf.keras.models.load_model("best.keras")'),
    ".h5 of model.save": (
        'model.compile("adam", "mse")\nmodel.save("best.h5")',
        'loaded = tf.keras.models.load_model("best.h5", compile=False)',
    ),
    ".weights.h5": (
        'model.save_weights("best.weights.h5")',
        'loaded = make_model()\nloaded.load_weights("best.weights.h5")',
    ),
    ".npz": (
        'import numpy as np\n\nnp.savez("best.npz", *model.get_weights())',
        'loaded = make_model()\nloaded.set_weights(list(np.load("best.npz").values()))',
    ),
}
show_calls(FILES)

# %% [markdown]
# If the loss is `"mse"`, an `.h5` file contains this string, which Keras 3 before 3.16 cannot turn into a function again. With
# `compile=False` the state of the optimizer is lost: [FM29](fm29_optimizer_state_lost.ipynb). With the loss
# `tf.keras.losses.MeanSquaredError()` the file opens as it is, but then `fit` raises `Unknown variable` on Keras 3:
# [FM10](fm10_variable_unknown_to_optimizer.ipynb).
#
# ### A SavedModel folder
#
# Most reports of this message are about such a folder. `model.export` and `tf.saved_model.save` write functions, to predict
# with, and no layers. Keras 2's `model.save("folder")` also describes the layers, for `load_model` of Keras 2 alone: `pip
# install tf_keras`. With it you also copy the weights into a model of Keras 3, which you can train. On Keras 3:

# %% tags=["figure"]
# The same for folders. Some calls return a dictionary of outputs.
OLD = """import tf_keras

old = tf_keras.Sequential([tf_keras.Input((3,)), tf_keras.layers.Dense(1)])
old.set_weights(model.get_weights())
old.save("saved_model")"""
EXPORT = 'model.export("exported")'
LAYER = 'loaded = tf.keras.layers.TFSMLayer("saved_model", call_endpoint="serving_default")'
FOLDERS = {
    "model.export": (
        EXPORT,
        'loaded = tf.keras.layers.TFSMLayer("exported", call_endpoint="serve")',
    ),
    "model.export, without Keras": (
        EXPORT,
        'kept = tf.saved_model.load("exported")\nloaded = kept.serve',
    ),
    "tf.saved_model.save": ('tf.saved_model.save(model, "saved_model")', LAYER),
    "Keras 2, to predict": (OLD, LAYER),
    "Keras 2, to train on Keras 2": (OLD, 'loaded = tf_keras.models.load_model("saved_model")'),
    "Keras 2, to train on Keras 3": (
        OLD,
        """loaded = make_model()
loaded.set_weights(tf_keras.models.load_model("saved_model").get_weights())""",
    ),
}
show_calls(
    FOLDERS, 'print("prediction:", float(tf.nest.flatten(loaded(tf.ones((1, 3))))[0][0, 0]))'
)

# %% [markdown]
# The message advises `TFSMLayer` for every file. For a checkpoint it raises `SavedModel file does not exist`. What
# `tf.saved_model.load` returns has no `predict`; keep it, since its functions do not keep the variables.
# [FM45](fm45_keras2_file_in_keras3.ipynb) is about more files of Keras 2.
#
# ### Which file is the newest?
#
# `latest_checkpoint` gives what the text file `checkpoint` names, which `Checkpoint.save` and `CheckpointManager` write. It
# does not see a checkpoint that was copied there, and is `None` beside files of Keras. Names are sorted by their letters, so
# write `ModelCheckpoint("epoch_{epoch:04d}.keras")`. A copied folder has other times.

# %% tags=["figure"]
# Twelve epochs, each with a checkpoint and two files: what is taken for the last, and what `load_model` makes of it.
CHOICES = [
    'tf.train.latest_checkpoint("saved")',
    'sorted(glob.glob("saved/*"))[-1]',
    'tf.train.latest_checkpoint(".")',
    'sorted(glob.glob("model_*.keras"))[-1]',
    'max(glob.glob("model_*.keras"), key=os.path.getmtime)',
    'sorted(glob.glob("epoch_*.keras"))[-1]',
]
CHOOSING = f"""import glob
import os
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
checkpoint = tf.train.Checkpoint(model=model)
for epoch in range(1, 13):
    model.set_weights([0 * each + epoch for each in model.get_weights()])
    checkpoint.save("saved/ckpt")
    model.save(f"model_{{epoch}}.keras")
    model.save(f"epoch_{{epoch:04d}}.keras")
for path in ({", ".join(CHOICES)}):
    try:
        print(path, "epoch", int(tf.keras.models.load_model(path).get_weights()[1][0]))
    except Exception as error:
        print(path, type(error).__name__)
"""
(printed,) = session.prints({"choices": CHOOSING}, [here])["choices"]
lines = [line.split(" ", 1) for line in printed.splitlines()]
rows = [[choice, *line] for choice, line in zip(CHOICES, lines)]
print(text_table([["choice", "path", "load_model"], *rows]))

# %% [markdown]
# ## Why
#
# `load_model` first needs the architecture. A `.keras` file and the `.h5` file of `model.save` contain it. A checkpoint and a
# `.weights.h5` file contain arrays and the path of each in the model. An `.npz` file contains arrays and no paths.
#
# A model is also made from `config = model.get_config()`, without its weights: `tf.keras.Sequential.from_config(config)`, or
# `tf.keras.Model.from_config(config)` if it is functional. `tf.keras.models.model_from_config(config)` raises. See
# [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving).
#
# ## Try other setups
#
# Change the save format, then the version of Keras. `.keras` works on both, and so does this `.h5` file, which has no loss. The
# strategy does not matter.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs in four formats, and with the other version of Keras:

# %% tags=["table"]
session.table(
    [
        here.but(keras=session.setup.keras),
        *(
            here.but(keras=session.setup.keras, save_format=name)
            for name in ("keras", "weights_h5", "npz")
        ),
        here.but(keras=session.setup.other_keras),
    ]
)

# %% [markdown]
# ## Exercise
#
# `ModelCheckpoint` saves the weights after each epoch. This program wants the model back from the file, and `load_model` raises.
# Use the call for such a file. It should print `same bias: True`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM30](fm30_custom_object_unknown.ipynb): the format is right, and a class in the file is unknown.
# - [FM25](fm25_load_outside_scope.ipynb): the file opens, and the model is on one device.
# - [FM04](fm04_weights_path_refused.ipynb): the file name that saving refuses.
# - [FM28](fm28_ragged_weights_file.ipynb): weights that are not written at all.
# - What an answer on `load_model` says: [document 004](documents/004_load_model.ipynb).
