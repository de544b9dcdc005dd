import numpy as np
import tensorflow as tf

from towers.model import HISTORY, ITEMS, USERS, TwoTowers
from towers.steps import Steps

BATCH, EPOCHS = 40, 5


def interactions(count, seed):
    rng = np.random.default_rng(seed)
    user = rng.integers(0, USERS, count)
    group = user % 5
    history = (rng.integers(0, ITEMS // 5, (count, HISTORY)) * 5 + group[:, None]) % ITEMS
    item = (rng.integers(0, ITEMS // 5, count) * 5 + group) % ITEMS
    return user.astype("int32"), history.astype("int32"), item.astype("int32")


def main():
    tf.keras.utils.set_random_seed(31)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = TwoTowers()
        model((tf.zeros(1, tf.int32), tf.zeros((1, HISTORY), tf.int32), tf.zeros(1, tf.int32)))
        optimizer = tf.keras.optimizers.Adagrad(0.3)
        optimizer.build(model.trainable_variables)
    steps = Steps(strategy, model, optimizer, BATCH)
    train = tf.data.Dataset.from_tensor_slices(interactions(400, 0))
    train = train.shuffle(400, seed=1).batch(BATCH, drop_remainder=True)
    batches = strategy.experimental_distribute_dataset(train)
    for epoch in range(EPOCHS):
        losses = [float(steps.train(batch)) for batch in batches]
        print(f"epoch {epoch}: {np.mean(losses):.4f}")

    test = tf.data.Dataset.from_tensor_slices(interactions(110, 7)).batch(BATCH)
    every = tf.range(ITEMS)
    for batch in strategy.experimental_distribute_dataset(test):
        steps.test(batch, every)
    weights = sum(float(tf.reduce_sum(tf.abs(w))) for w in model.trainable_variables)
    print(f"loss {np.mean(losses):.4f}, hits {float(steps.hits.result()):.4f}, weights {weights:.3f}")


main()
