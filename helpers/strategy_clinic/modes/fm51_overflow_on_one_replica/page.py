# %% [markdown]
# # FM51. `mixed_float16`, `LossScaleOptimizer`: weights turn infinite on several devices
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `all weights are finite: False` | two devices or more: the weight is -inf, the next loss is `nan` | 3 |
#
# A step whose gradients overflow must be left out. Keras 3 asks only the first replica whether they overflow, and so applies
# infinite gradients of other replicas.
#
# *Wrong result without an error, on Keras 3 only, under `MirroredStrategy` with more than one replica. On several workers each
# asks itself, and the worker without an overflow waits for ever.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm51",
    slug="overflow_on_one_replica",
    title="`mixed_float16`, `LossScaleOptimizer`: weights turn infinite on several devices",
    sees="with mixed precision on several devices weights become `inf` and the loss `nan`; on one device it trains",
    fix='use `set_global_policy("mixed_bfloat16")`, or let `check_finite` of the optimizer ask all replicas',
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'all weights are finite: False'",
            strategies=("mirrored",),
            devices=(2, 4, 8),
            keras=(3,),
        ),
    ),
    prints="all weights are finite: True",
    exercise_prints="all weights are finite: True",
    unavailable={
        "central_storage": "Keras 2 and 3 do not support mixed precision there",
        "tpu_traced": "a TPU computes in bfloat16 and needs no loss scale",
        "tpu": "a TPU computes in bfloat16 and needs no loss scale",
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` does not accept arrays there",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm51", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of `fit` in half precision. The last example is large, and its gradient, which is multiplied by the loss scale of
# 32768, exceeds the largest number of float16. Only the last replica has this example.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# `mixed_bfloat16` has the range of float32 and needs no loss scale. CPUs, TPUs and newer GPUs compute with it.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If your GPU supports float16 only, give the optimizer a check over all replicas, and compile the model with it:
#
# ```python
# def finite_everywhere(gradients):
#     known = [each for each in gradients if each is not None]
#     finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in known])
#     overflows = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(~finite, tf.float32))
#     return overflows < 0.5
#
# optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.01))
# optimizer.check_finite = finite_everywhere
# ```
#
# The check also works on several workers. A loaded optimizer has lost it: assign it again.
#
# ## Why
#
# In `mixed_float16` small gradients would become zero. `compile` therefore puts a `LossScaleOptimizer` around the optimizer.
# It multiplies the loss by a scale, divides the gradients by it, and changes the scale as training continues. Overflows are
# expected: when one occurs, the step is left out and the scale is halved. Every 2000 steps without one the scale is doubled,
# so this can come late in a training that was fine for hours.
#
# Under a strategy, `_tf_apply` in `keras/src/optimizers/loss_scale_optimizer.py` calls `check_finite` in each replica and
# takes the answer of the first. Its comment says that all answers are the same, because the gradients have been added up.
# They are added later, in the inner optimizer. An overflow of the first replica leaves the step out. An overflow of another
# one is added to all copies of the weights, and the scale stays as it is. On several workers, one leaves the step out and another
# waits for its gradients.
#
# The documentation of `LossScaleOptimizer` says: "On any train step, if a nonfinite gradient is encountered, the loss scale is
# halved, and the train step is skipped." So this is a bug of Keras, in all versions from 3.3 to 3.15 and in its development branch.
# One such step is enough to lose the weights. It was seen on virtual devices of a CPU, and is not reported yet;
# `upstream/loss_scale_of_first_replica.md` is ready. Keras 2 asks all replicas.
#
# The table shows the weight, which is 1 at first, after this step, by the place of the large example. The picture follows the
# step. See [Mixed precision](https://www.tensorflow.org/guide/mixed_precision#loss_scaling).

# %% tags=["figure"]
# The program with the large example in another place, and with a check over all replicas, on one and two devices.
from strategy_clinic import figures

LINE = "inputs = tf.constant([[1.0]] * 7 + [[300.0]])"
FIRST, LAST = "inputs = tf.constant([[300.0]] + [[1.0]] * 7)", LINE
CHECK = """

def finite_everywhere(gradients):
    known = [each for each in gradients if each is not None]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in known])
    overflows = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(~finite, tf.float32))
    return overflows < 0.5


with strategy.scope():
    sgd = tf.keras.optimizers.SGD(0.01)
    model.compile(tf.keras.mixed_precision.LossScaleOptimizer(sgd), loss="mse")
model.optimizer.check_finite = finite_everywhere
"""
WAYS = {"in the first replica": FIRST, "in the last": LAST, "in the last, all asked": LAST + CHECK}
PRINTS = 'print("all weights are finite:", bool(finite))'
SHOWN = "print(model.get_weights()[0][0, 0])"
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=1), two]
programs = session.variants("broken", LINE, WAYS)
programs = {way: text.replace(PRINTS, SHOWN) for way, text in programs.items()}
printed = session.prints(programs, PLACES)
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(printed, COLUMNS, "-inf", "What is the weight after an overflow?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% tags=["figure"]
# The check over all replicas in other models: without an overflow, and with one on the last replica.
START, CHECKED = (
    "with strategy.scope():\n    layers",
    CHECK.split("\n\n\nwith")[0].strip() + "\n\n\n",
)
text = session.texts["broken"]
head = text[: text.index(START)] + CHECKED
PART = """tf.keras.utils.set_random_seed(1)
with strategy.scope():
    inputs = tf.keras.Input((2,))
    hidden = HIDDEN
    outputs = tf.keras.layers.Dense(1)(tf.keras.layers.Flatten()(hidden))
    outputs = tf.keras.layers.Activation("linear", dtype="float32")(outputs)
    model = tf.keras.Model(inputs, outputs)
    sgd = tf.keras.optimizers.SGD(0.01)
    model.compile(tf.keras.mixed_precision.LossScaleOptimizer(sgd), loss="mse")
model.optimizer.check_finite = finite_everywhere
labels = tf.constant([[1.0]] * 7 + [[LAST]])
model.fit(tf.ones((8, 2)), labels, batch_size=8, shuffle=False, verbose=0)
finite = all(bool(tf.reduce_all(tf.math.is_finite(each))) for each in model.get_weights())
print(finite, float(model.optimizer.dynamic_scale.numpy()) == SCALE)
"""
HIDDEN = {
    "Embedding": "tf.keras.layers.Embedding(5, 3)(inputs)",
    "a layer without a gradient": (
        "tf.keras.layers.Lambda(tf.stop_gradient)(tf.keras.layers.Dense(2)(inputs))"
    ),
}
ENDS = {"no overflow": ("1.0", "32768.0"), "overflow": ("1e30", "16384.0")}
programs = {
    (row, column): head
    + PART.replace("HIDDEN", hidden).replace("LAST", last).replace("SCALE", scale)
    for row, hidden in HIDDEN.items()
    for column, (last, scale) in ENDS.items()
}
printed = session.prints(programs, [two])
RIGHT = {row: [printed[row, column] == ["True True"] for column in ENDS] for row in HIDDEN}
figures.grid(RIGHT, list(ENDS), "right", "wrong", "Are the weights and the loss scale right?")

# %% [markdown]
# ## Try other setups
#
# With one device, or with Keras 2, the step is left out and the weights stay finite.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, and on two devices with the other version of Keras:

# %% tags=["table"]
session.table([*PLACES, two.but(devices=4), two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program computes in half precision in one layer only, and makes the `LossScaleOptimizer` itself. Change it so that the
# weights stay finite on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM50](fm50_clipped_before_the_sum.ipynb): clipping, which also happens before the replicas are added up.
# - [FM52](fm52_empty_part.ipynb): weights that turn `nan` without mixed precision.
# - [FM40](fm40_merge_call_in_nested_graph.ipynb): `merge_call called while defining a new graph`, as in a step of your own that
#   is left out after an overflow.
