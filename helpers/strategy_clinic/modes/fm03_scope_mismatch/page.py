# %% [markdown]
# # FM03. `Need to be inside "with strategy.scope()"`: the model was created outside the scope
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `RuntimeError: Need to be inside "with strategy.scope()" for <...MirroredStrategy object at ...>` | `fit`, with Adam or SGD with momentum | 3 |
# | `` ValueError: `colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope() `` | a custom loop; on Keras 3 also `fit` in the scope, only a base model outside, or `enable_lora` outside | 2, 3 |
# | `RuntimeError: Mixing different tf.distribute.Strategy objects: <...> is not <...>` | the optimizer outside; two strategy objects | 3 |
# | `AssertionError: assert isinstance(var, values.DistributedVariable)` | `fit` and custom loops, with plain SGD; the error has no message | 3 |
# | `ValueError: Variable (...) was not created in the distribution strategy scope of (...).` | `compile` | 2 |
# | `` ValueError: Metric (...) passed to `model.compile` was created inside a different distribution strategy scope than the model. `` | `compile`, a metric outside | 2 |
#
# Variables that are trained together must be created in the scope of one strategy object, and the model was created before that
# scope was open.
#
# *Raises on Keras 2 and 3. On Keras 3 plain SGD raises under `MirroredStrategy`, and trains under `OneDeviceStrategy` and
# central storage. Wrong result without an error for plain SGD from outside, on Keras 3.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm03",
    slug="scope_mismatch",
    title='`Need to be inside "with strategy.scope()"`: the model was created outside the scope',
    sees='`fit` raises `Need to be inside "with strategy.scope()"`, or `compile` does: `was not created in the ... scope`',
    fix="create the model, its optimizer and its metrics in the scope of one strategy object",
    document="000",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "RuntimeError",
            r'Need to be inside "with strategy\.scope\(\)" for',
            strategies=("one_device", "mirrored", "central_storage", "tpu_traced", "tpu"),
            keras=(3,),
        ),
        Symptom(
            "ValueError",
            r"was not created in the distribution strategy scope of",
            strategies=("one_device", "mirrored", "central_storage", "tpu_traced", "tpu"),
            keras=(2,),
        ),
    ),
    prints="after 2 steps: [[0.8]]",
    exercise_prints="base after 2 steps: [[0.8]]",
    observed=("model",),
    unavailable={
        "multi_worker": "`fit` of Keras 3 raises under it for another reason",
        "parameter_server": "`fit` accepts no arrays under it",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm03", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A function builds the model, and the scope is opened for `compile`. The same happens if `tf.keras.applications`, `clone_model`
# or `from_pretrained` creates the model before the scope is open.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Call the function in the scope. `fit` may stand outside. `compile` of Keras 3 may stand outside only if you pass an optimizer
# object that was created in the scope: `compile("adam")` creates the optimizer, and `fit` raises, and with `compile("sgd")`
# every replica counts each step, without an error. On Keras 2 metrics must be created in the scope, too.
#
# A layer of a model from the scope can get new variables later. Create them in the scope, too: call `layer.enable_lora(rank)` of
# Keras 3 there. Outside, `fit` raises as if only that layer had been created outside.
#
# You can open the scope as often as you like, if it is the scope of the same strategy object. A second `MirroredStrategy()` for
# the same devices is a different strategy.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# While `strategy.scope()` is open, the strategy creates each new variable, and the variable remembers its strategy. A Keras
# model and an optimizer also remember the strategy that was current when they were created. Here the model was created without
# one, so `fit` trains without one.
#
# Keras 2 compares the strategies in `compile`. Keras 3 compares nothing, so what you see depends on the optimizer:
#
# - Adam and SGD with momentum keep slot variables beside each weight. The strategy refuses to place slots beside a weight that
#   it did not create.
# - Plain SGD has no slots. Under `MirroredStrategy` the update itself fails.
# - A plain SGD from outside raises nothing. Every replica adds 1 to `iterations`, so a learning-rate schedule runs as many times
#   too fast as there are replicas.
#
# Keras 2 refuses a metric from outside the scope. Keras 3 accepts it, and it counts all replicas.
#
# The table shows what `fit` does on Keras 3 if one object is created outside. SGD has a learning-rate schedule there. See
# [`Strategy.scope`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#scope).

# %% tags=["figure"]
# The program above with the model or the optimizer outside the scope, without a strategy and on one and two replicas.
from strategy_clinic import figures

LINES = """\
model = make_model()  # wrong: the scope is not open yet
with strategy.scope():
    model.compile(optimizer=tf.keras.optimizers.Adam(0.1), loss="mse")
"""
ADAM = "tf.keras.optimizers.Adam(0.1)"
SGD = "tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))"
ALL_INSIDE = """\
with strategy.scope():
    model = make_model()
    model.compile(optimizer={}, loss="mse")
"""
MODEL_OUTSIDE = """\
model = make_model()
with strategy.scope():
    model.compile(optimizer={}, loss="mse")
"""
OPTIMIZER_OUTSIDE = """\
optimizer = {}
with strategy.scope():
    model = make_model()
    model.compile(optimizer=optimizer, loss="mse")
"""
ORDERS = {
    "all inside, Adam": ALL_INSIDE.format(ADAM),
    "all inside, SGD": ALL_INSIDE.format(SGD),
    "model outside, Adam": MODEL_OUTSIDE.format(ADAM),
    "model outside, SGD": MODEL_OUTSIDE.format(SGD),
    "optimizer outside, Adam": OPTIMIZER_OUTSIDE.format(ADAM),
    "optimizer outside, SGD": OPTIMIZER_OUTSIDE.format(SGD),
}
two = session.setup.but(strategy="mirrored", devices=2)
alone = two.but(strategy="default", devices=1)
one = two.but(devices=1)
printed = session.prints(session.variants("broken", LINES, ORDERS), [alone, one, two])


def outcome(words, right):
    if words == right:
        return "trains"
    return "wrong" if words.startswith("after") else "raises"


OUTCOMES = {order: [outcome(words, row[0]) for words in row[1:]] for order, row in printed.items()}
COLUMNS = ["1 replica", "2 replicas"]
figures.words(OUTCOMES, COLUMNS, ["raises", "wrong"], "What does fit do?")

# %% [markdown]
# ## Try other setups
#
# Without a strategy (`default`) the broken program works. With one device it still fails.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on one and two devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
central = two.but(strategy="central_storage")
session.table([alone, one, two, central, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This script adds a head to a base model, as fine-tuning does. Only the head is created in the scope, and `fit` raises. Move one
# line.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests when `compile` outside the scope trains with more steps than one device.
BUILT_OUTSIDE = """\
optimizer = tf.keras.optimizers.Adam(0.1)
with strategy.scope():
    model = make_model()
optimizer.build(model.trainable_variables)
model.compile(optimizer=optimizer, loss="mse")
"""
COMPILE_LATER = """\
with strategy.scope():
    model = make_model()
model.compile("sgd", "mse")
"""
OTHERS = {"built": BUILT_OUTSIDE, "compiled": COMPILE_LATER}
outside = session.prints(session.variants("broken", LINES, OTHERS), [alone, one, two])
steps = [int(words.split()[1]) for words in outside["compiled"]]
assert steps == [2, 2, 2 if session.setup.keras == 2 else 4]

# %% [markdown]
# ## Read next
#
# - [FM25](fm25_load_outside_scope.ipynb): a model loaded outside the scope, which raises nothing.
# - [FM23](fm23_variable_outside_scope.ipynb): a counter created outside the scope, which every replica updates.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): a custom loop, where the optimizer is built in the first step.
# - [FM31](fm31_replica_call_in_cross_replica.ipynb): everything is created in the scope, and the step runs there, too.
# - What an answer on `get_weights()` says: [document 000](documents/000_weights_in_run.ipynb).
