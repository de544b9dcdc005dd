# %% [markdown]
# # FM43. `triggered tf.function retracing`: every call is traced again
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `WARNING:tensorflow:5 out of the last 5 calls to <function train_step at …> triggered tf.function retracing. Tracing is expensive and the excessive number of tracings could be due to (1) creating @tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) passing Python objects instead of tensors. …` | a `tf.function` that gets a Python number | 2, 3 |
# | `WARNING:tensorflow:5 out of the last 5 calls to <function TensorFlowTrainer.make_predict_function.<locals>.one_step_on_data_distributed …` | `predict` of a new model in each turn of a loop | 3 |
# | `WARNING:tensorflow:5 out of the last 5 calls to <function Model.make_predict_function.<locals>.predict_function …` | the same | 2 |
#
# A traced step gets a Python number that changes, so TensorFlow traces it again in every call. Every step is as slow as the
# first, and memory grows. The results are right.
#
# *A warning and slow training, on Keras 2 and 3, with and without a strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm43",
    slug="retracing_every_step",
    title="`triggered tf.function retracing`: every call is traced again",
    sees="every step is as slow as the first, and memory grows; a warning said `triggered tf.function retracing`",
    fix="give the step tensors (`tf.constant(rate)`), and create one `tf.function`, or one model, before the loop",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(Symptom("SilentFailure", r"it prints 'traces: 5', and right is 'traces: 1'"),),
    prints="traces: 1",
    exercise_prints="traced again: False",
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm43", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The loop computes a learning rate in Python and passes it to the step. The program prints how often the step was traced.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Pass a tensor.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For the other causes:
#
# - Write `@tf.function` once, above a function that is defined before the loop. Do not call `tf.function(strategy.run)(step)`
#   in the loop: it creates a new function in each turn.
# - For batches of different lengths, pad them to one shape, pass `reduce_retracing=True` or an `input_signature` to
#   `tf.function`, or drop the last batch. The signature of a distributed batch is `[distributed.element_spec]`, where
#   `distributed` is the distributed dataset; a plain `TensorSpec` raises.
# - If the warning comes from `fit` or `predict` of a new model in each turn of a loop, over folds or hyperparameters, one trace
#   for each model is expected, and nothing is wrong. For single examples call `model(x)`.
#
# `tf.config.run_functions_eagerly(True)` removes the warning, and Python then executes every step
# ([FM61](fm61_host_round_trips.ipynb)). To find the cause in your program, print `train_step.experimental_get_tracing_count()`
# after some steps. It should not grow after the first epoch.
#
# ## Why
#
# `tf.function` creates a graph for each *signature* of its arguments, and keeps it. The signature of a tensor is its dtype and
# shape, so the next tensor uses the same graph. The signature of a Python number is its value: each new number creates a new
# graph. To create it, Python runs the step once for each replica, and on a TPU each graph is compiled. Old graphs stay in
# memory as long as the function does.
#
# A new `tf.function` has no graphs, so one that is created in the loop traces in every call. The signature of a Python function
# is its identity, so a function that is defined in the loop is new, too.
#
# TensorFlow warns after five traces, and at most twice for each function. In one measurement, with two dense layers and Adam on
# two virtual CPUs, a call that traced took over 300 ms and kept about 3 MB. A call that did not took 2 ms.
#
# The table counts the traces of five calls. See [the guide to
# `tf.function`](https://www.tensorflow.org/guide/function#rules_of_tracing).

# %% tags=["figure"]
# A traced step is called five times, each time with something else in place of the rate.
import numpy as np
import tensorflow as tf

from strategy_clinic import build_strategy, figures

CALLS = 5
ARGUMENTS = {
    "a tensor": lambda run, step, number: run(step, (tf.constant(float(number)),)),
    "a NumPy number": lambda run, step, number: run(step, (np.float32(number),)),
    "a Python number": lambda run, step, number: run(step, (float(number),)),
    "a tensor of another shape": lambda run, step, number: run(step, (tf.ones(number + 1),)),
    "a new Python function": lambda run, step, number: run(lambda: step(number)),
    "a new tf.function": lambda run, step, number: tf.function(run.python_function)(step, ()),
}


def traces_of(setup, call):
    """Returns how often Python runs a step for one replica, in five calls."""
    strategy, traces = build_strategy(setup), []

    def step(*arguments):
        traces.append(arguments)

    run = tf.function(strategy.run)
    for number in range(CALLS):
        call(run, step, number)
    return str(len(traces) // strategy.num_replicas_in_sync)


two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
TRACES = {
    name: [traces_of(each, call) for each in (alone, two)] for name, call in ARGUMENTS.items()
}
figures.words(TRACES, ["no strategy", "mirrored x2"], str(CALLS), "Traces in five calls")

# %% [markdown]
# ## Try other setups
#
# The count is the same with and without a strategy. A trace costs more with more devices, because Python runs the step for each
# of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under three strategies, and on the other version of Keras:

# %% tags=["table"]
STRATEGIES = [two, two.but(strategy="central_storage"), two.but(strategy="tpu_traced", devices=8)]
session.table([alone, *STRATEGIES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This evaluation passes tensors, and is still traced in every call. Change it so that it prints `traced again: False`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM07](fm07_python_in_traced_step.ipynb): Python code that runs only while a step is traced.
# - [FM12](fm12_variables_recreated.ipynb): variables that are created in each call.
# - [FM16](fm16_tpu_eager_run.ipynb): why a TPU needs `tf.function`.
# - [FM21](fm21_dataset_misdistributed.ipynb): batches whose size depends on the number of devices.
