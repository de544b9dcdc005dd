"""Review tagger: an LSTM with gradients accumulated over several micro batches.

A save may fall between two updates; the gradients gathered so far are part of the state.
"""
import argparse
import functools
import os

import keras
import numpy as np
import tensorflow as tf

WORDS, TAGS, LENGTH = 50, 4, 12
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints")


def reviews(count, seed):
    """Word ids padded with 0 and one tag for each word."""
    rng = np.random.default_rng(seed)
    kind = np.random.default_rng(0).integers(0, TAGS, WORDS)
    words = rng.integers(1, WORDS, (count, LENGTH)).astype("int32")
    length = np.sort(rng.integers(2, LENGTH + 1, count))
    words[np.arange(LENGTH) >= length[:, None]] = 0
    before = np.concatenate([np.zeros((count, 1), int), kind[words[:, :-1]]], axis=1)
    tags = ((kind[words] + (before == 1)) % TAGS).astype("int32")
    return words, tags


class Tagger(keras.Model):
    def __init__(self, width):
        super().__init__()
        self.embed = keras.layers.Embedding(WORDS, width, mask_zero=True)
        self.lstm = keras.layers.LSTM(width, return_sequences=True)
        self.tag = keras.layers.Dense(TAGS)
        self.topic = keras.layers.Dense(3, name="topic")   # for the second task, not trained here

    def call(self, words):
        hidden = self.lstm(self.embed(words))
        return self.tag(hidden), self.topic(hidden[:, -1])


def word_loss(tags, logits, mask):
    """Sum of the losses of the real words."""
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits)
    return tf.reduce_sum(each * mask)


class Accumulator(tf.Module):
    """Adds up gradients; `flush` hands the mean of the last micro batches to the optimizer."""

    def __init__(self, optimizer, variables, every):
        super().__init__()
        self.optimizer, self.variables_, self.every = optimizer, variables, every
        make = functools.partial(tf.Variable, trainable=False, aggregation=tf.VariableAggregation.SUM)
        self.sums = [make(tf.zeros(v.shape)) for v in variables]

    def add(self, grads):
        for total, grad in zip(self.sums, grads):
            if grad is not None:
                total.assign_add(tf.convert_to_tensor(grad))

    def flush(self):
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        self.optimizer.apply_gradients(
            [(total.read_value() / (self.every * replicas), v) for total, v in zip(self.sums, self.variables_)])
        for total in self.sums:
            total.assign(tf.zeros_like(total) / replicas)


def on_replicas(strategy):
    """Decorator: runs the function on each replica, returns the sum of what it returns."""
    def wrap(function):
        @tf.function
        def distributed(*args):
            result = strategy.run(function, args=args)
            return None if result is None else strategy.reduce("SUM", result, axis=None)
        return distributed
    return wrap


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-batches", type=int, default=44)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--every", type=int, default=4, help="micro batches in one update")
    parser.add_argument("--save-every", type=int, default=6)
    parser.add_argument("--rate", type=float, default=5.0)
    parser.add_argument("--width", type=int, default=12)
    args = parser.parse_args()

    keras.utils.set_random_seed(3)
    strategy = tf.distribute.MirroredStrategy()
    words, tags = reviews(256, seed=1)
    with strategy.scope():
        model = Tagger(args.width)
        model(tf.ones([1, LENGTH], tf.int32))
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.8)
        optimizer.build(model.trainable_variables)
        accumulator = Accumulator(optimizer, model.trainable_variables, args.every)
    taken = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, accumulator=accumulator, taken=taken)
    manager = tf.train.CheckpointManager(checkpoint, FOLDER, max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)

    def micro_batch(number):
        """The examples of a micro batch follow from its number alone."""
        epoch, place = divmod(number, len(words) // args.batch)
        order = np.random.default_rng([7, epoch]).permutation(len(words))
        rows = np.sort(order[place * args.batch:(place + 1) * args.batch])    # short reviews first, as in the archive
        share = args.batch // strategy.num_replicas_in_sync

        def pick(context):
            mine = rows[context.replica_id_in_sync_group * share:][:share]
            return words[mine], tags[mine]

        pair = [strategy.experimental_distribute_values_from_function(lambda c, i=i: tf.constant(pick(c)[i]))
                for i in range(2)]
        return pair

    @on_replicas(strategy)
    def gather(words, tags):
        mask = tf.cast(words > 0, tf.float32)
        total = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(mask))
        with tf.GradientTape() as tape:
            logits, _ = model(words)
            loss = word_loss(tags, logits, mask) / total
        accumulator.add(tape.gradient(loss, accumulator.variables_))
        return loss

    @on_replicas(strategy)
    def update():
        accumulator.flush()

    recent = []
    while int(taken) < args.micro_batches:
        recent.append(float(gather(*micro_batch(int(taken)))))
        taken.assign_add(1)
        if int(taken) % args.every == 0:
            update()
        if int(taken) % args.save_every == 0:
            manager.save()
            print(f"micro batch {int(taken)}: loss {np.mean(recent):.5f}", flush=True)
            recent = []

    test_words, test_tags = reviews(96, seed=2)
    mask = tf.cast(test_words > 0, tf.float32)
    logits, _ = model(test_words)
    loss = float(word_loss(test_tags, logits, mask) / tf.reduce_sum(mask))
    right = tf.cast(tf.argmax(logits, -1, tf.int32) == test_tags, tf.float32)
    size = sum(float(tf.reduce_sum(tf.abs(v))) for v in model.trainable_variables)
    print(f"final: loss {loss:.5f} accuracy {float(tf.reduce_sum(right * mask) / tf.reduce_sum(mask)):.5f} weights {size:.5f}")


if __name__ == "__main__":
    main()
