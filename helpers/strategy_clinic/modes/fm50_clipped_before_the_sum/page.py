# %% [markdown]
# # FM50. `clipnorm`, `global_clipnorm`, `clipvalue` on several devices: the update exceeds the limit
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `norm of the first update: 0.137` | two devices; 0.1 on one and on Keras 2, 0.274 on four | 3 |
#
# An optimizer of Keras 3 clips the gradients of each replica and then adds them. Where they are alike, the limit is n times as
# large on n replicas; where they differ, the sum also has another direction.
#
# *Wrong result without an error, on Keras 3 only, under `MirroredStrategy`, central storage, and an emulated TPU.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm50",
    slug="clipped_before_the_sum",
    title="`clipnorm`, `global_clipnorm`, `clipvalue` on several devices: the update exceeds the limit",
    sees="training with gradient clipping differs from that on one device, or diverges",
    fix="divide the limit by the number of replicas; for the update of one device, derive a class from the optimizer whose `apply` adds up the gradients of all replicas and clips the sum",
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
# One step of `fit` with a learning rate of 1. The update is the clipped gradient, so its norm should be 0.1 at most. The
# halves of the batch differ.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# In short, divide the limit, on Keras 3 only: `SGD(1.0, global_clipnorm=0.1 / strategy.num_replicas_in_sync)`. The sum is
# smaller than 0.1 where the replicas' gradients differ: 0.069 here.
#
# For the update of one device, derive a class from your optimizer. Its `apply` adds the gradients of all replicas, clips the
# sum, and passes a share on, which Keras adds up. Keras 2 never calls `apply`, and needs the limit in the optimizer.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For `clipvalue` use `tf.clip_by_value(each, -self.clipvalue, self.clipvalue)` for each gradient, and for `clipnorm` use
# `tf.clip_by_norm(each, self.clipnorm)`. The class adds the gradients twice, and makes the sparse gradient of an `Embedding`
# dense, which takes time and memory. Without the class, an id that occurs twice in a batch exceeds the limit, on one device, too.
#
# ## Why
#
# Clipping is meant for the gradient of the whole batch, which is the sum over the replicas. The sum of clipped gradients is
# not the clipped sum. A classifier of a thousand rows with a limit of 0.1 had updates up to 1.7 times as long as the limit on
# two replicas and 2.6 times on four, and a test loss that was 7.5 and 16 % lower. With a limit of 1.0 only the updates were
# too long.
#
# `apply` in `keras/src/optimizers/base_optimizer.py` calls `_clip_gradients` first. The gradients are added later, in
# `keras/src/backend/tensorflow/optimizer.py`. Keras 2 does it in the other order.
#
# The documentation of `global_clipnorm` says that "the gradient of all weights is clipped so that their global norm is no higher
# than this value". One may answer that the learning rate can be adapted; but in
# [tensorflow#33929](https://github.com/tensorflow/tensorflow/issues/33929) a maintainer called it "usually wrong". This is a bug
# of Keras, in all versions from 3.3 to 3.15 and in its development branch. It was seen on virtual devices of a CPU, and is not
# reported yet; `upstream/clipping_before_all_reduce.md` is ready.
#
# The tables show the norm of the first update, for equal gradients in units of one device, and with the class in other
# programs. The picture follows one step.

# %% tags=["figure"]
# The program above with other limits, and examples that are alike on all replicas, on one, two and four devices.
from strategy_clinic import figures

LINE = (
    "optimizer = tf.keras.optimizers.SGD(1.0, global_clipnorm=0.1)  # wrong: clips in each replica"
)
WAYS = {
    limit: f"optimizer = tf.keras.optimizers.SGD(1.0, {limit}=0.1)"
    for limit in ("global_clipnorm", "clipnorm", "clipvalue")
}
DIVIDED = "global_clipnorm=0.1 / strategy.num_replicas_in_sync"
WAYS["global_clipnorm / n"] = f"optimizer = tf.keras.optimizers.SGD(1.0, {DIVIDED})"
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
ALIKE = {
    "[[4.0, 0.0]] * 8 + [[0.0, 4.0]] * 8": "[[4.0, 0.0], [0.0, 4.0]] * 8",
    "[[1.0]] * 8 + [[-1.0]] * 8": "[[1.0], [-1.0]] * 8",
}


def alike(text):
    for old, new in ALIKE.items():
        text = text.replace(old, new)
    return text


texts = session.variants("broken", LINE, WAYS) | {"ClipsTheSum": session.texts["fixed"]}
printed = session.prints({way: alike(text) for way, text in texts.items()}, PLACES)
NORMS = {way: [float(words.split()[-1]) for words in row] for way, row in printed.items()}
RIGHT = {way: row[0] for way, row in NORMS.items()}
SIZES = {way: [round(norm / RIGHT[way], 1) for norm in row] for way, row in NORMS.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.numbers(SIZES, COLUMNS, [1.0] * len(PLACES), "How large is the first update?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% tags=["figure"]
# The fixed program with other models, in a loop of its own, and with the optimizer that `load_model` returns.
fixed = session.texts["fixed"]
OWN = "layers = [tf.keras.Input((2,)), "
EMBEDDING = "tf.keras.layers.Embedding(5, 2), tf.keras.layers.Flatten(), "
UNUSED = """    start = tf.keras.Input((2,))
    unused = tf.keras.layers.Lambda(tf.stop_gradient)(tf.keras.layers.Dense(1)(start))
    outputs = tf.keras.layers.Add()([tf.keras.layers.Dense(1)(start), unused])
    model = tf.keras.Model(start, outputs)
"""
FIT = "model.fit(inputs, labels, batch_size=16, shuffle=False, verbose=0)\n"
LOOP = """

def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y)) / strategy.num_replicas_in_sync
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


optimizer.build(model.trainable_variables)
data = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(16)
for batch in strategy.experimental_distribute_dataset(data):
    tf.function(strategy.run)(step, args=batch)
"""
LOADED = """model.save("saved.keras")
with strategy.scope():
    model = tf.keras.models.load_model("saved.keras")
"""
CASES = {
    "Dense": fixed,
    "Embedding": fixed.replace(OWN, OWN + EMBEDDING).replace('"zeros"', '"ones"'),
    "a layer without a gradient": fixed.replace(
        "    model = tf.keras.Sequential(layers)\n", UNUSED
    ),
    "custom loop": fixed.replace(FIT, LOOP),
    "loaded again": fixed.replace(FIT, LOADED + FIT),
}
MEASURED = "tf.linalg.global_norm(model.get_weights())"
CHANGE = "tf.linalg.global_norm([a - b for a, b in zip(model.get_weights(), before)])"
BEFORE = "inputs = tf.constant([[4.0, 0.0]]"
CASES = {
    case: text.replace(MEASURED, CHANGE)
    .replace(BEFORE, f"before = model.get_weights()\n{BEFORE}")
    .replace("[[-1.0]]", "[[3.0]]")
    for case, text in CASES.items()
}
printed = session.prints(CASES, PLACES)
RIGHT = "norm of the first update: 0.1"
WORKS = {case: [words == RIGHT for words in row] for case, row in printed.items()}
figures.grid(WORKS, COLUMNS, "0.1", "another", "Norm of the first update with the class")

# %% [markdown]
# ## Try other setups
#
# With one device, or with Keras 2, the norm is right.

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
# than 0.1 on one, two, four or eight devices.

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
