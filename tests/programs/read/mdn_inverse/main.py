"""Mixture density network for an inverse problem.

x = y + 0.35 sin(2 pi y) + noise has up to three y for one x; the network predicts a mixture of Gaussians over y.
Trains until the validation likelihood stops rising (patience by hand), reports with the best weights.
"""
import math
import pathlib

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags, logging

FLAGS = flags.FLAGS
flags.DEFINE_integer("components", 4, "Gaussians in the mixture.")
flags.DEFINE_integer("examples", 768, "Training examples.")
flags.DEFINE_integer("batch", 96, "Global batch size.")
flags.DEFINE_integer("epochs", 9, "At most so many epochs.")
flags.DEFINE_integer("patience", 3, "Epochs without a better validation likelihood.")
flags.DEFINE_float("lr", 0.4, "Learning rate.")
flags.DEFINE_float("clip", 1.5, "Largest norm of the whole gradient.")
flags.DEFINE_float("jitter", 0.08, "Noise on the inputs when training starts.")
flags.DEFINE_integer("seed", 31, "Seed of data and weights.")
flags.DEFINE_string("out", str(pathlib.Path(__file__).resolve().parent / "out"), "Folder of the checkpoints.")


def sample(count, seed):
    rng = np.random.default_rng(seed)
    y = rng.uniform(0, 1, (count, 1))
    x = y + 0.35 * np.sin(2 * np.pi * y) + rng.normal(scale=0.05, size=(count, 1))
    return x.astype("float32"), y.astype("float32")


def batches(x, y, size, epoch, seed):
    """Shuffled by epoch; a third column carries the unit noise of each example."""
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(len(x))
    noise = rng.normal(size=x.shape).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x[order], y[order], noise)).batch(size, drop_remainder=True)


def network(components):
    inputs = keras.Input([1])
    hidden = keras.layers.Dense(24, activation="tanh", kernel_initializer=keras.initializers.RandomNormal(stddev=1.5))(inputs)
    hidden = keras.layers.Dense(24, activation="tanh")(hidden)
    heads = [keras.layers.Dense(components, name="logits")(hidden),
             keras.layers.Dense(components, name="means", bias_initializer=keras.initializers.RandomUniform(0, 1))(hidden),
             keras.layers.Dense(components, name="log_scales", bias_initializer=keras.initializers.Constant(-1.0))(hidden)]
    return keras.Model(inputs, heads)


def negative_log_likelihood(y, logits, means, log_scales):
    log_scales = tf.maximum(log_scales, -4.0)
    standardized = (y - means) * tf.exp(-log_scales)
    parts = -0.5 * standardized ** 2 - log_scales - 0.5 * math.log(2 * math.pi)
    return -tf.reduce_logsumexp(tf.nn.log_softmax(logits) + parts, axis=-1)


class Memory(tf.Module):
    """What the loop remembers from one epoch to the next."""

    def __init__(self, model):
        super().__init__()
        self.epoch = tf.Variable(0, trainable=False, dtype=tf.int32)
        self.best = tf.Variable(math.inf, trainable=False)
        self.bad = tf.Variable(0, trainable=False, dtype=tf.int32)
        self.best_weights = [tf.Variable(w, trainable=False) for w in model.get_weights()]

    def consider(self, value, model):
        if value < float(self.best):
            self.best.assign(value)
            self.bad.assign(0)
            for kept, weight in zip(self.best_weights, model.get_weights()):
                kept.assign(weight)
        else:
            self.bad.assign_add(1)

    def exhausted(self):
        return int(self.bad) >= FLAGS.patience


def main(argv):
    del argv
    keras.utils.set_random_seed(FLAGS.seed)
    x, y = sample(FLAGS.examples, FLAGS.seed)
    check_x, check_y = sample(120, FLAGS.seed + 1)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = network(FLAGS.components)
        optimizer = keras.optimizers.SGD(FLAGS.lr, momentum=0.9)
        optimizer.build(model.trainable_variables)
        steps = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    memory = Memory(model)

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, steps=steps, memory=memory)
    manager = tf.train.CheckpointManager(checkpoint, FLAGS.out, max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
        logging.info("resumed after epoch %d", int(memory.epoch))

    def replica_step(x, y, noise):
        weights = model.trainable_variables
        width = FLAGS.jitter / (1.0 + 0.1 * steps)
        with tf.GradientTape() as tape:
            nll = negative_log_likelihood(y, *model(x + width * noise))
            loss = tf.reduce_sum(nll) / FLAGS.batch
        context = tf.distribute.get_replica_context()
        grads = context.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
        grads, _ = tf.clip_by_global_norm(grads, FLAGS.clip)
        share = 1.0 / strategy.num_replicas_in_sync     # apply_gradients adds up over the replicas
        optimizer.apply_gradients([(g * share, w) for g, w in zip(grads, weights)])
        steps.assign_add(1.0)
        return loss

    @tf.function
    def train_step(batch):
        losses = strategy.run(replica_step, args=batch)
        return strategy.reduce("SUM", losses, axis=None)

    def validate():
        return float(tf.reduce_mean(negative_log_likelihood(check_y, *model(check_x))))

    while int(memory.epoch) < FLAGS.epochs and not memory.exhausted():
        epoch = int(memory.epoch)
        data = strategy.experimental_distribute_dataset(batches(x, y, FLAGS.batch, epoch, FLAGS.seed))
        losses = [float(train_step(batch)) for batch in data]
        value = validate()
        memory.consider(value, model)
        memory.epoch.assign_add(1)
        print(f"epoch {epoch + 1}: nll {np.mean(losses):.5f} validation {value:.5f} best {float(memory.best):.5f}")
        manager.save()

    model.set_weights([w.numpy() for w in memory.best_weights])
    size = sum(np.abs(w).sum() for w in model.get_weights())
    print(f"final: epochs {int(memory.epoch)} validation {validate():.5f} weights {size:.5f}")


if __name__ == "__main__":
    app.run(main)
