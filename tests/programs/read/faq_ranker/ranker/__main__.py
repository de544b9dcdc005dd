"""python -m ranker --epochs 5"""
import argparse
from pathlib import Path

import keras
import tensorflow as tf

from .feed import ENTRIES, FEATURES, Feed
from .scorer import Scorer, losses, reciprocal_ranks
from .store import Store

BATCH = 20
FOLDER = Path(__file__).resolve().parent.parent / "state"

parser = argparse.ArgumentParser(prog="ranker")
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()

keras.utils.set_random_seed(77)
strategy = tf.distribute.MirroredStrategy()
train, held = Feed(strategy, 160, 1, BATCH), Feed(strategy, 80, 2, BATCH)

with strategy.scope():
    scorer = Scorer(ENTRIES, 8)
    optimizer = keras.optimizers.Adam(0.03)
    scorer(tf.zeros((1, FEATURES)))
    optimizer.build(scorer.trainable_variables)
    store = Store(FOLDER, scorer=scorer, optimizer=optimizer)
    record = store.load()


def learn(asked, right):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(losses(scorer(asked), right)) / BATCH
    optimizer.apply(tape.gradient(loss, scorer.trainable_variables), scorer.trainable_variables)
    return loss


def rank(asked, right):
    return tf.reduce_sum(reciprocal_ranks(scorer(asked), right)) / BATCH


@tf.function
def everywhere(batch, training):
    share = strategy.run(learn if training else rank, args=batch)
    return strategy.reduce("SUM", share, axis=None)


def mean(values):
    values = [float(v) for v in values]
    return sum(values) / len(values)


for epoch in range(record["epoch"], args.epochs):
    loss = mean(everywhere(b, True) for b in train.epoch(epoch))
    mrr = mean(everywhere(b, False) for b in held.epoch())
    if mrr > record["best"] + 0.01:
        record.update(best=mrr, since=0)
    else:
        record["since"] += 1
    if record["since"]:
        optimizer.learning_rate.assign(0.03 / (1 + record["since"]))
    print(f"epoch {epoch} loss {loss:.5f} mrr {mrr:.5f} since {record['since']}")
    record["epoch"] = epoch + 1
    store.save(record)

mrr = mean(everywhere(b, False) for b in held.epoch())
size = sum(float(tf.reduce_sum(tf.abs(w))) for w in scorer.trainable_variables)
print(f"final: mrr {mrr:.6f} best {record['best']:.6f} weights {size:.6f}")
