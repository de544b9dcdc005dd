#!/usr/bin/env python
"""Forecast the water level of a harbour, one hour ahead.

    python tides.py --epochs 6 --workdir run

Start it again and it goes on where it was interrupted.
"""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from series import harbour, windows

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch", type=int, default=32, help="of all replicas together")
parser.add_argument("--lr", type=float, default=0.08)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--average", type=float, default=0.9, help="decay of the averaged weights")
parser.add_argument("--workdir", default="run")
args = parser.parse_args()

strategy = tf.distribute.MirroredStrategy()
train, valid = windows(harbour(hours=520), width=24)

with strategy.scope():
    net = keras.Sequential([
        keras.Input((24, 2)),
        keras.layers.Conv1D(8, 5, activation="tanh", kernel_initializer=keras.initializers.HeNormal(seed=1)),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(12, activation="tanh", kernel_initializer=keras.initializers.HeNormal(seed=2)),
        keras.layers.Dense(1, kernel_initializer=keras.initializers.HeNormal(seed=3)),
    ])
    optimizer = keras.optimizers.SGD(args.lr, momentum=0.8)
    optimizer.build(net.trainable_variables)
    averaged = [tf.Variable(w, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
                for w in net.trainable_variables]

epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
best = tf.Variable(np.inf, trainable=False)
best_epoch = tf.Variable(0, dtype=tf.int64, trainable=False)

state = tf.train.Checkpoint(net=net, optimizer=optimizer, averaged=averaged, epoch=epoch, best=best,
                            best_epoch=best_epoch)
manager = tf.train.CheckpointManager(state, args.workdir, max_to_keep=2)
if manager.latest_checkpoint:
    state.restore(manager.latest_checkpoint).assert_existing_objects_matched()
    print("going on after epoch", int(epoch))


dice = np.random.default_rng(1000)
for _ in range(int(epoch)):
    dice.permutation(len(train[1]))  # for the epochs of earlier runs


def in_new_order():
    order = dice.permutation(len(train[1]))
    data = tf.data.Dataset.from_tensor_slices((train[0][order], train[1][order]))
    return strategy.experimental_distribute_dataset(data.batch(args.batch, drop_remainder=True))


def learn(x, y):
    with tf.GradientTape() as tape:
        miss = tf.square(net(x, training=True)[:, 0] - y)
        loss = tf.reduce_sum(miss) / args.batch
    here = tf.distribute.get_replica_context()
    grads = here.all_reduce("sum", tape.gradient(loss, net.trainable_variables))
    grads, _ = tf.clip_by_global_norm(grads, args.clip)
    # the optimizer adds up what the replicas hand in
    optimizer.apply_gradients((g / here.num_replicas_in_sync, w) for g, w in zip(grads, net.trainable_variables))
    for mean, weight in zip(averaged, net.trainable_variables):
        mean.assign(args.average * mean + (1.0 - args.average) * weight)
    return loss


@tf.function
def learn_everywhere(x, y):
    return strategy.reduce("sum", strategy.run(learn, args=(x, y)), axis=None)


def rmse_of_average():
    kept = net.get_weights()
    net.set_weights([m.numpy() for m in averaged])
    level = net(valid[0]).numpy()[:, 0]
    net.set_weights(kept)
    return float(np.sqrt(np.mean((level - valid[1]) ** 2)))


while int(epoch) < args.epochs:
    now = int(epoch)
    total = [float(learn_everywhere(x, y)) for x, y in in_new_order()]
    error = rmse_of_average()
    if error < float(best):
        best.assign(error)
        best_epoch.assign(now + 1)
    elif now - int(best_epoch) >= 1:
        optimizer.learning_rate.assign(optimizer.learning_rate * 0.5)
    epoch.assign_add(1)
    manager.save()
    print(f"epoch {now + 1:2d}  loss {np.mean(total):.4f}  rmse {error:.4f}  best {float(best):.4f}")

size = sum(float(np.abs(w).sum()) for w in net.get_weights())
mean_size = sum(float(np.abs(m.numpy()).sum()) for m in averaged)
print(f"done: weights {size:.4f} averaged {mean_size:.4f} rmse {rmse_of_average():.4f} "
      f"best {float(best):.4f} of epoch {float(best_epoch):.1f} rate {optimizer.learning_rate.numpy():.4f}")
