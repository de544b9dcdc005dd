# %% [markdown]
# # FM27. `load_model` raises `File format not supported`: checkpoint, SavedModel, `.weights.h5` and `.h5`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` ValueError: File format not supported: filepath=… Keras 3 only supports V3 `.keras` files, legacy H5 format files (`.h5` extension). … `` | `load_model` of a checkpoint, a SavedModel or `.npz` | 3 |
# | `ValueError: No model config found in the file at …` | `load_model` of `.weights.h5` | 2, 3 |
# | `ValueError: File not found: filepath=model.keras. …` | `load_model`, wrong folder or name; Keras 2: `OSError: No file or directory found at` | 3 |
# | `ValueError: Could not deserialize 'keras.metrics.mse' because it is not a KerasSaveable subclass` | `load_model` of `.h5`, loss `"mse"`; older Keras 3: `Could not locate function 'mse'` | 3 before 3.16 |
# | `OSError: SavedModel file does not exist at: saved/…` | `load_model` of the folder of a checkpoint; of `.npz`: `Unable to synchronously open file` | 2 |
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
    fix="open each file with the call that wrote its kind; an `.h5` file with `compile=False`",
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
            r"SavedModel file does not exist at: \S*saved/",
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
# It writes a checkpoint, and gives the newest file or folder, here `saved`, to `load_model`. The path of the checkpoint,
# `saved/checkpoint-1`, fails as well.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Read each file with the counterpart of the call that wrote it: the table under "Why" has them. A file without the architecture
# needs a model: create it in your code, in the scope of your strategy, and fill it.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `load_model` first needs the architecture. A `.keras` file and the `.h5` file of `model.save` contain it. A checkpoint and a
# `.weights.h5` file contain arrays and the path of each in the model. An `.npz` file contains arrays and no paths.
#
# There are two kinds of SavedModel folders. `model.export` writes functions only, to predict with:
# `tf.keras.layers.TFSMLayer("exported", call_endpoint="serve")` is a layer that calls them. No Keras makes the layers of the
# model out of them. Keras 2's `model.save("folder")` also writes `keras_metadata.pb`, which describes the layers. Only Keras 2
# reads it: `pip install tf_keras`, and then `tf_keras.models.load_model` returns a model that you can train. Keras 3 can only
# predict with such a folder, in a `TFSMLayer`. [FM45](fm45_keras2_file_in_keras3.ipynb) is about more files of Keras 2.
#
# A model is also made from `config = model.get_config()`, without its weights: `tf.keras.Sequential.from_config(config)`, or
# `tf.keras.Model.from_config(config)` if it is functional. `tf.keras.models.model_from_config(config)` raises.
#
# The table has the call for each kind of file, as tested on Keras 3.

# %% tags=["figure"]
# Writes each kind of file in a new process, reads it with the call in the table, and predicts.
from strategy_clinic import text_table

SAVE, LOAD, SHOW = (
    'tf.train.Checkpoint(model=model).save("saved/checkpoint")',
    """loaded = make_model()  # fixed: a checkpoint needs the model
tf.train.Checkpoint(model=loaded).restore(tf.train.latest_checkpoint("saved"))  # fixed""",
    'print("prediction:", float(loaded(tf.ones((1, 3)))[0, 0]))',
)
OLD = """import tf_keras

old = tf_keras.Sequential([tf_keras.Input((3,)), tf_keras.layers.Dense(1)])
old.set_weights(model.get_weights())
old.compile("adam", "mse")
old.save("saved_model")"""
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
    "checkpoint": (
        SAVE,
        'loaded = make_model()\ntf.train.Checkpoint(model=loaded).restore("saved/checkpoint-1")',
    ),
    "SavedModel of model.export": (
        'model.export("exported")',
        'loaded = tf.keras.layers.TFSMLayer("exported", call_endpoint="serve")',
    ),
    "the same, without Keras": (
        'model.export("exported")',
        'loaded = tf.saved_model.load("exported")',
    ),
    "SavedModel of Keras 2, to predict": (
        OLD,
        'loaded = tf.keras.layers.TFSMLayer("saved_model", call_endpoint="serving_default")',
    ),
    "SavedModel of Keras 2, to train": (OLD, 'loaded = tf_keras.models.load_model("saved_model")'),
    ".npz": (
        'import numpy as np\n\nnp.savez("best.npz", *model.get_weights())',
        'loaded = make_model()\nloaded.set_weights(list(np.load("best.npz").values()))',
    ),
}
PREDICT = """call = getattr(loaded, "serve", loaded)
print(float(tf.nest.flatten(call(tf.ones((1, 3))))[0][0, 0]))"""  # some calls return a dictionary
texts = {kind: f"{save}\n\n{load}\n{PREDICT}" for kind, (save, load) in FILES.items()}
programs = session.variants("fixed", f"{SAVE}\n\n{LOAD}\n{SHOW}", texts)
here = session.setup.but(strategy="default", devices=1, save_format="checkpoint", keras=3)
printed = {kind: words[0] for kind, words in session.prints(programs, [here]).items()}
rows = [
    [kind, load.replace("\n", "; ") if printed[kind].endswith("4.0") else printed[kind]]
    for kind, (_, load) in FILES.items()
]
print(text_table([["file", "call that reads it"], *rows]))

# %% [markdown]
# Each call has a limit:
#
# - The message advises `TFSMLayer` for every file. Ignore it for a checkpoint: there it raises `SavedModel file does not exist`.
# - What `tf.saved_model.load` returns has no `predict`, and cannot be called: use `loaded.serve(inputs)`. Keep the object
#   `loaded`: its functions do not keep the variables.
# - For a SavedModel of Keras 2 the endpoint is `serving_default`, and it returns a dictionary.
# - If the loss is `"mse"`, an `.h5` file contains this string, which Keras 3 before 3.16 cannot turn into a function again. With
#   `compile=False` the state of the optimizer is lost: [FM29](fm29_optimizer_state_lost.ipynb). With the loss
#   `tf.keras.losses.MeanSquaredError()` the file opens as it is, but then `fit` raises `Unknown variable` on Keras 3:
#   [FM10](fm10_variable_unknown_to_optimizer.ipynb).
#
# See [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving).
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
