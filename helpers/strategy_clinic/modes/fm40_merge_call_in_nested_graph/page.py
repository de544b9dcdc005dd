# %% [markdown]
# # FM40. `merge_call` called while defining a new graph: `apply_gradients` inside a nested `@tf.function`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often happen if the function `fn` passed to `strategy.run()` contains a nested `@tf.function`, … `` | `apply_gradients` in a nested `tf.function` | 2, 3 |
# | `` RuntimeError: Exception encountered when calling Cond.call(). `merge_call` called while defining a new graph … `` | an optimizer with `gradient_accumulation_steps`, or (up to Keras 3.15) with `ema_overwrite_frequency` | 3 |
#
# A step under `strategy.run` calls a helper that is itself decorated with `@tf.function`, and the helper calls
# `apply_gradients`. Replicas exchange their gradients there, and they cannot do that from an inner graph.
#
# *Raises on Keras 2 and 3, under `MirroredStrategy` (also with one device), `MultiWorkerMirroredStrategy` and
# `CentralStorageStrategy`.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm40",
    slug="merge_call_in_nested_graph",
    title="`merge_call` called while defining a new graph: `apply_gradients` inside a nested `@tf.function`",
    sees="`merge_call` called while defining a new graph, from a nested `tf.function` or `gradient_accumulation_steps`",
    fix="one `tf.function`, around `strategy.run`; a larger batch instead of `gradient_accumulation_steps`",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"`merge_call` called while defining a new graph or a tf\.function\. This can often happen",
            strategies=("mirrored", "central_storage", "multi_worker"),
        ),
    ),
    prints="bias after one step: [0.1]",
    exercise_prints="bias after one step: [0.1]",
    unavailable={
        "parameter_server": "a coordinator sends the steps to its workers, and datasets are not distributed"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm40", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of a custom training loop. Without a strategy it prints `[0.1]`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Use one `tf.function`, around `strategy.run`, and let the step call plain Python functions. They become part of its graph.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If the decorated function comes from a library, call its `python_function`. Move a loop or a condition out of the step, around
# `strategy.run`.
#
# For an optimizer of Keras 3:
#
# - Instead of `gradient_accumulation_steps=n`, use a batch that is n times as large. The weights are the same, unless the
#   model has batch normalisation or dropout, or the last batch is smaller. If memory does not allow it, see
#   [FM15](fm15_accumulation_under_strategy.ipynb).
# - Leave out `ema_overwrite_frequency`. `use_ema=True` alone replaces the weights by their averages when `fit` ends. To
#   evaluate with averages in between, add the callback `keras.callbacks.SwapEMAWeights()`. Neither feeds averages back into the
#   training, as `ema_overwrite_frequency` does.
# - `compile(run_eagerly=True)` runs both options under `MirroredStrategy`, without a graph and slowly.
#
# ## Why
#
# `apply_gradients` adds up the gradients of all replicas. For that it calls `merge_call`, where each replica waits for the
# others. TensorFlow traces the replicas in turns, and it can switch between them only in the graph in which `strategy.run` was
# called. A nested `tf.function`, a branch of `tf.cond` and the body of a `tf.range` loop are graphs inside it, so `merge_call`
# refuses. A nested function that only computes is allowed. `TPUStrategy` traces one replica for all of them and accepts nested
# updates (seen in a trace, not on a TPU).
#
# `fit` calls `train_step` under `strategy.run`. On Keras 2 a decorated `train_step` raises. Keras 3 passes the decorated method
# itself to `strategy.run`, which unwraps it, so it trains; a decorated helper inside it raises on both.
#
# The table shows where `apply_gradients` may be called. See
# [`merge_call`](https://www.tensorflow.org/api_docs/python/tf/distribute/ReplicaContext#merge_call).

# %% tags=["figure"]
# The repaired program with other ways to call the update, and with other options of the optimizer.
from strategy_clinic import figures

LINE = "    update(tape.gradient(loss, model.trainable_variables))"
CALL = LINE.strip()
WAYS = {
    "in the step": LINE,
    "in a tf.function in the step": LINE.replace("update(", "tf.function(update)(", 1),
    "in tf.cond": f"    tf.cond(loss > 0.0, lambda: {CALL}, lambda: None)",
    "in a tf.range loop": f"    for _ in tf.range(1):\n        {CALL}",
    "in a Python loop": f"    for _ in range(1):\n        {CALL}",
}
BUILD = "    optimizer = tf.keras.optimizers.SGD(0.05)"
OPTIONS = {
    "ema_overwrite_frequency=1": BUILD.replace(
        "0.05", "0.05, use_ema=True, ema_overwrite_frequency=1"
    )
}
if session.setup.keras == 3:
    OPTIONS["gradient_accumulation_steps=2"] = BUILD.replace(
        "0.05", "0.05, gradient_accumulation_steps=2"
    )
two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
programs = session.variants("fixed", LINE, WAYS) | session.variants("fixed", BUILD, OPTIONS)
printed = session.prints(programs, [alone, two])
RUNS = {way: [word.startswith("bias") for word in row] for way, row in printed.items()}
figures.grid(RUNS, ["no strategy", "mirrored x2"], "runs", "raises", "Does the update run?")

# %% [markdown]
# ## Try other setups
#
# With `default` or `one_device` the failure is gone. With `mirrored` it raises on one device, too.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under three strategies, and on the other version of Keras:

# %% tags=["table"]
STRATEGIES = [two, two.but(strategy="central_storage"), two.but(strategy="multi_worker")]
session.table([alone, *STRATEGIES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# The `train_step` of this model has a helper that is a `tf.function`, and `fit` raises. Change the program so that it prints
# `[0.1]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM15](fm15_accumulation_under_strategy.ipynb): the same message from a condition in your step, and sums of gradients.
# - [FM51](fm51_overflow_on_one_replica.ipynb): mixed precision, whose `LossScaleOptimizer` raises nothing and trains wrongly.
# - [FM68](fm68_own_train_step.ipynb): what `fit` reports if a `train_step` returns the loss and not the result of a metric.
# - [FM43](fm43_retracing_every_step.ipynb): a `tf.function` that is created too often.
# - [FM16](fm16_tpu_eager_run.ipynb): a step without any `tf.function`.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): other calls that need all replicas.
