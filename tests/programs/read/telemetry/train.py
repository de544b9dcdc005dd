"""Wear of a part, second by second, from drives of different lengths.

Shards are interleaved, drives of similar lengths share a batch, and what pads a drive counts nowhere: neither in the
loss, which is a mean over the seconds of the whole batch, nor in the scores.
"""
import argparse

import keras
import tensorflow as tf
from make_records import SIGNALS, write


def parse(record):
    found = tf.io.parse_single_example(record, {
        "signals": tf.io.VarLenFeature(tf.float32), "wear": tf.io.VarLenFeature(tf.float32)})
    return (tf.reshape(tf.sparse.to_dense(found["signals"]), (-1, SIGNALS)), tf.sparse.to_dense(found["wear"]))


def pipeline(paths, batch_size, training):
    records = tf.data.Dataset.from_tensor_slices(paths).interleave(
        tf.data.TFRecordDataset, cycle_length=len(paths), block_length=2, deterministic=True)
    data = records.map(parse).map(lambda x, y: (x, y, tf.ones_like(y)))
    if not training:
        return data.padded_batch(batch_size)
    return data.bucket_by_sequence_length(
        lambda x, y, mask: tf.shape(y)[0], bucket_boundaries=[12, 20], bucket_batch_sizes=[batch_size] * 3,
        drop_remainder=True, pad_to_bucket_boundary=False).cache()


def wear_model(units):
    signals = keras.Input((None, SIGNALS))
    x = keras.layers.Conv1D(units, 3, padding="causal", activation="tanh")(signals)
    x = keras.layers.Conv1D(units, 3, padding="causal", activation="relu")(x)
    return keras.Model(signals, keras.layers.Dense(1)(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.02)
    args = parser.parse_args()
    keras.utils.set_random_seed(31)
    train_paths = write("records", "train", drives=216, shards=4, seed=1)
    test_paths = write("records", "test", drives=74, shards=2, seed=2)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = wear_model(args.units)
        optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(args.rate, 84))
        optimizer.build(model.trainable_variables)
    train = strategy.experimental_distribute_dataset(pipeline(train_paths, args.batch, True))
    test = strategy.experimental_distribute_dataset(pipeline(test_paths, args.batch, False))

    def replica_step(x, y, mask):
        seconds = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(mask))
        with tf.GradientTape() as tape:
            error = tf.squeeze(model(x, training=True), -1) - y
            loss = tf.reduce_sum(mask * tf.square(error)) / seconds
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function(reduce_retracing=True)
    def train_step(x, y, mask):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(x, y, mask)), axis=None)

    @tf.function(reduce_retracing=True)
    def test_step(x, y, mask):
        def replica(x, y, mask):
            error = tf.squeeze(model(x, training=False), -1) - y
            return tf.reduce_sum(mask * tf.abs(error)), tf.reduce_sum(mask)

        total, seconds = strategy.run(replica, args=(x, y, mask))
        return strategy.reduce("SUM", total, axis=None), strategy.reduce("SUM", seconds, axis=None)

    def mean_error():
        total = seconds = 0.0
        for batch in test:
            part, count = test_step(*batch)
            total, seconds = total + float(part), seconds + float(count)
        return total / seconds

    for epoch in range(1, args.epochs + 1):
        losses = [float(train_step(*batch)) for batch in train]
        print(f"epoch {epoch}: {len(losses)} steps, loss {sum(losses) / len(losses):.4f}")
    size = sum(float(tf.reduce_sum(tf.abs(weight.value))) for weight in model.trainable_variables)
    print(f"loss {sum(losses) / len(losses):.5f} mean error {mean_error():.5f} weights {size:.4f}")


if __name__ == "__main__":
    main()
