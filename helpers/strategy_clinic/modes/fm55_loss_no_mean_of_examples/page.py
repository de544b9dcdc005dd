# %% [markdown]
# # FM55. Masked, Dice or contrastive loss on several replicas: it differs with the number of devices
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `bias of the second word: 1.0` | a masked loss on two devices or more; 1.6 on one | 2, 3 |
# | no message: `weight after one step: 1.611` | Dice loss in `fit` on two devices, also `compile(loss="dice")`; 1.372 on one | 3 |
# | `AttributeError: 'NoneType' object has no attribute 'all_reduce'` | a loss in `fit` that calls `all_reduce`: see FM31 | 3 |
#
# Some losses are no mean over examples: they divide by a count of unmasked words or a sum of labels, or compare examples. The
# mean of what each replica computes for its part is another number.
#
# *Another result without an error, on Keras 2 and 3, under every strategy that divides a batch, if the parts differ.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm55",
    slug="loss_no_mean_of_examples",
    title="Masked, Dice or contrastive loss on several replicas: it differs with the number of devices",
    sees="a masked, Dice or contrastive loss, and the training with it, is another one with each number of devices",
    fix="combine the sums or the embeddings of all replicas with `all_reduce` or `all_gather` before the division",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'bias of the second word: 1\.0'",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="bias of the second word: 1.6",
    exercise_prints="weight after one step: 1.372",
    unavailable={
        "parameter_server": "its workers take their steps one by one, so no batch is divided"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm55", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Four of eight sentences have four words, and four have one word and three masked places. The loss is the sum of the errors
# of all words, divided by their number.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Add up the number of words over all replicas in the step, with `all_reduce`, and divide by that.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# What to combine:
#
# - A count that does not depend on the weights, as here: only the count.
# - A ratio of sums that depend on the weights, such as Dice: each sum. `all_reduce` passes gradients back to all replicas, and
#   each computes the same loss. In a custom loop, divide it by `strategy.num_replicas_in_sync`.
# - In-batch negatives: the embeddings, with `all_gather(embeddings, axis=0)`, divided in the same way.
#
# In `fit` the loss function makes these calls. Keras 3 also calls it once outside of a replica, where there is no context.
# Return the loss once for each example, which Keras then divides. One number would be too large
# ([FM49](fm49_scalar_loss_in_fit.ipynb)). Each replica needs an example ([FM52](fm52_empty_part.ipynb)).
#
# ```python
# def dice(labels, outputs):
#     labels = tf.cast(labels, outputs.dtype)
#     overlap, total = tf.reduce_sum(labels * outputs), tf.reduce_sum(labels + outputs)
#     replica = tf.distribute.get_replica_context()
#     if replica is not None:
#         overlap, total = replica.all_reduce("SUM", overlap), replica.all_reduce("SUM", total)
#     return tf.fill(tf.shape(labels)[:1], 1 - 2 * overlap / total)
# ```
#
# Keras's own `Dice` and `Tversky` do not combine the sums. `ignore_class`, a mask, as of `Embedding(mask_zero=True)`, and
# `reduction="mean_with_sample_weight"` of Keras 3 divide by what each part has left. Take a sum there, as
# `MeanSquaredError(reduction="sum")`, with weights that add up to one in the whole batch, made before it is distributed:
# `data.map(weighted)`.
#
# ```python
# def weighted(ids, labels):
#     kept = tf.cast(ids != 0, tf.float32)  # for `ignore_class=-1`: labels != -1
#     return ids, labels, kept / tf.reduce_sum(kept)
# ```
#
# Keras 2 does the same with a mask: one may call it the design. Seen on virtual devices;
# `upstream/masked_loss_mean_of_means.md` is not reported yet.
#
# ## Why
#
# A ratio of two sums is not the mean of the ratios. In the run above, the first replica divides by 16 words and the second by 4.
# So a word of a short sentence counts four times as much as one of a long one.
#
# In shuffled data the parts are alike: the gradient of Dice for 64 random examples differed by 8 % on two replicas and 16 %
# on four, and a masked loss of a thousand sequences trained to the same test loss on one, two and four devices.
#
# The tables show four losses of the same batch, and `dice`; the picture follows one step. See [Custom training with
# tf.distribute](https://www.tensorflow.org/tutorials/distribute/custom_training#define_the_loss_function).

# %% tags=["figure"]
# The program above with other losses, all for the part of a replica, on one, two and four devices.
from strategy_clinic import figures

own = session.texts["broken"]
start, end = own.index("        errors = "), own.index("    optimizer.apply_gradients")
LOSSES = {
    "mean over examples": """        errors = tf.reduce_sum(mask * tf.square(bias - 4.0), axis=1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=8)
""",
    "mean over words": own[start:end],
    "Dice": """        outputs = 1.0 + bias * mask
        ratio = 2 * tf.reduce_sum(outputs * mask) / tf.reduce_sum(outputs + mask)
        loss = (1 - ratio) / strategy.num_replicas_in_sync
""",
    "in-batch negatives": """        similar = tf.matmul(mask + bias, mask, transpose_b=True)
        every = tf.range(tf.shape(similar)[0])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(every, similar)
        loss = tf.reduce_mean(losses) / strategy.num_replicas_in_sync
""",
}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
programs = {name: own[:start] + lines + own[end:] for name, lines in LOSSES.items()}
printed = session.prints(programs, PLACES)
VALUES = {name: [text.split(": ")[-1] for text in row] for name, row in printed.items()}
WRONG = {f"{value}" for row in VALUES.values() for value in row} - {
    row[0] for row in VALUES.values()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(VALUES, COLUMNS, WRONG, "What is the bias of the second word after one step?")

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% tags=["figure"]
# The function above in `fit`, and what Keras has, on one, two and four devices.
HEAD = own[: own.index("with strategy.scope()")]
DICE = """

def dice(labels, outputs):
    labels = tf.cast(labels, outputs.dtype)
    overlap, total = tf.reduce_sum(labels * outputs), tf.reduce_sum(labels + outputs)
    replica = tf.distribute.get_replica_context()
    if replica is not None:
        overlap, total = replica.all_reduce("SUM", overlap), replica.all_reduce("SUM", total)
    return tf.fill(tf.shape(labels)[:1], 1 - 2 * overlap / total)
"""
IN_FIT = """

with strategy.scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(tf.keras.optimizers.SGD(1.0), loss=LOSS)
inputs = tf.constant([[1.0]] * 5 + [[0.5]] * 10)
labels = tf.constant([[1.0]] * 5 + [[0.0]] * 9 + [[1.0]])
model.fit(inputs, labels, batch_size=8, shuffle=False, verbose=0)
print(round(float(model.get_weights()[0][0, 0]), 3))
"""
FITS = {
    '"dice" of Keras 3': HEAD + IN_FIT.replace("LOSS", '"dice"'),
    "dice, Keras 3": HEAD + DICE + IN_FIT.replace("LOSS", "dice"),
    "dice, Keras 2": HEAD + DICE + IN_FIT.replace("LOSS", "dice"),
}
printed = {
    name: session.prints({name: text}, [each.but(keras=int(name[-1])) for each in PLACES])[name]
    for name, text in FITS.items()
}
WRONG = {value for row in printed.values() for value in row} - {row[0] for row in printed.values()}
figures.words(printed, COLUMNS, WRONG, "What is the weight after batches of 8 and 7 examples?")

# %% [markdown]
# ## Try other setups
#
# With more devices the result is wrong, too.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
others = [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table([*PLACES, *others])

# %% [markdown]
# ## Exercise
#
# `fit` minimizes a Dice loss. Change `dice` so that it is the loss of the whole batch, and the program prints `1.372` on one,
# two or four devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the loss is a mean over examples, and is divided by the wrong number.
# - [FM44](fm44_fit_reports_another_number.ipynb): the same for a metric, which changes only what is reported.
# - [FM19](fm19_partial_last_batch.ipynb): a mean of means, because the last batch is smaller.
# - [FM38](fm38_replica_state_diverges.ipynb): statistics of each part in batch normalization.
