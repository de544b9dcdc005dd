# %% [markdown]
# # FM65. `tf.train.Checkpoint` of a Keras 3 model: layers in a list are not in it
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `same after restoring: False` | `restore`; `assert_consumed` and `assert_existing_objects_matched` raise nothing | 3 |
# | no message: no layer's variable in the list | `tf.train.list_variables(path)`, which shows `save_counter` and `_CHECKPOINTABLE_OBJECT_GRAPH` | 3 |
#
# Keras 3 finds the layers of `self.blocks = [Dense(4), Dense(1)]`, trains them and counts them. The checkpoints of TensorFlow
# do not find them, neither when they save nor when they restore.
#
# *Wrong result without an error, on Keras 3 only, with every strategy or none. A `.weights.h5` file is right.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm65",
    slug="layers_in_a_list",
    title="`tf.train.Checkpoint` of a Keras 3 model: layers in a list are not in it",
    sees="a restored model predicts nonsense, and `assert_consumed` passes: its layers are in a list or a dictionary",
    fix="keep layers in a tuple, in attributes of their own or in a `Sequential`, or save by `model.save_weights`",
    document="001",
    switches=("strategy", "keras"),
    symptoms=(Symptom("SilentFailure", r"it prints 'same after restoring: False'", keras=(3,)),),
    prints="same after restoring: True",
    exercise_prints="both models agree: True",
    unavailable={"multi_worker": "each of its processes would need a file of its own"},
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm65", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two models of one class, each called once. The second gets the checkpoint of the first, and should predict the same.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Make a tuple of the finished list. It works for layers, but not for a list within the tuple, or a tuple within a list.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Other ways:
#
# - `self.blocks = tf.keras.Sequential(layers)`, if each layer takes the output of the one before.
# - One attribute for each layer, in a loop: `setattr(self, f"block_{number}", layer)`.
# - `model.save_weights("model.weights.h5")` and `load_weights`. Such a file has layers in lists and dictionaries, also nested
#   ones, but not those in an attribute of a layer with a name of Keras's own, such as `self._layers`. It has no state of the
#   optimizer: see [FM29](fm29_optimizer_state_lost.ipynb).
#
# A checkpoint that exists does not have the layers. But if it was saved with a built optimizer, as in
# `tf.train.Checkpoint(model=model, optimizer=model.optimizer)`, the optimizer has their trainable weights: build the optimizer
# of the new model with `optimizer.build(model.trainable_variables)`, and restore both. Moving statistics of
# `BatchNormalization` are lost.
#
# Before you rely on a checkpoint, look into it with `tf.train.list_variables(path)`, or call `assert_tracked` of
# [FM05](fm05_untracked_variable.ipynb) with `model.weights`.
#
# ## Why
#
# A checkpoint follows attributes whose values TensorFlow can track. When a layer of Keras 2 gets a list, TensorFlow wraps it
# in a list that is tracked. Keras 3 puts a list of its own in its place (`TrackedList` in `keras/src/utils/tracking.py`), so
# that it finds the layers itself. A checkpoint does not follow this class. It leaves a tuple as it is, and TensorFlow wraps
# it.
#
# `assert_consumed` checks that all of the checkpoint was used, and `assert_existing_objects_matched` that each object that the
# checkpoint can find got a value. Neither knows of the list.
#
# `StackedRNNCells`, which `RNN` makes from a list of cells, has its cells in such a list. `Bidirectional` and
# `MultiHeadAttention` keep layers in attributes, and are complete.
#
# The table counts how many of the model's weights a checkpoint and a weights file bring back. See [the guide to
# checkpoints](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).

# %% tags=["figure"]
# The program above with other containers, saved by a checkpoint, by one with the optimizer, and as `.weights.h5`.
from strategy_clinic import figures

LINE = "self.blocks = layers  # wrong: a checkpoint of a Keras 3 model does not follow a list"
WAYS = {
    "list": "self.blocks = layers",
    "list, append": "self.blocks = []\n        for layer in layers:\n            self.blocks.append(layer)",
    "dictionary": 'self.named = {"first": layers[0], "second": layers[1]}\n        self.order = "first", "second"',
    "list of tuples": "self.pairs = [(layers[0],), (layers[1],)]",
    "tuple of lists": "self.pairs = [layers[0]], [layers[1]]",
    "tuple": "self.blocks = tuple(layers)",
    "Sequential": "self.inner = tf.keras.Sequential(layers)",
    "attributes": "self.first, self.second = layers",
}
LOOP = "for layer in self.blocks:"
LOOPS = {
    "dictionary": "for layer in (self.named[name] for name in self.order):",
    "list of tuples": "for (layer,) in self.pairs:",
    "Sequential": "for layer in (self.inner,):",
    "tuple of lists": "for (layer,) in self.pairs:",
    "attributes": "for layer in (self.first, self.second):",
}
HEAD, CHECKPOINT = session.texts["broken"].partition("path = ")[0], "tf.train.Checkpoint(model={0})"
for layer in ("Dense(4)", "Dense(1)"):
    HEAD = HEAD.replace(layer, layer.replace(")", ", bias_initializer='normal')"))
COUNT = """
pairs = zip(trained.get_weights(), restored.get_weights())
print(sum(bool((one == other).all()) for one, other in pairs), "of", len(trained.get_weights()))
"""
BOTH = "tf.train.Checkpoint(model={0}, optimizer={0}.optimizer)"
BUILT = """for model in (trained, restored):
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
"""


def with_checkpoint(checkpoint):
    saved, loaded = checkpoint.format("trained"), checkpoint.format("restored")
    return f'path = {saved}.save("saved/training")\n{loaded}.restore(path).assert_consumed()\n'


SAVES = {
    "checkpoint": with_checkpoint(CHECKPOINT),
    "with optimizer": BUILT + with_checkpoint(BOTH),
    "weights.h5": 'trained.save_weights("m.weights.h5")\nrestored.load_weights("m.weights.h5")\n',
}
here = session.setup.but(strategy="default", devices=1)
FOUND = {}
for way, line in WAYS.items():
    model = HEAD.replace(LINE, line).replace(LOOP, LOOPS.get(way, LOOP))
    texts = {name: model + save + COUNT for name, save in SAVES.items()}
    kept = session.prints(texts, [here.but(keras=3)])
    two = session.prints({"": texts["checkpoint"]}, [here.but(keras=2)])
    FOUND[way] = [words for (words,) in kept.values()] + two[""]
COLUMNS = [*SAVES, "checkpoint,\nKeras 2"]
BAD = [f"{count} of 4" for count in range(4)]
figures.words(FOUND, COLUMNS, BAD, "How many weights of two layers are restored?")

# %% [markdown]
# ## Try other setups
#
# The failure is the same under every strategy. With Keras 2 the list is followed.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two mirrored devices, and with the other version of Keras:

# %% tags=["table"]
mirrored = session.setup.but(strategy="mirrored", devices=2)
session.table([here, mirrored, here.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# A functional model has a layer with two heads in a dictionary, as models with several outputs often do. Change the layer so
# that the restored model predicts the same.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM05](fm05_untracked_variable.ipynb): a variable that belongs to nothing that is saved.
# - [FM35](fm35_restore_before_build.ipynb): a restore before the first call of the model.
# - [FM66](fm66_variable_not_of_keras.ipynb): a `tf.Variable` in a layer, which Keras does not train.
# - [FM06](fm06_architecture_changed.ipynb): a file whose layers do not fit the model.
