import argparse

import keras
import numpy as np
import tensorflow as tf

from experts import Mixture

parser = argparse.ArgumentParser(description="piecewise functions with a mixture of experts")
parser.add_argument("--steps", type=int, default=48)
parser.add_argument("--save-every", type=int, default=8)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--warmup", type=int, default=10)
parser.add_argument("--balance", type=float, default=0.02)
parser.add_argument("--dir", default="experts_ckpt")


def target(x):
    return tf.stack([tf.where(x[:, 0] > 0, x[:, 1] * x[:, 2], tf.sin(2 * x[:, 1])), tf.abs(x[:, 2] - x[:, 0])], 1)


def batch_of_step(step, batch):
    x = tf.random.stateless_uniform((batch, 3), tf.stack([17, tf.cast(step, tf.int32)]), -2.0, 2.0)
    return x, target(x)


def main(args):
    keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Mixture(outputs=2)
        model(tf.zeros((1, 3)))
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(checkpoint, args.dir, max_to_keep=3, step_counter=step)
    if manager.restore_or_initialize():
        print("from step", int(step.numpy()))

    def learn(x, y):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            outputs, chosen = model(x)
            errors = tf.reduce_sum(tf.square(outputs - y), -1)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=args.batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        share = tf.minimum(1.0, tf.cast(step + 1, tf.float32) / args.warmup)
        optimizer.apply_gradients([(share * g, v) for g, v in zip(gradients, model.trainable_variables)])
        load = context.all_reduce("SUM", tf.reduce_sum(chosen, 0)) / args.batch
        for i, expert in enumerate(model.experts):
            expert.offset.assign_add(args.balance * tf.sign(1 / len(model.experts) - load[i]))
        step.assign_add(1)
        return loss, load

    @tf.function
    def train_step(x, y):
        loss, load = strategy.run(learn, args=(x, y))
        return strategy.reduce("SUM", loss, axis=None), strategy.reduce("MEAN", load, axis=None)

    steps = tf.data.Dataset.range(int(step.numpy()), args.steps).map(lambda n: batch_of_step(n, args.batch))
    for x, y in strategy.experimental_distribute_dataset(steps):
        loss, load = train_step(x, y)
        done = int(step.numpy())
        if done % args.save_every == 0:
            print(f"step {done} loss {float(loss):.4f} load " + " ".join(f"{each:.2f}" for each in load.numpy()))
            manager.save(checkpoint_number=done)

    x, y = batch_of_step(10**6, 256)
    outputs, chosen = model(x)
    offsets = " ".join(f"{float(expert.offset.numpy()):.3f}" for expert in model.experts)
    print(f"test error {np.mean((outputs - y) ** 2):.4f} busiest {np.max(np.mean(chosen, 0)):.4f} offsets {offsets}")


if __name__ == "__main__":
    main(parser.parse_args())
