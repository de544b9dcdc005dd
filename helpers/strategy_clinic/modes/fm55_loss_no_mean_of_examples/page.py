# %% [markdown]
# # FM55. Masked, Dice or contrastive loss on several replicas: another value for each split of the batch
#
# ```text
# bias after one step: [2.  1.6 1.6 1.6]     on one device
# bias after one step: [2. 1. 1. 1.]     on two, four or eight
# ```
#
# Some losses are no mean over examples: they divide by a count of unmasked words, by a sum of labels, or compare each example
# with the rest of the batch. Each replica computes such a loss for its part, and the mean over the replicas is another number
# than the loss of the whole batch.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica, if the parts differ.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm55",
    slug="loss_no_mean_of_examples",
    title="Masked, Dice or contrastive loss on several replicas: another value for each split of the batch",
    sees="a masked, Dice or contrastive loss, and the training with it, is another one with each number of devices",
    fix="combine the sums or the embeddings of all replicas with `all_reduce` or `all_gather` before the division",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'bias after one step: \[2\. 1\. 1\. 1\.\]'",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(),
    prints="bias after one step: [2.  1.6 1.6 1.6]",
    exercise_prints="scale after one step: 1.372",
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
# A batch of eight sentences. Four have four words, and four have one word and three masked places. The program learns the number
# of words. Its loss is the sum of the errors of all words, divided by the number of words.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Add up the number of words over all replicas in the step, with `all_reduce`, and divide by that. `apply_gradients` adds up the
# gradients, and the sum is the gradient of the loss of the whole batch.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# What to combine depends on the loss:
#
# - A count that does not depend on the weights, such as the words here: combine the count only.
# - A ratio of sums that depend on the weights, such as Dice or Tversky: combine each sum. `all_reduce` passes gradients back to
#   all replicas, and each computes the same loss. Divide it by `strategy.num_replicas_in_sync`.
# - In-batch negatives, such as a contrastive loss: combine the embeddings with `all_gather(embeddings, axis=0)`, and divide
#   the same way.
#
# In `fit`, the loss function cannot see the other replicas unless it makes these calls itself. Keras computes a mean over the
# unmasked values of each part for a model with `mask_zero=True`, so `fit` has this failure without a line of yours:
# `upstream/masked_loss_mean_of_means.md` is the report.
#
# ## Why
#
# The mean of a batch of examples is the mean of the means of its halves. A ratio of two sums is not the mean of the ratios. In
# the run above, the first replica divides by 16 words and the second by 4. All replicas count the same in the sum of the
# gradients, so a word of a short sentence counts four times as much as a word of a long one.
#
# With in-batch negatives, each example is compared with fewer others the more replicas there are. The task becomes easier and the
# loss smaller.
#
# Neither result is an error of a strategy. If you want the loss of each part, as in batch normalization, nothing is wrong. The
# training then differs with the number of devices.
#
# The table shows one step with four losses of the same batch on one, two and four devices. See
# [Custom training with tf.distribute](https://www.tensorflow.org/tutorials/distribute/custom_training#define_the_loss_function).

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
VALUES = {name: [text.split(": ")[1] for text in row] for name, row in printed.items()}
WRONG = {f"{value}" for row in VALUES.values() for value in row} - {
    row[0] for row in VALUES.values()
}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
figures.words(VALUES, COLUMNS, WRONG, "What is the bias after one step?")

# %% [markdown]
# ## Try other setups
#
# With one device one replica has all words. With more, the result is wrong because each replica has sentences of one length.

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
# This step computes a Dice loss: one minus twice the overlap by the total. Change it so that the loss is that of the whole batch.
# On any number of devices it should print `scale after one step: 1.372`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## What documents say
#
# The [reference of `TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy) computes one loss for
# each example in its training loop, which can be split. It does not mention losses that cannot.
#
# ## Read next
#
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the loss is a mean over examples, and is divided by the wrong number.
# - [FM44](fm44_fit_reports_another_number.ipynb): the same for a metric, which changes only what is reported.
# - [FM19](fm19_partial_last_batch.ipynb): a mean of means, because the last batch is smaller.
# - [FM38](fm38_replica_state_diverges.ipynb): statistics of each part in batch normalization.
