# %% [markdown]
# # FM61. `Using MirroredStrategy eagerly has significant overhead`: Python executes every step
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` WARNING:tensorflow:Using MirroredStrategy eagerly has significant overhead currently. We will be working on improving this in the future, but for now please wrap `call_for_each_replica` or `experimental_run` or `run` inside a tf.function to get the best performance. `` | `strategy.run` outside of a `tf.function`, several devices | 2, 3 |
# | no message: slow training | `compile(..., run_eagerly=True)`, or a value that is read in every step | 2, 3 |
#
# Python starts each operation of a step by itself, for one device after the other, and the devices wait for it. The results
# are right.
#
# *A warning and slow training, on Keras 2 and 3, with and without a strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm61",
    slug="host_round_trips",
    title="`Using MirroredStrategy eagerly has significant overhead`: Python executes every step",
    sees="training is slower with more devices, and their utilisation is low; a warning said `significant overhead`",
    fix="call `strategy.run` within one `tf.function`, and read values every k steps or after the epoch",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(Symptom("SilentFailure", r"it prints 'Python executes each of 60 steps: True'"),),
    prints="Python executes each of 60 steps: False",
    exercise_prints="Python executes each of 40 steps: False",
    unavailable={
        "tpu_traced": "`strategy.run` outside of a `tf.function` raises there (fm16)",
        "tpu": "`strategy.run` outside of a `tf.function` raises there (fm16)",
        "parameter_server": "its steps are scheduled on workers as graphs",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm61", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The loop calls `strategy.run`, and the step adds to a list each time that Python executes it. In a graph, Python executes the
# step only while it is traced.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Call `strategy.run` within one `tf.function`. Python then executes the step only while TensorFlow traces it, once for each
# replica.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# To call Python even less often, take several steps in one call:
#
# ```python
# optimizer.build(model.trainable_variables)  # before: in the loop, a new Adam raises (FM32)
#
# @tf.function
# def train_steps(iterator):
#     for _ in tf.range(20):
#         strategy.run(step, args=(next(iterator),))
# ```
#
# Reading a value also makes Python wait until the devices have finished: `loss.numpy()`, `float(loss)`, `print(loss)` and
# `if loss < best:` in each step. Add up values in a `tf.keras.metrics.Mean` within the step, and read it every 100 steps or after
# the epoch. `fit` does this by itself. `clinic examine --counts train.py` reports the steps that Python executes, the calls of
# graphs, and the values that are read in each step, with the line.
#
# ## Why
#
# Outside of a `tf.function`, TensorFlow is eager: Python starts each operation when it comes to it. Starting one takes some
# microseconds or more, and a step of a small model has hundreds of them. `MirroredStrategy` executes the step once for each
# replica, each in a thread of its own. Only one of these threads executes Python at a time. A step therefore takes longer with
# each device, however fast the device is.
#
# A graph is one operation for Python, and TensorFlow starts what is in it on all devices without Python.
#
# The measurement was of two dense layers and Adam, on two busy cores: an eager `strategy.run` took 67 ms without a strategy,
# 264 ms on two virtual devices and 543 ms on four. The same step in a `tf.function` took 0.5, 4 and 20 ms. These are times of
# one machine; the table counts how often Python executes the step in 60 steps. See
# [Better performance with tf.function](https://www.tensorflow.org/guide/function).

# %% tags=["figure"]
# The program above with other calls in the loop: how often does Python execute the step?
from strategy_clinic import figures

LOOP, PRINTED = (
    "for _ in range(60):\n    strategy.run(step)  # wrong: outside of a tf.function\n",
    'print("Python executes each of 60 steps:", len(executions) >= 60)',
)
MANY = "def many():\n    for _ in tf.range(20):\n        strategy.run(step)\n\n\n"
WAYS = {
    "strategy.run(step)": "for _ in range(60):\n    strategy.run(step)\n",
    "a new tf.function each time": "for _ in range(60):\n    tf.function(strategy.run)(step)\n",
    "one tf.function": "train = tf.function(strategy.run)\nfor _ in range(60):\n    train(step)\n",
    "20 steps in one call": f"@tf.function\n{MANY}for _ in range(3):\n    many()\n",
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
texts = {
    way: text.replace(PRINTED, "print(len(executions))")
    for way, text in session.variants("broken", LOOP, WAYS).items()
}
COUNTS = session.prints(texts, PLACES)
often = {"60", "120", "240"}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(COUNTS, COLUMNS, often, "Executions of the step by Python, in 60 steps")

# %% [markdown]
# ## Try other setups
#
# Python executes each step. With more devices it does so once for each of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two and four devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
ALONE = two.but(strategy="default", devices=1)
STRATEGIES = [two, two.but(devices=4), two.but(strategy="central_storage")]
session.table([ALONE, *STRATEGIES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# `fit` calls `strategy.run` within a `tf.function` by itself, and this program still executes each step by Python. Change it so
# that it prints `False`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM43](fm43_retracing_every_step.ipynb): a `tf.function` that is traced in every call is as slow.
# - [FM16](fm16_tpu_eager_run.ipynb): on a TPU, `strategy.run` outside of a `tf.function` raises.
# - [FM53](fm53_same_work_on_every_replica.ipynb): each device does the work of all.
# - [FM63](fm63_input_bound.ipynb): the devices wait for the data.
