# %% [markdown]
# # FM73. Layers of `tf_keras` in a model of Keras 3 are not trained
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `kernel of the body after one step: [1.]` | `fit` or a custom loop: a custom model or layer of Keras 3 holds a layer of `tf_keras` | 3 |
# | `ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: <tf_keras…>` | `Sequential` of Keras 3 with a layer of `tf_keras`, such as `hub.KerasLayer` | 3 |
# | `TypeError: The added layer must be an instance of class Layer. Received: layer=<Dense …> of type <class 'keras.src.layers…'>` | `Sequential` of `tf_keras` with a layer of Keras 3 | 2 |
# | `ValueError: Could not interpret optimizer identifier: <tf_keras…>` | `compile` of one with an optimizer of the other | 2, 3 |
#
# `tf_keras` is Keras 2, and `tf.keras` is Keras 3 from TensorFlow 2.16 on. Each tracks its own layers only. A layer of the
# other is called like a function, and its variables are in no list.
#
# *Wrong result without an error where `tf.keras` is Keras 3, with every strategy or none.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm73",
    slug="two_keras_in_one_model",
    title="Layers of `tf_keras` in a model of Keras 3 are not trained",
    sees="a part of a model, often from a library for Keras 2, keeps its weights in `fit`, and no `.keras` file has them",
    fix="take all of a model from one Keras: `import tf_keras as keras` if a library needs Keras 2, and no `tf.keras`",
    document="001",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure", r"it prints 'kernel of the body after one step: \[1\.\]'", keras=(3,)
        ),
    ),
    prints="kernel of the body after one step: [1.25]",
    exercise_prints="word 1 after one step: [1.5]",
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

session = clinic.open("fm73", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The body stands for a layer of a library that was written for Keras 2. One step should move its kernel from 1 to 1.25.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Take the model, all its layers and the optimizer from the same package.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If no library asks for Keras 2, replace the layer of `tf_keras` by that of `tf.keras`. To keep the names `tf.keras`, set
# `TF_USE_LEGACY_KERAS=1` before the program starts, or by `os.environ` above *every* import that imports TensorFlow. Then
# `tf.keras` is `tf_keras`. Set after `tf.keras` was used, it changes nothing. It does not change `import keras`, which is always
# the installed Keras 3.
#
# A finished body of Keras 2 can also be exported with `body.export("body")`, and used in Keras 3 as
# `keras.layers.TFSMLayer("body", call_endpoint="serve", trainable=True)`, which Keras 3 trains. A custom loop that asks for
# `model.trainable_variables + model.body.trainable_variables` trains both. Neither puts the body's weights into a `.keras` file
# of Keras 3.
#
# To find such layers, compare `len(model.trainable_variables)` with what you expect, or look whether `model.summary()` has the
# layer. `clinic examine` does not name this mode.
#
# ## Why
#
# When a model of Keras 3 gets an attribute, it looks whether that is a layer of Keras 3. A layer of `tf_keras` is not, so it is a
# plain attribute. `call` still works, because both compute on TensorFlow's tensors. The loss has a gradient for the variables, and
# nobody asks for it: see [FM66](fm66_variable_not_of_keras.ipynb).
#
# `training=True` does not reach the layer, either: a `Dropout` of `tf_keras` drops nothing in a model of Keras 3 whose `call`
# does not pass `training` on. A `.keras` and a `.weights.h5` file lack the weights. A checkpoint of `tf.train.Checkpoint` has
# them.
#
# Other parts of the two can be mixed, or fail at once. A loss object of `tf_keras`, such as
# `tf_keras.losses.MeanSquaredError()`, works in `fit` of Keras 3 without a strategy and raises under one. `set_random_seed`
# of one also seeds the other.
#
# The tables say what is trained and stored. See TensorFlow's [notes on
# Keras 3](https://keras.io/getting_started/#tensorflow--keras-2-backwards-compatibility).

# %% tags=["figure"]
# The program above with other layers, other ways to hold them and a custom loop: is the body trained?
from strategy_clinic import figures

FIT = "model.fit(tf.ones((8, 2)), tf.fill((8, 1), 3.0), batch_size=8, verbose=0)"
LOOP = """optimizer = tf.keras.optimizers.SGD(0.125)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(tf.square(model(tf.ones((8, 2))) - 3.0))
variables = {}
optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))"""
LISTS = {
    "a loop, model.trainable_variables": "model.trainable_variables",
    "a loop, … + body.trainable_variables": "model.trainable_variables + model.body.trainable_variables",
}
BODY = 'tf_keras.layers.Dense(1, kernel_initializer="ones")'
MODEL = "    model = Classifier()\n"
text = session.texts["broken"]
SEQUENTIAL = (
    text.replace(MODEL, MODEL + "    model = tf.keras.Sequential([model.body, model.head])\n")
).replace("model.body.", "model.layers[0].")
WAYS = {
    "fit": text,
    "a tf_keras.Sequential as the body": text.replace(BODY, f"tf_keras.Sequential([{BODY}])"),
    "an Embedding as the body": text.replace(
        BODY, 'tf_keras.layers.Embedding(9, 1, embeddings_initializer="ones")'
    ).replace("self.body(inputs)", "self.body(inputs[:, :1] - 1)[:, 0]"),
    "in a Sequential": SEQUENTIAL,
    "all of tf_keras": session.texts["fixed"],
    "all of tf.keras": text.replace("tf_keras.layers", "tf.keras.layers"),
}
WAYS |= session.variants("broken", FIT, {way: LOOP.format(each) for way, each in LISTS.items()})
here = session.setup.but(strategy="default", devices=1, keras=3)
WORDS = {"[1.25]": "trained", "[1.5]": "trained", "[1.]": "not trained"}


def outcome(words):
    return WORDS.get(words.rsplit(" ", 1)[-1], "raises")


four = here.but(strategy="mirrored", devices=4)
PLACES = {"no strategy": here, "mirrored x4": four, "Keras 2": here.but(keras=2)}
printed = session.prints(WAYS, list(PLACES.values()))
FOUND = {way: [outcome(words) for words in row] for way, row in printed.items()}
figures.words(FOUND, list(PLACES), ("not trained", "raises"), "Is the body trained?")

# %% tags=["figure"]
# What each format has of the body: a model with other weights gets those of the file.
SAVED = """
other = Classifier()
other(tf.ones((1, 2)))
other.body.set_weights([tf.fill((2, 1), 7.0).numpy(), tf.zeros(1).numpy()])
{}
print("kernel of the body:", other.body.get_weights()[0][0])
"""
FORMATS = {
    ".weights.h5": 'model.save_weights("a.weights.h5")\nother.load_weights("a.weights.h5")',
    "tf.train.Checkpoint": 'path = tf.train.Checkpoint(model=model).save("saved/a")\n'
    "tf.train.Checkpoint(model=other).restore(path)",
}
texts = {
    f"{name}, {subject}": session.texts[subject] + SAVED.format(lines)
    for name, lines in FORMATS.items()
    for subject in ("broken", "fixed")
}
printed = session.prints(texts, [here])
LOADED = {
    way.replace("broken", "Keras 3 with a body of tf_keras").replace("fixed", "all of tf_keras"): [
        "not in the file" if row[0].endswith("[7.]") else "in the file"
    ]
    for way, row in printed.items()
}
figures.words(LOADED, ["the body"], "not in the file", "Which files have the body's weights?")

# %% tags=["tests"]
# Dropout, TFSMLayer and the optimizer.
KEPT = """
import tf_keras, keras
layer = tf_keras.layers.Dropout(0.9)


class Dropping(keras.Model):
    def call(self, inputs):
        return layer(inputs)


print(float(tf.reduce_min(Dropping()(tf.ones((3, 20)), training=True))))
body = tf_keras.Sequential([tf_keras.Input((2,)), tf_keras.layers.Dense(1)])
body.export("body")
layer = keras.layers.TFSMLayer("body", call_endpoint="serve", trainable=True)
print(len(keras.Sequential([keras.Input((2,)), layer]).trainable_variables))
for one, other in ((keras, tf_keras), (tf_keras, keras)):
    try:
        one.Sequential([one.Input((2,)), one.layers.Dense(1)]).compile(other.optimizers.SGD(), "mse")
    except ValueError as error:
        print(str(error)[:37])
"""
(words,) = session.prints({"kept": "import tensorflow as tf\n" + KEPT}, [here])["kept"]
lines = words.splitlines()
assert (
    lines[0] == "1.0"
    and "2" in lines
    and lines[-2:] == ["Could not interpret optimizer identifier"[:37]] * 2
)

# %% [markdown]
# ## Try other setups
#
# The failure is the same under every strategy. With Keras 2, `tf.keras` is `tf_keras`, and the body is trained.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two mirrored devices and four, and with the other version of Keras:

# %% tags=["table"]
two = here.but(strategy="mirrored", devices=2)
session.table([here, two, two.but(devices=4), here.but(keras=2)])

# %% [markdown]
# ## Exercise
#
# A layer of Keras 3 holds a table of words from `tf_keras`. Change the program so that the table is trained on one, two, four or
# eight devices: word 1 is 1.5 after one step.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM66](fm66_variable_not_of_keras.ipynb): a `tf.Variable` in a layer of Keras 3 is not trained.
# - [FM45](fm45_keras2_file_in_keras3.ipynb): a file of Keras 2 in Keras 3.
# - [FM65](fm65_layers_in_a_list.ipynb): layers in a list are trained, and not in a checkpoint.
