"""Two towers for a shop: which product does a visitor look at next?

Each batch is its own set of candidates: a visitor shall find his product among the products of all the others.
"""
import argparse

import keras
import numpy as np
import tensorflow as tf

PRODUCTS = [f"sku-{n:03d}" for n in range(60)]
HISTORY = 5


def visits(count, seed):
    """Visitors have a taste, a point on a circle; so have the products."""
    rng = np.random.default_rng(seed)
    taste = rng.uniform(0, 2 * np.pi, count)
    place = 2 * np.pi * np.arange(len(PRODUCTS)) / len(PRODUCTS)
    closeness = 6 * np.cos(taste[:, None] - place[None])
    chance = np.exp(closeness - closeness.max(1, keepdims=True))
    chance /= chance.sum(1, keepdims=True)
    picks = np.array([rng.choice(len(PRODUCTS), HISTORY + 1, p=p) for p in chance])
    device = np.where(rng.random(count) < 0.5, "phone", "desk")
    names = np.array(PRODUCTS)[picks]
    return names[:, :-1], device, names[:, -1]


class Towers(keras.Model):
    def __init__(self, products, size):
        super().__init__()
        self.product = keras.layers.Embedding(products, size)
        self.device = keras.layers.Embedding(3, size)
        self.visitor = keras.layers.Dense(size)
        self.candidate = keras.layers.Dense(size)

    def visitors(self, history, device):
        x = tf.reduce_mean(self.product(history), axis=1) + self.device(device)
        return tf.math.l2_normalize(self.visitor(x), -1)

    def candidates(self, product):
        return tf.math.l2_normalize(self.candidate(self.product(product)), -1)

    def call(self, inputs):
        history, device, product = inputs
        return self.visitors(history, device), self.candidates(product)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--heat", type=float, default=0.2)
    parser.add_argument("--keep", default="towers")
    args = parser.parse_args()
    keras.utils.set_random_seed(40)

    sku = keras.layers.StringLookup(vocabulary=PRODUCTS)
    kind = keras.layers.StringLookup(vocabulary=["phone", "desk"])
    history, device, wanted = visits(640, seed=7)
    columns = sku(history), kind(device), sku(wanted)
    known = 512

    def epoch_data(order):
        return tf.data.Dataset.from_tensor_slices(tuple(tf.gather(c, order) for c in columns)).batch(args.batch)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        towers = Towers(sku.vocabulary_size(), args.size)
        towers([column[:1] for column in columns])
        optimizer = keras.optimizers.Adagrad(args.rate * 10)
        optimizer.build(towers.trainable_variables)
        epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpoint = tf.train.Checkpoint(towers=towers, optimizer=optimizer, epoch=epoch)
    manager = tf.train.CheckpointManager(checkpoint, args.keep, max_to_keep=1)
    if manager.restore_or_initialize():
        print(f"{int(epoch.numpy())} epochs were made before")
    orders = np.random.default_rng(1000)
    for _ in range(int(epoch.numpy())):
        orders.permutation(known)

    def replica_step(history, device, wanted):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            visitor, candidate = towers([history, device, wanted])
            every = context.all_gather(candidate, axis=0)
            names = context.all_gather(wanted, axis=0)
            first = context.replica_id_in_sync_group * tf.shape(wanted)[0]
            mine = first + tf.range(tf.shape(wanted)[0])
            logits = tf.matmul(visitor, every, transpose_b=True) / args.heat
            # the same product of another visitor is no wrong answer
            twin = (names[None] == wanted[:, None]) & (tf.range(tf.shape(names)[0])[None] != mine[:, None])
            logits = tf.where(twin, -1e9, logits)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(mine, logits)
            loss = tf.reduce_sum(losses) / args.batch
        weights = towers.trainable_variables
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
        optimizer.apply_gradients(zip(gradients, weights))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)

    while int(epoch.numpy()) < args.epochs:
        data = epoch_data(orders.permutation(known))
        losses = [float(step(batch)) for batch in strategy.experimental_distribute_dataset(data)]
        epoch.assign_add(1)
        manager.save(checkpoint_number=int(epoch.numpy()))
        print(f"epoch {int(epoch.numpy())}: loss {np.mean(losses):.5f}", flush=True)

    catalogue = towers.candidates(tf.range(1, sku.vocabulary_size()))
    history, device, wanted = (column[known:] for column in columns)
    scores = tf.matmul(towers.visitors(history, device), catalogue, transpose_b=True).numpy()
    rank = (scores > np.take_along_axis(scores, wanted.numpy()[:, None] - 1, 1)).sum(1)
    size = sum(float(np.abs(weight).sum()) for weight in towers.get_weights())
    print(f"found in ten {np.mean(rank < 10):.4f} mean reciprocal rank {np.mean(1 / (1 + rank)):.5f}"
          f" scores {np.abs(scores).sum():.3f} weights {size:.4f}")


if __name__ == "__main__":
    main()
