# %% [markdown]
# # FM16. `TPUStrategy.run(fn, ...) does not support pure eager execution`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` NotImplementedError: TPUStrategy.run(fn, ...) does not support pure eager execution. please make sure the function passed into `strategy.run` is a `tf.function` … `` | `strategy.run` under `TPUStrategy` | 2, 3 |
#
# A TPU runs programs that are traced and compiled. Here the step is not traced: `strategy.run` is called outside of a
# `tf.function`, or `tf.config.run_functions_eagerly(True)` or `model.compile(run_eagerly=True)` is left on from debugging.
#
# *Raises on Keras 2 and 3, under `TPUStrategy` only.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm16",
    slug="tpu_eager_run",
    title="`TPUStrategy.run(fn, ...) does not support pure eager execution`",
    sees="`strategy.run` or `fit` raises on a TPU: it does not support pure eager execution",
    fix="call `strategy.run` inside one `tf.function`, and leave `run_functions_eagerly` and `run_eagerly` off",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "NotImplementedError",
            r"TPUStrategy\.run\(fn, \.\.\.\) does not support pure eager execution",
            strategies=("tpu_traced", "tpu"),
        ),
    ),
    prints="kernel after three steps: [[-0.3]]",
    exercise_prints="kernel after one step: [[0.02]]",
)

# %% tags=["parameters"]
strategy = "tpu_traced"
devices = 8
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm16", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Three steps of a training loop on a TPU VM. Elsewhere pass the name of the TPU in place of `"local"`. Without a TPU this page
# describes one to TensorFlow, and TensorFlow's own `TPUStrategy` raises. In a file of your own both programs then raise the
# error of [FM17](fm17_tpu_not_initialised.ipynb).

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Decorate one `train_step` with `tf.function`, outside of the loop, and call it in the loop. All strategies accept this.
# `tf.function(strategy.run)(step)` in the loop is accepted, too, but it traces and compiles the step in each call; see
# [FM43](fm43_retracing_every_step.ipynb).
#
# In a program that uses `fit`, look for `run_eagerly=True`. In every program, look for `tf.config.run_functions_eagerly(True)`,
# which runs each `tf.function` as plain Python.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# In eager execution, a CPU or GPU runs one operation after the other, and Python runs between them. A TPU runs one *program*
# that is compiled for all of its cores. `TPUStrategy.run` builds this program from the graph of the `tf.function` around it, or
# of the `tf.function` that it is given. In eager execution there is no graph. Other strategies then run the step operation by
# operation.
#
# The picture runs the step in six ways. See
# [`tf.distribute.TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy).

# %% tags=["figure"]
# The program above with other lines for the call of the step.
from strategy_clinic import figures

LINE = "strategy.run(step)  # wrong: outside of a tf.function"
TRACED = "tf.function(lambda: strategy.run(step))()"
FIT = """model.compile("sgd", "mse", run_eagerly={})
    model.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0)"""
CALLS = {
    "run(step)": "strategy.run(step)",
    "run(tf.function(step))": "strategy.run(tf.function(step))",
    "run(step) in a tf.function": TRACED,
    "… with run_functions_eagerly": f"tf.config.run_functions_eagerly(True)\n    {TRACED}",
    "fit": FIT.format(False),
    "fit, run_eagerly=True": FIT.format(True),
}
tpu = session.setup.but(strategy="tpu_traced", devices=8)
two = tpu.but(strategy="mirrored", devices=2)
printed = session.prints(session.variants("broken", LINE, CALLS), [two, tpu])
RUNS = {call: [word.startswith("kernel") for word in row] for call, row in printed.items()}
figures.grid(RUNS, ["mirrored x2", "TPU x8"], "runs", "raises", "Which call runs?")

# %% [markdown]
# ## Try other setups
#
# Only a TPU refuses the step. `tpu_traced` needs no hardware: what it refuses is *traced* by TensorFlow's own class; what it
# accepts is *emulated*, with all replicas on CPU devices.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on the described TPU with the two versions of Keras, on two devices, and without a strategy:

# %% tags=["table"]
one = tpu.but(strategy="default", devices=1)
session.table([tpu, tpu.but(keras=session.setup.other_keras), two, one])

# %% [markdown]
# ## Exercise
#
# Yesterday this program was debugged. Change it so that it trains on a TPU again. It should print `[[0.02]]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM43](fm43_retracing_every_step.ipynb): a step that is traced in each call.
# - [FM17](fm17_tpu_not_initialised.ipynb): no TPU is found.
# - [FM07](fm07_python_in_traced_step.ipynb): what else changes when a step is traced.
# - [FM24](fm24_xla_refuses.ipynb): a traced step that cannot be compiled.
# - [FM01](fm01_host_read_in_replica.ipynb): a step that reads its weights, which a TPU refuses as well.
# - [FM31](fm31_replica_call_in_cross_replica.ipynb): a step that is called without `strategy.run`.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
