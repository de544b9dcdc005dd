# %% [markdown]
# # FM66. A `tf.Variable` in a layer is not trained, and not in a `.keras` file
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `factor after one step: 1.0` | `fit`, in place of 1.5; the other layers learn | 3 |
# | `UserWarning: The model does not have any trainable weights.` | `fit`, if no layer has another variable | 3 |
#
# Keras 3 has variables of its own, which `add_weight` makes. A `tf.Variable` that a layer or a model keeps as an attribute is
# used in `call`, and is in none of Keras's lists: `trainable_variables`, `weights`, `summary`.
#
# *Wrong result without an error, on Keras 3 only, with every strategy or none.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm66",
    slug="variable_not_of_keras",
    title="A `tf.Variable` in a layer is not trained, and not in a `.keras` file",
    sees="a parameter of a layer of its own keeps its first value in `fit`, and the rest of the model learns",
    fix="create it by `self.add_weight(shape=…, initializer=…)`, or as a `keras.Variable`",
    document="001",
    switches=("strategy", "keras"),
    symptoms=(Symptom("SilentFailure", r"it prints 'factor after one step: 1\.0'", keras=(3,)),),
    prints="factor after one step: 1.5",
    exercise_prints="bias after one step: [0.25]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` does not accept arrays there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm66", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A layer multiplies by a factor. One step of gradient descent should move the factor from 1 to 1.5.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Let the layer create the variable. If its shape depends on the input, do this in `build(self, input_shape)`. If Keras 2
# saves a layer with two variables to `.h5`, give each a `name=`: without names, saving raises.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For Keras 3 alone, `keras.Variable(1.0)` in the place of `tf.Variable(1.0)` is enough. In a custom loop you can also name the
# variable: `model.trainable_variables + [layer.factor]`, for the gradients and for the optimizer. Then it is trained, and still
# in no `.keras` file.
#
# `load_model` of a `.keras` file also needs the class: register it, and let its `__init__` accept `**options` and pass them on.
# See [FM30](fm30_custom_object_unknown.ipynb).
#
# A file that was written before has no value for the variable. It is lost if no checkpoint of `tf.train.Checkpoint` was
# written, which finds attributes of this kind: see [FM05](fm05_untracked_variable.ipynb) for what each format holds.
#
# To find such variables, compare `len(model.trainable_variables)` with what you have written, or look at the `Param #` of the
# layer in `model.summary()`.
#
# ## Why
#
# When a layer of Keras 3 gets an attribute, it looks at its class. A `keras.Variable`, a layer, a metric or a list of these is
# registered. A `tf.Variable` is not, because Keras 3 runs on JAX and PyTorch, too. The layer still works: `call` reads the
# variable, and the loss has a gradient for it, which nobody asks for. `fit` takes gradients for `trainable_variables` alone,
# and so do most custom loops. `tape.watched_variables()` has it.
#
# Keras 2 and TensorFlow's guides use `tf.Variable` in layers, so old code runs on Keras 3 and trains a part of its model.
# Keras's guide to [layers](https://keras.io/guides/making_new_layers_and_models_via_subclassing/) uses `add_weight`. If the
# factor matters little, the loss goes down, and nothing is noticed.
#
# The table says what is trained by `fit`, and what a `.weights.h5` file holds.

# %% tags=["figure"]
# The program above with other ways to create the factor: whether it is trained, and whether it is loaded from a file.
from strategy_clinic import figures

LINE = "self.factor = tf.Variable(1.0)  # wrong: Keras 3 does not know this variable"
END = "print("
SAVED = """
def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), Scale(), dense])


first, second = make_model(), make_model()
first.layers[0].factor.assign(5.0)
first.save_weights("scale.weights.h5")
second.load_weights("scale.weights.h5")
print("factor after loading:", float(second.layers[0].factor.numpy()))
"""
WAYS = {
    "add_weight": 'self.factor = self.add_weight(shape=(), initializer="ones")',
    "keras.Variable": "import keras\n\n        self.factor = keras.Variable(1.0)",
    "tf.Variable": "self.factor = tf.Variable(1.0)",
    "a list of tf.Variable": "self.factor = [tf.Variable(1.0)]",
}
here = session.setup.but(strategy="default", devices=1)
BOTH = [here.but(keras=3), here.but(keras=2)]
texts = {way: text + SAVED for way, text in session.variants("broken", LINE, WAYS).items()}
in_list = texts["a list of tf.Variable"].replace("* self.factor", "* self.factor[0]")
texts["a list of tf.Variable"] = in_list.replace("[0].factor", "[0].factor[0]")
printed = session.prints(texts, BOTH)


def outcome(words, name, good):
    line = next((line for line in words.splitlines() if line.startswith(name)), "raises")
    return good[0] if line.endswith(good[1]) else "raises" if line == "raises" else good[2]


TRAINED = ("factor after one", ("trained", "1.5", "not trained"))
LOADED = ("factor after loading", ("in the file", "5.0", "not in the file"))
FOUND = {
    way: [outcome(words, *which) for words in row for which in (TRAINED, LOADED)]
    for way, row in printed.items()
    if way != "keras.Variable"
}
FOUND["keras.Variable"] = [
    outcome(printed["keras.Variable"][0], *which) for which in (TRAINED, LOADED)
] + ["Keras 3 only"] * 2
COLUMNS = ["Keras 3", "Keras 3", "Keras 2", "Keras 2"]
figures.words(
    FOUND, COLUMNS, ("not trained", "not in the file"), "Is the factor trained and saved?"
)

# %% tags=["figure"]
# The program above with a custom loop in place of `fit`, for three lists of variables.
LOOP = """optimizer = tf.keras.optimizers.SGD(0.125)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(tf.square(model(tf.ones((8, 1))) - 3.0))
variables = {}
optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))"""
FIT = "model.fit(tf.ones((8, 1)), tf.fill((8, 1), 3.0), batch_size=8, verbose=0)"
LISTS = {
    "model.trainable_variables": "model.trainable_variables",
    "… + [layer.factor]": "model.trainable_variables + [model.layers[0].factor]",
    "tape.watched_variables()": "tape.watched_variables()",
}
programs = session.variants(
    "broken", FIT, {name: LOOP.format(words) for name, words in LISTS.items()}
)
printed = session.prints(programs, BOTH[:1])
FOUND = {name: [outcome(row[0], *TRAINED)] for name, row in printed.items()}
figures.words(FOUND, ["Keras 3"], "not trained", "Which loops train a `tf.Variable`?")

# %% [markdown]
# ## Try other setups
#
# The failure is the same under every strategy. With Keras 2 the factor is trained.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two mirrored devices and four, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
session.table([here, two, two.but(devices=4), here.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This layer is the first one of many tutorials. Keras 3 warns that nothing can be trained. Change the layer so that its bias is
# 0.25 after one step.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM05](fm05_untracked_variable.ipynb): what checkpoints and files hold of a variable.
# - [FM65](fm65_layers_in_a_list.ipynb): layers in a list are trained, and not in a checkpoint.
# - [FM11](fm11_unbuilt_model.ipynb): a model that is asked for its variables too early.
# - [FM10](fm10_variable_unknown_to_optimizer.ipynb): a variable that the optimizer does not know.
