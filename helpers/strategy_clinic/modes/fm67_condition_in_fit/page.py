# %% [markdown]
# # FM67. ``Using a symbolic `tf.Tensor` as a Python `bool` is not allowed``: `if` on a tensor in `fit`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` OperatorNotAllowedInGraphError: … Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. … `` | `if`, `while`, `assert`, `and`, `not` in `call`, a loss or a metric | 3 |
# | `` OperatorNotAllowedInGraphError: … Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. … `` | the same in `train_step`, a regularizer or a schedule | 2, 3 |
# | `` OperatorNotAllowedInGraphError: … Iterating over a symbolic `tf.Tensor` is not allowed. … `` | `for row in tensor`; on Keras 3 also `for i in tf.range(n)` | 2, 3 |
# | `OperatorNotAllowedInGraphError: … Could not automatically infer the output shape / dtype of 'limit' (of type Limit). …` | `call` of a layer of a functional or `Sequential` model | 3 |
# | `RuntimeError: Unable to automatically build the model. …` | `call` of a subclass of `Model` under a strategy; FM11 has this message, too | 3 |
#
# `fit` traces Python functions with tensors that have no value yet, and `if` needs one. Keras 2 rewrote most of these functions
# so that the graph decides. Keras 3 does not.
#
# *Raises on Keras 3, with every strategy or none. On Keras 2 it raises in fewer places.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm67",
    slug="condition_in_fit",
    title="``Using a symbolic `tf.Tensor` as a Python `bool` is not allowed``: `if` on a tensor in `fit`",
    sees="an `if` on a tensor in a layer, a loss or a `train_step` raises that a tensor cannot be a Python `bool`",
    fix="choose in the graph, by `tf.where` or `tf.cond`, or move the `if` into a function of tensors that has `@tf.function`",
    document="001",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "OperatorNotAllowedInGraphError",
            r"Using a symbolic `tf\.Tensor` as a Python `bool` is not allowed",
            keras=(3,),
        ),
        Symptom(
            "OperatorNotAllowedInGraphError",
            r"Using a symbolic `tf\.Tensor` as a Python `bool` is not allowed",
            strategies=("tpu_traced",),
            keras=(2,),
        ),
    ),
    prints="bias after one step: [0.5]",
    exercise_prints="bias has moved after 1 step: False\nbias has moved after 2 steps: True",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` of Keras 3 does not run there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm67", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A layer divides its input by the largest number if that is above 1. The model raises where it is made.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# `tf.cond` has both branches in the graph and runs one of them. Both must return tensors of the same type.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Often there is a simpler way:
#
# - `tf.cond` needs one condition. To choose for each number, use `tf.where(condition, one, other)`, which computes both. If
#   the one that is not chosen is infinite, the gradient is `nan`. Replace its input as well:
#   `tf.where(x > 0.0, 1.0 / tf.where(x > 0.0, x, 1.0), 0.0)`.
# - `if training:` may stay: `training` is a Python `bool`. So may `if tensor is None`, and `if x.shape[-1] == 3` in place of
#   `tf.shape(x)[-1]`.
# - To keep the `if`, move it into a function with `@tf.function` that gets and returns tensors, and call it in `call`, the
#   loss, the metric or `train_step`. `@tf.function` on these themselves can raise: on a `call` whose inner layers are not
#   built in `build` (`No gradients provided for any variable`, Keras 3), on an `update_state` that assigns in a branch, under a
#   strategy, and on `train_step` on Keras 2 ([FM40](fm40_merge_call_in_nested_graph.ipynb)).
# - `for row in tensor` becomes an operation on the whole tensor, or `tf.map_fn`.
#
# `compile(run_eagerly=True)` makes losses and `train_step` work, slowly. It does not help a layer of a `Sequential` or
# functional model: Keras 3 calls it without values to learn its shape.
#
# ## Why
#
# In a graph a number is known only when the graph runs. AutoGraph, a part of `tf.function`, replaces an `if` in the source by a
# `tf.cond`. It converts the function that `tf.function` gets and what that calls. Keras 3 marks its own code as not to be
# converted, in `keras/src/backend/tensorflow/trainer.py`, and this holds for all that `fit` calls. Keras 2 converted each
# `call`. A layer that was written for it works eagerly, and in your own `tf.function` and `Dataset.map` an `if` in the function
# itself works, too.
#
# The table says where an `if` works in `fit`. See [the guide to
# AutoGraph](https://www.tensorflow.org/guide/function#autograph_transformations).

# %% tags=["figure"]
# An `if` in seven places of one model, without and with `@tf.function`, on Keras 3 and 2.
from strategy_clinic import figures

PROGRAM = """import tensorflow as tf


{mark}def choose(number):
    if number > 1.0:
        return 2.0 * number
    return number


class Choose(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs * choose(tf.reduce_max(inputs))


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return 0.01 * choose(tf.cast(step, tf.float32))


class Own(tf.keras.Sequential):
    def train_step(self, data):
        result = super().train_step(data)
        return {{**result, "chosen": choose(tf.reduce_max(data[0]))}}


layer, loss, metric, rate, penalty, model = None, "mse", None, 0.01, None, tf.keras.Sequential
{place}
parts = [layer] if layer else []
dense = tf.keras.layers.Dense(1, kernel_regularizer=penalty)
model = model([tf.keras.Input((1,)), *parts, dense])
model.compile(tf.keras.optimizers.SGD(rate), loss, metrics=metric, run_eagerly={eager})
model.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0)
print("works")
"""
MEAN = "tf.reduce_mean(tf.square(a - b), -1)"
PLACES = {
    "call": "layer = Choose()",
    "loss": f"loss = lambda a, b: {MEAN} * choose(tf.reduce_max(a))",
    "metric": f"metric = [lambda a, b: {MEAN} * choose(tf.reduce_max(a))]",
    "schedule": "rate = Schedule()",
    "regularizer": "penalty = lambda kernel: choose(tf.reduce_sum(kernel))",
    "train_step": "model = Own",
}
MARKS = {"": "", " with @tf.function": "@tf.function\n"}
programs = {
    f"{name}{words}": PROGRAM.format(mark=mark, place=place, eager=False)
    for name, place in PLACES.items()
    for words, mark in MARKS.items()
}
for name in ("call", "loss"):
    eager = PROGRAM.format(mark="", place=PLACES[name], eager=True)
    programs[f"{name} with run_eagerly=True"] = eager
here = session.setup.but(strategy="default", devices=1)
printed = session.prints(programs, [here.but(keras=3), here.but(keras=2)])
WORKS = {name: [words == "works" for words in row] for name, row in printed.items()}
figures.grid(WORKS, ["Keras 3", "Keras 2"], "works", "raises", "Where may an `if` on a tensor be?")

# %% [markdown]
# ## Try other setups
#
# The message is the same under every strategy. With Keras 2 this layer works, but not on an emulated TPU.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [here, two, two.but(strategy="central_storage")]
session.table([*SETUPS, here.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# The learning rate is to be 0 in the first step, and 0.125 afterwards. Change the schedule so that it does this in a graph.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM07](fm07_python_in_traced_step.ipynb): NumPy, `float` or `print` on a tensor in the same places.
# - [FM40](fm40_merge_call_in_nested_graph.ipynb): an update of the weights in a `tf.cond`, under a strategy.
# - [FM43](fm43_retracing_every_step.ipynb): a Python number that changes, and is traced each time.
# - [FM11](fm11_unbuilt_model.ipynb): other causes of `Unable to automatically build the model`.
