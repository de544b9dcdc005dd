# %% [markdown]
# # FM50. `clipnorm`, `global_clipnorm`, `clipvalue` on several devices: the update exceeds the limit
#
# ```text
# norm of the first update: 0.1       on one device, and on Keras 2
# norm of the first update: 0.137     on two devices
# norm of the first update: 0.274     on four
# ```
#
# An optimizer of Keras 3 clips the gradients of each replica and then adds them. The sum is larger than the limit and has another
# direction.
#
# *Wrong result without an error, on Keras 3 only, under every strategy with more than one replica.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm50",
    slug="clipped_before_the_sum",
    title="`clipnorm`, `global_clipnorm`, `clipvalue` on several devices: the update exceeds the limit",
    sees="training with gradient clipping differs from that on one device, or diverges",
    fix="in the optimizer's `apply`, add the gradients with `all_reduce`, clip the sum, divide it by the number of replicas",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'norm of the first update: 0\.(137|274|549)'",
            strategies=("mirrored", "central_storage", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
            keras=(3,),
        ),
    ),
    claims=(),
    prints="norm of the first update: 0.1",
    exercise_prints="largest change of a weight: 0.1",
    unavailable={
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

session = clinic.open("fm50", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of `fit` with a learning rate of 1 and `global_clipnorm=0.1`. The update is the clipped gradient, so its norm is 0.1 at
# most. The first half of the batch has other gradients than the second.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Derive a class from your optimizer. Its `apply` adds the gradients of all replicas, clips the sum, and passes a share on. Keras
# adds these shares, and the result is the clipped sum. The limit stays in the optimizer: each share is below it, so it changes
# nothing, and Keras 2, which never calls `apply`, still needs it.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For `clipvalue` use `tf.clip_by_value(each, -limit, limit)` for each gradient, and for `clipnorm` use
# `tf.clip_by_norm(each, limit)`. The class works in `fit` and in a custom loop. It adds the gradients twice, which takes time if
# the model is large.
#
# ## Why
#
# Clipping limits the gradient of the whole batch, which is the sum over the replicas. It is not linear: the sum of clipped
# gradients is not the clipped sum. With n replicas the sum can be up to n times the limit, as on four devices above. It also
# gives each replica the same weight if all are clipped, however large their gradients are, so the direction changes.
#
# `apply` in `keras/src/optimizers/base_optimizer.py` calls `_clip_gradients` first. The gradients are added later, in
# `keras/src/backend/tensorflow/optimizer.py`. Keras 2 does it in the other order. A step that calls `tf.clip_by_global_norm`
# before `apply_gradients` clips too early on both versions.
#
# With Adam the size of a gradient does not matter as long as all steps are clipped, but its direction does. A limit that is
# rarely reached has little effect, since the gradient of each replica is divided by n before it is compared with the limit. For
# this reason a limit that is reached on one device may not be reached on eight.
#
# This is a bug of Keras, in `keras/src/optimizers/base_optimizer.py`, in all versions from 3.3 to 3.15 and in its development
# branch. `upstream/clipping_before_all_reduce.md` is the report.
#
# The table shows the norm of the first update for the three arguments.

# %% tags=["figure"]
# The program above with other limits, on one, two and four devices.
from strategy_clinic import figures

LINE = (
    "optimizer = tf.keras.optimizers.SGD(1.0, global_clipnorm=0.1)  # wrong: clips in each replica"
)
WAYS = {
    limit: f"optimizer = tf.keras.optimizers.SGD(1.0, {limit}=0.1)"
    for limit in ("global_clipnorm", "clipnorm", "clipvalue")
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
printed = session.prints(session.variants("broken", LINE, WAYS), PLACES)
NORMS = {way: [float(words.split()[-1]) for words in row] for way, row in printed.items()}
RIGHT = {way: row[0] for way, row in NORMS.items()}
SIZES = {way: [norm / RIGHT[way] for norm in row] for way, row in NORMS.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(SIZES, COLUMNS, [1.0] * len(PLACES), "How large is the first update?")

# %% [markdown]
# ## Try other setups
#
# With one device, or with Keras 2, the failure is gone. With more devices the update grows.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, and on two devices with the other version of Keras:

# %% tags=["table"]
session.table([*PLACES, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program limits each gradient to the range from -0.1 to 0.1 with `clipvalue`. Change it so that no weight changes by more
# than 0.1 on any number of devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): updates that grow with the number of devices without any clipping.
# - [FM49](fm49_scalar_loss_in_fit.ipynb): the same in `fit`, through the loss function.
# - [FM15](fm15_accumulation_under_strategy.ipynb): gradients that are accumulated over several batches.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): which functions add up replicas inside `strategy.run`.
