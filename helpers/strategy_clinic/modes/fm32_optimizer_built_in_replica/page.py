# %% [markdown]
# # FM32. `You must feed a value for placeholder tensor`: Adam's first step in `strategy.run` on Keras 3
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InvalidArgumentError: Graph execution error: Detected at node cond/Placeholder … You must feed a value for placeholder tensor 'cond/else/_1/cond/Placeholder' with dtype int32` | the first step in `strategy.run` with Adam | 3 before 3.16 |
#
# Adam creates its variables in its first step. If a `tf.function` traces this step, TensorFlow puts it into a condition, and the
# all-reduce of the gradients does not work there.
#
# *Raises on Keras 3 before 3.16 only, under `MirroredStrategy` with more than one device.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm32",
    slug="optimizer_built_in_replica",
    title="`You must feed a value for placeholder tensor`: Adam's first step in `strategy.run` on Keras 3",
    sees="Adam in a traced `strategy.run` of Keras 3 raises: a placeholder has no value",
    fix="`optimizer.build(model.trainable_variables)` in the scope, before the first step",
    document="000",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"You must feed a value for placeholder tensor",
            strategies=("mirrored",),
            devices=(2, 4, 8),
            keras=(3,),
            until="keras 3.16",
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

session = clinic.open("fm32", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of a custom training loop on two devices. With `SGD(0.1)` in place of Adam it trains.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Build the optimizer in the scope, with the variables that it will train. It then has its own variables before the first step is
# traced. `model.compile` does not build it. `fit` does, so a plain `fit` is not affected.
#
# If you cannot reach the optimizer, create the strategy with another reduction, for instance
# `MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())`. `ReductionToOneDevice()` works too, but is
# slower on GPUs.
#
# Keras 3.16 raises no error here. Until you have it, call `build`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# Adam keeps two variables for each weight, its *slot variables*. Keras 3 creates them in the first step, while TensorFlow traces
# it. The copy on the second device starts with the value of the first, so TensorFlow cannot initialize it outside the graph. It
# puts the step into a `cond`: create the variables, or use those that exist.
#
# `MirroredStrategy` adds the gradients with a collective all-reduce. Each all-reduce has a number, which is an input of the
# graph; see `_next_instance_key` in [TensorFlow's
# source](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/distribute/cross_device_utils.py). That input
# does not reach the `cond`: it is the placeholder without a value. The program itself contains no placeholder.
#
# One device has no second copy. SGD without momentum has no slot variables. Keras 2 creates slot variables outside the graph.
# Without `@tf.function` there is no graph. `RMSprop`, `Adagrad`, `Adafactor`, `Nadam`, `Lion` and `Ftrl` raise like Adam.
#
# If the message names `while/body/…`, it comes from `fit` with `steps_per_execution`, and `build` does not help: see
# [FM58](fm58_steps_per_execution.ipynb).

# %% tags=["figure"]
# The program above with other optimizers, traced, run eagerly, and with a built optimizer, on two devices.
from strategy_clinic import figures

LINE = "optimizer = tf.keras.optimizers.Adam(0.1)  # wrong: it has no variables for the weights yet"
NAMES = ["SGD(0.1)", "SGD(0.1, momentum=0.9)", "Adam(0.1)"]
MADE = {name: f"optimizer = tf.keras.optimizers.{name}" for name in NAMES}
BUILT = {
    name: f"{line}\n    optimizer.build(model.trainable_variables)" for name, line in MADE.items()
}
two = session.setup.but(strategy="mirrored", devices=2)
traced = session.variants("broken", LINE, MADE)
eager = {name: text.replace("@tf.function\n", "") for name, text in traced.items()}
built = session.variants("broken", LINE, BUILT)
WAYS = {"@tf.function": traced, "eagerly": eager, "optimizer.build": built}
printed = [session.prints(texts, [two]) for texts in WAYS.values()]
TRAINS = {name: [way[name][0].startswith("bias") for way in printed] for name in NAMES}
figures.grid(TRAINS, list(WAYS), "trains", "raises", "Which optimizer takes a first step?")

# %% [markdown]
# ## Try other setups
#
# With one device, another strategy or Keras 2 the failure is gone.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on two and four devices and on one, under another strategy, and with the other version of Keras:

# %% tags=["table"]
SETUPS = [two, two.but(devices=4), two.but(devices=1), two.but(strategy="central_storage")]
session.table([*SETUPS, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program gets its optimizer from `compile`. It ran with `SGD(0.05)`, and since momentum was added it raises. Repair it and
# keep the momentum. It should print `[0.1]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM31](fm31_replica_call_in_cross_replica.ipynb): the step stands in the scope and is not passed to `strategy.run`.
# - [FM03](fm03_scope_mismatch.ipynb): an optimizer that is built, but in another scope.
# - [FM09](fm09_optimizer_slots_missing.ipynb): slot variables that are created after a restore, which raises nothing.
# - [FM36](fm36_replica_group_resized.ipynb): another failure of the collective all-reduce.
# - [FM40](fm40_merge_call_in_nested_graph.ipynb): an update in a condition of your own.
