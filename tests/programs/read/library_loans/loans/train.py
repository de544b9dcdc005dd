"""Which book next?   python -m loans.train --epochs 4"""
import argparse

import keras
import numpy as np
import tensorflow as tf

from .records import BOOKS, Records
from .shelves import Shelves, sampled_loss

OTHERS = 5


def options():
    reader = argparse.ArgumentParser()
    reader.add_argument("--epochs", type=int, default=4)
    reader.add_argument("--batch", type=int, default=64)
    reader.add_argument("--rate", type=float, default=4.0)
    reader.add_argument("--chunks", type=int, default=2, help="a batch is done in this many parts")
    return reader.parse_args()


def main():
    told = options()
    keras.utils.set_random_seed(19)
    records = Records()
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Shelves()
        model((records.known[:1, 0], records.known[:1, 1:]))
        optimizer = keras.optimizers.SGD(told.rate)
        optimizer.build(model.trainable_variables)
        hits = keras.metrics.Mean(name="hits")
        asked = keras.metrics.Sum(name="asked")

    def epoch_of(number):
        def pipeline(context):
            data = tf.data.Dataset.from_tensor_slices(records.epoch(number, OTHERS))
            data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
            return data.batch(context.get_per_replica_batch_size(told.batch), drop_remainder=True)

        return strategy.distribute_datasets_from_function(pipeline)

    def gradients_of(reader, book, drawn):
        with tf.GradientTape() as tape:
            scores = model((reader, tf.concat([book[:, None], drawn], axis=1)), training=True)
            each = sampled_loss(scores[:, 0], scores[:, 1:])
            loss = tf.nn.compute_average_loss(each, global_batch_size=told.batch)
        return loss, [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, model.trainable_variables)]

    def on_part(reader, book, drawn):
        # the chunks keep the table of a large catalogue out of memory
        parts = zip(*(tf.split(each, told.chunks) for each in (reader, book, drawn)))
        loss, total = 0.0, None
        for part in parts:
            share, gradients = gradients_of(*part)
            loss += share
            total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
        optimizer.apply_gradients(zip(total, model.trainable_variables))
        return loss

    @tf.function
    def step(reader, book, drawn):
        return strategy.reduce("SUM", strategy.run(on_part, args=(reader, book, drawn)), axis=None)

    def judge(reader, book):
        scores = model((reader, tf.tile(tf.range(BOOKS)[None], [tf.shape(reader)[0], 1])), training=False)
        mine = tf.gather(scores, book, batch_dims=1)
        rank = tf.reduce_sum(tf.cast(scores > mine[:, None], tf.float32), axis=1)
        hits.update_state(tf.cast(rank < 20, tf.float32))
        asked.update_state(tf.ones_like(rank))

    @tf.function
    def judge_all(later):
        for loan in later:
            strategy.run(judge, args=loan)

    for number in range(told.epochs):
        losses = [float(step(*loans)) for loans in epoch_of(number)]
        print(f"epoch {number + 1}: {len(losses)} steps, loss {np.mean(losses):.4f}", flush=True)
    later = tf.data.Dataset.from_tensor_slices((records.later[:, 0], records.later[:, 1])).batch(told.batch)
    judge_all(strategy.experimental_distribute_dataset(later))
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in model.trainable_variables)
    print(f"loss {np.mean(losses):.4f} among the first twenty {float(hits.result()):.4f}"
          f" of {float(asked.result()):.1f} loans, weights {size:.4f}")


if __name__ == "__main__":
    main()
