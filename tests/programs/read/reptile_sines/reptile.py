"""Reptile (Nichol et al. 2018): meta-learning of sine waves.  Inner steps of SGD, then a step towards their end."""
import argparse

import numpy as np
import tensorflow as tf


def task(seed):
    rng = np.random.default_rng(seed)
    amplitude, phase = rng.uniform(0.5, 2), rng.uniform(0, np.pi)
    x = rng.uniform(-4, 4, (64, 1)).astype("float32")
    return x, (amplitude * np.sin(x + phase)).astype("float32")


class Reptile:
    def __init__(self, inner_rate, batch):
        self.strategy = tf.distribute.MirroredStrategy()
        self.batch = batch
        with self.strategy.scope():
            tf.keras.utils.set_random_seed(3)
            self.model = tf.keras.Sequential([
                tf.keras.Input((1,)), tf.keras.layers.Dense(32, "tanh"), tf.keras.layers.Dense(32, "tanh"), tf.keras.layers.Dense(1)])
            self.inner = tf.keras.optimizers.SGD(inner_rate)
            self.inner.build(self.model.trainable_variables)
            self.meta = [tf.Variable(v, trainable=False) for v in self.model.trainable_variables]
            self.iteration = tf.Variable(0, dtype=tf.int64, trainable=False)

    def _replica(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.square(self.model(x) - y)[:, 0], global_batch_size=self.batch)
        v = self.model.trainable_variables
        self.inner.apply_gradients(zip(tape.gradient(loss, v), v))
        return loss

    @tf.function
    def inner_step(self, x, y):
        return self.strategy.reduce("SUM", self.strategy.run(self._replica, args=(x, y)), axis=None)

    def adapt(self, x, y, steps):
        for v, m in zip(self.model.trainable_variables, self.meta):
            v.assign(m)
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(self.batch).repeat().take(steps)
        return [float(self.inner_step(*b)) for b in self.strategy.experimental_distribute_dataset(data)]

    def meta_step(self, step_size, inner_steps):
        losses = self.adapt(*task(int(self.iteration.numpy())), inner_steps)
        for m, v in zip(self.meta, self.model.trainable_variables):
            m.assign_add(step_size * (v.numpy() - m.numpy()))
        self.iteration.assign_add(1)
        return losses[-1]

    def evaluate(self):
        return float(np.mean([self.adapt(*task(10_000 + i), 8)[-1] for i in range(4)]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iterations", type=int, default=40)
    p.add_argument("--inner-steps", type=int, default=6)
    p.add_argument("--every", type=int, default=10)
    p.add_argument("--dir", default="reptile")
    a = p.parse_args()
    reptile = Reptile(0.02, 16)
    ckpt = tf.train.Checkpoint(meta=reptile.meta, iteration=reptile.iteration)
    manager = tf.train.CheckpointManager(ckpt, a.dir, max_to_keep=1)
    if manager.latest_checkpoint:
        ckpt.restore(manager.latest_checkpoint).assert_consumed()
        print("at iteration", int(reptile.iteration.numpy()))
    losses = []
    while (i := int(reptile.iteration.numpy())) < a.iterations:
        losses.append(reptile.meta_step(0.5 * (1 - i / a.iterations), a.inner_steps))
        if (i + 1) % a.every == 0:
            manager.save()
            print(f"iteration {i + 1}: inner loss {np.mean(losses[-a.every:]):.4f}, new tasks {reptile.evaluate():.4f}")
    print(f"after adaptation: {reptile.evaluate():.4f}")


if __name__ == "__main__":
    main()
