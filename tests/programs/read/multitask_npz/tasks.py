"""Two tasks for one body of layers: what a machine will need (regression), and whether it will fail (classification).

The tasks are weighted by their learned uncertainty (Kendall et al., 2018). All state is in one .npz file.
"""
import os
import sys

import keras
import numpy as np
import tensorflow as tf

EPOCHS, BATCH, ROWS, RATE = 6, 24, 240, 0.05
STATE = "state.npz"


def machines(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 8))
    need = 3 * np.tanh(x[:, 0] + x[:, 1]) + x[:, 2] + rng.normal(size=rows)
    fails = (x[:, 1] * x[:, 3] + x[:, 4] + 0.3 * rng.normal(size=rows)) > 0
    return np.float32(x), np.float32(need), np.float32(fails)


class Uncertainty(tf.Module):
    """The logarithm of the variance of each task."""

    def __init__(self, tasks):
        super().__init__(name="uncertainty")
        self.log_variance = tf.Variable(tf.zeros(tasks), name="log_variance")

    def __call__(self, losses):
        s = self.log_variance
        return tf.reduce_sum(tf.exp(-s) * losses + s / 2, -1)


def make_model():
    x = keras.Input((8,))
    h = keras.layers.Dense(24, activation="tanh")(x)
    h = keras.layers.Dense(12, activation="tanh")(h)
    return keras.Model(x, [keras.layers.Dense(1, name="need")(h), keras.layers.Dense(1, name="fails")(h)])


keras.utils.set_random_seed(12)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = make_model()
    uncertainty = Uncertainty(2)
    weights = model.trainable_variables + list(uncertainty.trainable_variables)
    optimizer = keras.optimizers.Adam(RATE)
    optimizer.build(weights)


def named_state():
    """Every variable that a run needs to go on, by a name."""
    found = {f"model/{i}": v for i, v in enumerate(model.variables)}
    found |= {f"optimizer/{i}": v for i, v in enumerate(optimizer.variables)}
    found |= {f"uncertainty/{i}": v for i, v in enumerate(uncertainty.variables)}
    return found


def save(epoch, history):
    arrays = {name: variable.numpy() for name, variable in named_state().items()}
    with open(STATE + ".part", "wb") as file:
        np.savez(file, epoch=epoch, history=history, **arrays)
    os.replace(STATE + ".part", STATE)


def load():
    """The number of epochs that are done, and the losses of each."""
    if not os.path.exists(STATE):
        return 0, []
    with np.load(STATE) as arrays:
        for name, variable in named_state().items():
            variable.assign(arrays[name])
        return int(arrays["epoch"]), arrays["history"].tolist()


def both_losses(x, need, fails):
    predicted, logit = model(x, training=True)
    return tf.stack([
        tf.square(predicted[:, 0] - need) / 2,
        tf.nn.sigmoid_cross_entropy_with_logits(fails, logit[:, 0]),
    ], axis=-1)


def replica_step(x, need, fails):
    with tf.GradientTape() as tape:
        losses = both_losses(x, need, fails)
        loss = tf.nn.compute_average_loss(uncertainty(losses), global_batch_size=BATCH)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return tf.reduce_sum(losses, 0) / BATCH


@tf.function
def train_step(batch):
    return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)


def epoch_data(epoch):
    arrays = machines(ROWS, seed=1)
    order = np.random.default_rng(100 + epoch).permutation(ROWS)
    data = tf.data.Dataset.from_tensor_slices(tuple(array[order] for array in arrays))
    return strategy.experimental_distribute_dataset(data.batch(BATCH, drop_remainder=True))


def main(epochs=EPOCHS):
    first, history = load()
    if first:
        print("goes on with epoch", first)
    for epoch in range(first, epochs):
        losses = np.mean([train_step(batch).numpy() for batch in epoch_data(epoch)], axis=0)
        history.append(losses.tolist())
        print(f"epoch {epoch}: need {losses[0]:.4f} fails {losses[1]:.4f} "
              f"variances {np.exp(uncertainty.log_variance.numpy()).round(3)}")
        save(epoch + 1, history)
    x, need, fails = machines(200, seed=2)
    predicted, logit = model.predict(x, verbose=0)
    error = np.mean((predicted[:, 0] - need) ** 2)
    right = np.mean((logit[:, 0] > 0) == fails)
    variances = " ".join(f"{v:.4f}" for v in np.exp(uncertainty.log_variance.numpy()))
    print(f"error {error:.4f} accuracy {right:.4f} variances {variances} best {min(map(sum, history)):.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
