"""Learns from a log of auctions which of six bids to make (Q-learning from the log, with a target network).

The state of a run is a TensorFlow checkpoint for each round, and ``state.json``, which names the newest one and holds the
numbers of the loop.
"""
import functools
import json
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

HERE = Path(__file__).resolve().parent
CONFIG = dict(rounds=5, batch=32, batches=6, discount=0.8, sync_every=8, rate=0.05, momentum=0.8, baseline_decay=0.9, seed=13)
FEATURES, BIDS = 7, 6


def auctions(count, seed):
    """(situation, bid, reward, next situation) of a simple market."""
    rng = np.random.default_rng(seed)
    now = rng.normal(size=(count, FEATURES)).astype("float32")
    bid = rng.integers(0, BIDS, count).astype("int32")
    price = 2.5 + now[:, 0] + 0.5 * now[:, 1]
    reward = np.where(bid > price, 3.0 + now[:, 2] - 0.6 * bid, 0.0) + rng.normal(0, 0.2, count) + 1.0
    later = 0.7 * now + 0.3 * rng.normal(size=now.shape)
    return now, bid, reward.astype("float32"), later.astype("float32")


def q_network():
    return keras.Sequential([
        keras.Input((FEATURES,)),
        keras.layers.Dense(24, activation="relu"),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(BIDS),
    ])


class JsonState:
    """Saves a round: first the checkpoint under a name of its own, then the file that points to it."""

    def __init__(self, folder, checkpoint, baseline):
        self.folder, self.checkpoint, self.baseline = Path(folder), checkpoint, baseline
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "state.json"

    def save(self, finished, updates):
        path = self.checkpoint.write(str(self.folder / f"round{finished}"))
        content = {"checkpoint": os.path.basename(path), "finished": finished, "updates": updates,
                   "baseline": float(self.baseline.numpy())}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(content))
        os.replace(new, self.file)

    def load(self):
        if not self.file.exists():
            return 0, 0
        content = json.loads(self.file.read_text())
        self.checkpoint.read(str(self.folder / content["checkpoint"]))
        self.baseline.assign(content["baseline"])
        return content["finished"], content["updates"]


def temporal_difference(online, target, baseline, now, bid, reward, later):
    """Huber loss of each auction; rewards count relative to the baseline."""
    best_later = tf.reduce_max(target(later), axis=-1)
    wanted = reward - baseline + CONFIG["discount"] * best_later
    value = tf.gather(online(now), bid, batch_dims=1)
    error = tf.abs(tf.stop_gradient(wanted) - value)
    return tf.where(error < 1.0, 0.5 * error ** 2, error - 0.5)


def make_update(strategy, online, optimizer, errors_of, share):
    def learn(now, bid, reward, later):
        with tf.GradientTape() as tape:
            loss = share(errors_of(now=now, bid=bid, reward=reward, later=later))
        variables = online.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss, tf.reduce_sum(reward)

    @tf.function
    def update(auction):
        loss, reward = strategy.run(learn, args=auction)
        return strategy.reduce("SUM", loss, axis=None), strategy.reduce("SUM", reward, axis=None)

    return update


def log_of(strategy, number):
    rows = auctions(CONFIG["batch"] * CONFIG["batches"], seed=[CONFIG["seed"], number])
    data = tf.data.Dataset.from_tensor_slices(rows).batch(CONFIG["batch"])
    return strategy.experimental_distribute_dataset(data)


def main():
    keras.utils.set_random_seed(CONFIG["seed"])
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        online, target = q_network(), q_network()
        optimizer = keras.optimizers.SGD(CONFIG["rate"], momentum=CONFIG["momentum"])
        optimizer.build(online.trainable_variables)
        baseline = tf.Variable(0.0, trainable=False, name="baseline")
    target.set_weights(online.get_weights())
    kept = dict(online=online, target=target, optimizer=optimizer)
    state = JsonState(HERE / "state", tf.train.Checkpoint(**kept), baseline)
    finished, updates = state.load()
    share = functools.partial(tf.nn.compute_average_loss, global_batch_size=CONFIG["batch"])
    update = make_update(strategy, online, optimizer, functools.partial(temporal_difference, online, target, baseline), share)

    for number in range(finished, CONFIG["rounds"]):
        losses = []
        for auction in log_of(strategy, number):
            loss, reward = update(auction)
            updates += 1
            losses.append(float(loss))
            decay = CONFIG["baseline_decay"]
            baseline.assign(decay * baseline + (1.0 - decay) * reward / CONFIG["batch"])
            if updates % CONFIG["sync_every"] == 0:
                target.set_weights(online.get_weights())
        state.save(number + 1, updates)
        print(f"round {number + 1}: {updates} updates, loss {np.mean(losses):.5f}, baseline {float(baseline.numpy()):.4f}")

    now, *_ = auctions(200, seed=1)
    values = online(now).numpy()
    weights = sum(float(np.abs(w).sum()) for w in online.get_weights())
    print(f"learned: mean value {values.max(-1).mean():.6f} mean bid {values.argmax(-1).mean():.5f} baseline {float(baseline.numpy()):.6f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
