# %% [markdown]
# # Document 004. Does `keras.models.load_model` function correctly with MirroredStrategy?
#
# This answer from the web is about models that are saved and loaded with and without a strategy. It makes 13 statements: each
# stands here in our words, with the verdict, the run that decides it, and the page about it.

# %% tags=["declaration"]
from strategy_clinic import Claim, Document

DOCUMENT = Document(
    id="004",
    title="Does `keras.models.load_model` function correctly with MirroredStrategy?",
    claims=(
        Claim("004-C1", "fm25", "the strategy is not saved with the model", "true"),
        Claim("004-C5", "fm25", "loading builds the model in the strategy that is current", "true"),
        Claim("004-C2", "fm25", "loading outside the scope gives a model on one device", "true"),
        Claim(
            "004-C15", "fm25", "on one device, the loaded model takes more memory of it", "false"
        ),
        Claim(
            "004-C3",
            "fm26",
            "a model saved without a strategy may fail to load under `MirroredStrategy`",
            "false",
        ),
        Claim("004-C4", "fm26", "loading on another number of devices leads to crashes", "false"),
        Claim("004-C13", "fm26", "a checkpoint must be restored under the same strategy", "false"),
        Claim(
            "004-C7", "fm29", "weights and configuration, kept apart, are the reliable way", "false"
        ),
        Claim("004-C8", "fm28", "`np.save` takes the list that `get_weights()` returns", "false"),
        Claim("004-C10", "fm28", "loading weights with `allow_pickle=True` is harmless", "false"),
        Claim(
            "004-C9", "fm27", "`model_from_config(model.get_config())` rebuilds the model", "false"
        ),
        Claim(
            "004-C6",
            "fm27",
            "the first example's `.h5` file loads",
            {2: "true", 3: "half"},
            until="keras 3.16",
        ),
        Claim("004-C6", "fm27", "the first example's `.h5` file loads", "true", since="keras 3.16"),
        Claim(
            "004-C16",
            "fm27",
            "the first example fails because its load omits the strategy",
            "false",
        ),
        Claim("004-C17", "fm27", "the second example runs from beginning to end", "false"),
        Claim(
            "004-C11", "fm27", "`load_model(latest_checkpoint(folder))` loads a checkpoint", "false"
        ),
        Claim("004-C18", "fm27", "the third example runs from beginning to end", "false"),
        Claim(
            "004-C12",
            "fm04",
            "`ModelCheckpoint(save_weights_only=True)` accepts a bare path",
            {2: "true", 3: "false"},
        ),
        Claim(
            "004-C14",
            "fm08",
            "`tf.train.latest_checkpoint` finds what `ModelCheckpoint` has written",
            {2: "true", 3: "false"},
        ),
    ),
)

# %% tags=["parameters"]
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

document = clinic.document("004", keras)

# %% [markdown] tags=["statements"]
# ## The statements
#
# The verdict is that of Keras 3; where Keras 2 differs, both are named. "True in part", or *half*: some runs agree with the
# statement, and others do not.

# %% [markdown] tags=["section"]
# fm25

# %% tags=["claims"]
# Tests the sentences by variants of the two programs, on two devices.
session = document.page("fm25")
# from fm25: COMPILE, FIT, two

LAST = 'print("idle devices:", strategy.num_replicas_in_sync - used)'
FILE = 'zipfile.ZipFile("model.keras").read("config.json")'
SAVED = "with strategy.scope():\n    model"
SAVED_FROM_ONE = SAVED.replace("strategy", "tf.distribute.get_strategy()")
SAME = "print(abs(model.predict(tf.eye(3), verbose=0) - loaded.predict(tf.eye(3), verbose=0)).max() < 1e-6)"
BYTES = """print(sum(
    part.numpy().nbytes
    for weight in loaded.weights
    for part in strategy.experimental_local_results(getattr(weight, "_value", weight))
    if part.device.endswith(":0")))"""
TESTS = {
    **session.variants("broken", LAST, {"bytes alone": BYTES}),
    **session.variants("fixed", LAST, {"bytes of a copy": BYTES}),
    **session.variants(
        "broken",
        LAST,
        {"file": f'import zipfile\nprint(b"Dense" in {FILE}, b"Mirrored" in {FILE})'},
    ),
    **session.variants("broken", f"{COMPILE}\n{FIT}", {"outside": SAME}),
    **session.variants("fixed", SAVED, {"from one": SAVED_FROM_ONE}),
}
says = {name: words[0] for name, words in session.prints(TESTS, [two]).items()}

# %% [markdown] tags=["decided"]
# 004-C1

# %%
document.judges(
    {
        "004-C1": [says["file"] == "True False"],
    },
)

# %% [markdown] tags=["decided"]
# 004-C5

# %%
document.judges(
    {
        "004-C5": ["idle devices: 1" in says["outside"], says["from one"] == "idle devices: 0"],
    },
)

# %% [markdown] tags=["decided"]
# 004-C2, 004-C15

# %%
document.judges(
    {
        "004-C2": [says["outside"] == "True\nidle devices: 1"],
        # A kernel of three numbers and a bias, of four bytes each.
        "004-C15": [says["bytes alone"] != "16", says["bytes of a copy"] != "16"],
    },
)

# %% [markdown] tags=["section"]
# fm26

# %% tags=["claims"]
# Compares the predictions of saved and loaded models, and the optimizer of a restored checkpoint, between one and four devices.
session = document.page("fm26")
# from fm26: four

FORMATS = [
    four.but(save_format=name) for name in ("keras", "h5", "weights_h5", "checkpoint", "npz")
]
HEAD, _, REST = session.texts["fixed"].partition("model = make_model()")
LOADING = "model = make_model()" + REST.partition("loaded.fit")[0]
SAME = "print(bool(abs(model(inputs) - loaded(inputs))[0, 0] < 1e-6))\n"
RESTORING = """with strategy.scope():
    model = make_model()
    model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.5), "mse")
model.fit(inputs, labels, batch_size=8, verbose=0)
state = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save("state/checkpoint")
with tf.distribute.get_strategy().scope():  # the second run
    loaded = make_model()
    loaded.compile(tf.keras.optimizers.SGD(0.05, momentum=0.5), "mse")
    loaded.optimizer.build(loaded.trainable_variables)
again = tf.train.Checkpoint(model=loaded, optimizer=loaded.optimizer)
again.restore(state).assert_existing_objects_matched()
loaded.fit(inputs, labels, batch_size=8, verbose=0)
model.fit(inputs, labels, batch_size=8, verbose=0)
print(bool(abs(model.get_weights()[0] - loaded.get_weights()[0])[0, 0] < 1e-6))
"""


def swapped(text):
    """The program with the two runs on the devices of each other."""
    marks = {"strategy.scope()": "tf.distribute.get_strategy().scope()", "ONE": "strategy.scope()"}
    text = text.replace("tf.distribute.get_strategy().scope()", "ONE")
    for old, new in marks.items():
        text = text.replace(old, new)
    return text


saved_on_four = "with strategy.scope():\n    " + LOADING.replace(
    "with strategy.scope():  #", "with tf.distribute.get_strategy().scope():  #"
)
loads = {"from one": HEAD + LOADING + SAME, "from four": HEAD + saved_on_four + SAME}
restores = {"from four": HEAD + RESTORING, "from one": HEAD + swapped(RESTORING)}
loaded = session.prints(loads, FORMATS)
restored = session.prints(restores, [four])

# %% [markdown] tags=["decided"]
# 004-C3

# %%
document.judges(
    {
        # Loading would have raised, or the model would predict something else.
        "004-C3": [words != "True" for words in loaded["from one"]],
    },
)

# %% [markdown] tags=["decided"]
# 004-C4

# %%
document.judges(
    {
        "004-C4": [words != "True" for words in loaded["from one"] + loaded["from four"]],
    },
)

# %% [markdown] tags=["decided"]
# 004-C13

# %%
document.judges(
    {
        "004-C13": [words != ["True"] for words in restored.values()],
    },
)

# %% [markdown] tags=["section"]
# fm29

# %% tags=["claims"]
# Resumes from a configuration and an array of weights: are the optimizer's counter and the training right?
session = document.page("fm29")
# from fm29: FIRST, LINES, SECOND, here

PARTS = """loaded = tf.keras.Sequential.from_config(model.get_config())
loaded.set_weights(model.get_weights())
loaded.compile(tf.keras.optimizers.SGD(0.25, momentum=0.5), "mse")
"""
COUNT = 'print("steps:", int(loaded.optimizer.iterations))\n'
parts = session.variants("fixed", LINES, {"parts": FIRST + PARTS + SECOND + COUNT})
says = session.prints(parts, [here])["parts"][0]

# %% [markdown] tags=["decided"]
# 004-C7

# %%
document.judges(
    {
        "004-C7": ["steps: 2" in says, "epochs: 1.0" in says],
    },
)

# %% [markdown] tags=["section"]
# fm28

# %% tags=["claims"]
# Tests the lines of the document: whether `np.save` writes its model, and whether loading a file with pickle runs code.
session = document.page("fm28")
# from fm28: Path, agreeing, np, ragged, read_one, save_one, survives, tempfile, tried


def save_objects(file, weights):
    array = np.empty(len(weights), dtype=object)
    for place, weight in enumerate(weights):
        array[place] = weight
    np.save(file, array)


class NotAWeight:
    """Something in an array that is not a weight. Unpickling calls what it names, here to create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def runs_code(**options):
    """Loads an array whose content calls a function; was it called?"""
    with tempfile.TemporaryDirectory() as folder:
        file, trace = Path(folder) / "weights.npy", Path(folder) / "was here"
        save_objects(file, [NotAWeight(trace), *ragged])
        before = trace.exists()
        tried(lambda: np.load(file, **options))
        return trace.exists() and not before


print("loading runs code from the file:", runs_code(allow_pickle=True))
print("loading runs code from the file, allow_pickle left alone:", runs_code())

# %% [markdown] tags=["decided"]
# 004-C8, 004-C10

# %%
document.judges(
    {
        "004-C8": [survives(save_one, read_one, each)[0] for each in (ragged, agreeing)],
        "004-C10": [not runs_code(allow_pickle=True)],
    },
)

# %% [markdown] tags=["section"]
# fm27

# %% tags=["claims"]
# Tests the calls of the three examples, each in a program of its own.
session = document.page("fm27")
# from fm27: LOAD, SAVE, here

LOADED = "\n\nloaded = tf.keras.models."
H5 = f'model.save("best.h5"){LOADED}load_model("best.h5")'
EXAMPLES = {
    "string": f'model.compile("adam", "mse")\n{H5}',
    "object": f'model.compile("adam", tf.keras.losses.MeanSquaredError())\n{H5}',
    "config": f"{LOADED}model_from_config(model.get_config())\nloaded.set_weights(model.get_weights())",
    "checkpoint": f'{SAVE}{LOADED}load_model(tf.train.latest_checkpoint("saved"))',
}
# The three examples as whole programs on two devices, with data and arguments for what they leave open.
TRAINED = """import os
import numpy as np
import tensorflow as tf
from tensorflow import keras

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
checkpoint_dir = './training_checkpoints'
checkpoint_prefix = os.path.join(checkpoint_dir, "ckpt_{epoch}")
data, labels = tf.ones((8, 4)), tf.ones((8, 10))

with strategy.scope():
  model = keras.Sequential([keras.layers.Dense(10)])
  model.compile("adam", "mse")
"""
FIT = "  model.fit(data, labels, verbose=0)\n"
WHOLE = f'{TRAINED}{FIT}  model.save("model_incorrect.h5")\n\n'
LOAD_H5 = 'model_loaded = keras.models.load_model("model_incorrect.h5")\n'
PARTS = """  weights = model.get_weights()
  model_config = model.get_config()
  np.save("model_weights.npy", weights)
  import json
  with open('model_config.json', 'w') as f:
      json.dump(model_config, f)

with strategy.scope():
  reconstructed_model = keras.models.model_from_config(model_config)
  reconstructed_model.set_weights(np.load("model_weights.npy", allow_pickle=True))
"""
CHECKPOINTS = """  checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
  checkpoint.restore(tf.train.latest_checkpoint(checkpoint_dir))
  model.fit(data, labels, verbose=0, callbacks=[tf.keras.callbacks.ModelCheckpoint(
      filepath=checkpoint_prefix, save_weights_only=True)])

with strategy.scope():
  model_loaded = keras.models.load_model(tf.train.latest_checkpoint(checkpoint_dir))
"""
WHOLES = {
    "trained": TRAINED + FIT,
    "outside": WHOLE + LOAD_H5,
    "in the scope": f"{WHOLE}with strategy.scope():\n  {LOAD_H5}",
    "second": TRAINED + FIT + PARTS,
    "third": TRAINED + CHECKPOINTS,
}
programs = {name: f"{text}print('it ran')\n" for name, text in WHOLES.items()}
on_two = here.but(strategy="mirrored", devices=2, save_format="keras", keras=session.setup.keras)
ran = {
    name: words[0].endswith("it ran") for name, words in session.prints(programs, [on_two]).items()
}
assert ran["trained"]
tests = session.variants("fixed", f"{SAVE}\n\n{LOAD}", EXAMPLES)
says = session.prints(tests, [here.but(keras=session.setup.keras)])
loads = {name: words == ["prediction: 4.0"] for name, words in says.items()}

# %% [markdown] tags=["decided"]
# 004-C9

# %%
document.judges(
    {
        "004-C9": [loads["config"]],
    },
)

# %% [markdown] tags=["decided"]
# 004-C6, 004-C16

# %%
document.judges(
    {
        # The document leaves the arguments of `compile` out.
        "004-C6": [loads["string"], loads["object"]],
        "004-C16": [ran["in the scope"] and not ran["outside"]],
    },
)

# %% [markdown] tags=["decided"]
# 004-C17

# %%
document.judges(
    {
        "004-C17": [ran["second"]],
    },
)

# %% [markdown] tags=["decided"]
# 004-C11, 004-C18

# %%
document.judges(
    {
        "004-C11": [loads["checkpoint"]],
        "004-C18": [ran["third"]],
    },
)

# %% [markdown] tags=["section"]
# fm04

# %% tags=["claims"]
# Saves between steps and in a step under two devices, and by the callback, each to a path with and without the ending.
session = document.page("fm04")
# from fm04: make_model, same_weights, tempfile, tf


def done(save, *arguments):
    """Does saving work, and do the weights come back?"""
    try:
        return save(*arguments)
    except (ValueError, NotImplementedError):
        return False


def by_callback(path):
    model, again = make_model(), make_model()
    callback = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    callback.set_model(model)
    callback.on_epoch_end(0, {})
    again.load_weights(path)
    return same_weights(model, again)


folder = tempfile.TemporaryDirectory()
good, bad = f"{folder.name}/my.weights.h5", f"{folder.name}/my_checkpoint"

# %% [markdown] tags=["decided"]
# 004-C12

# %%
document.judges(
    {
        "004-C12": [done(by_callback, bad)],
    },
)

# %% [markdown] tags=["section"]
# fm08

# %% tags=["claims"]
# Each supposed cause with the right path, the wrong path without it, and what latest_checkpoint finds of the callback.
session = document.page("fm08")
# from fm08: tempfile, tf


def make_model(units=1):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(units)])
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def found_by_latest_checkpoint(name):
    """Whether the callback accepts this name, and whether its file is found then."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            callback = tf.keras.callbacks.ModelCheckpoint(
                f"{folder}/{name}", save_weights_only=True
            )
        except ValueError:
            return False
        callback.set_model(make_model())
        callback.on_epoch_end(0, {})
        return tf.train.latest_checkpoint(folder) is not None


written = "callback" if session.setup.keras == 2 else "callback.weights.h5"

# %% [markdown] tags=["decided"]
# 004-C14

# %%
document.judges(
    {
        "004-C14": [found_by_latest_checkpoint(each) for each in ("callback", written)],
    },
)

# %% [markdown]
# ## All verdicts
#
# How many statements have which verdict here. This cell fails if a claim that is declared has not been judged above.

# %%
document.verdicts()
