"""A classifier of signals: a schedule of warm-up and decay, clipped gradients, averaged weights, and checkpoints."""
import math

import numpy as np
import tensorflow as tf

GLOBAL_BATCH, STEPS, EVERY, LIMIT = 32, 48, 12, 1.0


class WarmUpCosine(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warm_up, steps):
        self.peak, self.warm_up, self.steps = peak, warm_up, steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rising = step / self.warm_up
        share = tf.clip_by_value((step - self.warm_up) / (self.steps - self.warm_up), 0.0, 1.0)
        return self.peak * tf.where(step < self.warm_up, rising, 0.5 * (1 + tf.cos(math.pi * share)))

    def get_config(self):
        return {"peak": self.peak, "warm_up": self.warm_up, "steps": self.steps}


class Average(tf.Module):
    """Keeps exponential means of variables."""

    def __init__(self, variables, decay=0.9):
        super().__init__()
        self.decay = decay
        self.of = [variable.value for variable in variables]
        self.means = [tf.Variable(variable, trainable=False) for variable in variables]

    def update(self):
        for mean, variable in zip(self.means, self.of):
            mean.assign(self.decay * mean + (1.0 - self.decay) * variable)

    def put_into(self, variables):
        for mean, variable in zip(self.means, variables):
            variable.assign(mean.numpy())


def signals(count, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, count)
    time = np.arange(40) / 40
    wave = np.sin(2 * np.pi * (label[:, None] + 2) * time + rng.uniform(0, 6, (count, 1)))
    return (3.0 * wave + rng.normal(0, 1.0, wave.shape)).astype("float32")[..., None], label


def batch_number(number, arrays):
    rng = np.random.default_rng(1000 + number)
    chosen = rng.choice(len(arrays[0]), GLOBAL_BATCH, replace=False)
    return arrays[0][chosen], arrays[1][chosen]


def batches(arrays, first):
    def generate():
        for number in range(first, STEPS):
            yield batch_number(number, arrays)

    signature = (tf.TensorSpec((GLOBAL_BATCH, 40, 1)), tf.TensorSpec((GLOBAL_BATCH,), tf.int64))
    return tf.data.Dataset.from_generator(generate, output_signature=signature)


def make_model():
    return tf.keras.Sequential(
        [
            tf.keras.Input((40, 1)),
            tf.keras.layers.Conv1D(12, 5, strides=2, activation="relu"),
            tf.keras.layers.Conv1D(16, 5, strides=2, activation="relu"),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(4),
        ]
    )


tf.keras.utils.set_random_seed(2)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = make_model()
    optimizer = tf.keras.optimizers.AdamW(WarmUpCosine(0.02, 8, STEPS), weight_decay=1e-3)
    optimizer.build(model.trainable_variables)
    average = Average(model.trainable_variables)
    hard = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.SUM)

checkpoint = tf.train.Checkpoint(
    model=model, optimizer=optimizer, average=average, hard=hard, step=tf.Variable(0)
)
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=3)


def train_step(signal, label):
    with tf.GradientTape() as tape:
        logits = model(signal, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH)
    gradients = tape.gradient(loss, model.trainable_variables)
    context = tf.distribute.get_replica_context()
    gradients = context.all_reduce("SUM", gradients)
    gradients, _ = tf.clip_by_global_norm(gradients, LIMIT)
    # The optimizer adds up the gradients of the replicas, and these are whole ones.
    gradients = [each / context.num_replicas_in_sync for each in gradients]
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    hard.assign_add(tf.reduce_sum(tf.cast(losses > 1.0, tf.float32)))
    return loss


@tf.function
def train_on(batch):
    loss = strategy.reduce("SUM", strategy.run(train_step, args=batch), axis=None)
    average.update()
    return loss


def main(arrays, test):
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).expect_partial()
    data = strategy.experimental_distribute_dataset(batches(arrays, int(checkpoint.step)))
    for batch in data:
        loss = train_on(batch)
        checkpoint.step.assign_add(1)
        if int(checkpoint.step) % EVERY == 0:
            manager.save()
            print(f"step {int(checkpoint.step)}: loss {float(loss):.4f}")
    own = mean_loss(*test)
    average.put_into(model.trainable_variables)
    averaged = mean_loss(*test)
    print(f"loss {own:.4f}, averaged {averaged:.4f}, hard examples {float(hard.numpy()):.1f}")


def mean_loss(signal, label):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, model(signal, training=False))
    return float(tf.reduce_mean(losses))


main(signals(200, 0), signals(120, 1))
