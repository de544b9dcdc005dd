"""Is a molecule active? Three folds; in each the head is trained first, and then the whole network.

The fingerprint encoder is the one that was made for another assay.
"""
import json

import keras
import numpy as np
import tensorflow as tf

FOLDS, BATCH, BITS = 3, 40, 32

strategy = tf.distribute.MirroredStrategy()


def molecules(n, seed=20):
    rng = np.random.default_rng(seed)
    prints = (rng.uniform(size=(n, BITS)) < 0.3).astype(np.float32)
    rule = rng.normal(size=(BITS, 3))
    active = (np.maximum(prints @ rule, 0).sum(1) + rng.normal(size=n)) > 4.0
    return prints, active.astype(np.float32)


def other_assay():
    rng = np.random.default_rng(21)
    return [rng.normal(0, 0.25, (BITS, 16)).astype(np.float32), np.zeros(16, np.float32)]


def make_network(fold):
    with strategy.scope():
        encoder = keras.layers.Dense(16, "relu", name="encoder")
        head = keras.layers.Dense(1, name="head", kernel_initializer=keras.initializers.GlorotUniform(seed=fold))
        network = keras.Sequential([keras.Input((BITS,)), encoder, head])
    encoder.set_weights(other_assay())
    encoder.trainable = False
    return network


def make_optimizer(network, rate):
    with strategy.scope():
        optimizer = keras.optimizers.Adam(rate)
        optimizer.build(network.trainable_variables)
    return optimizer


def make_step(network, optimizer):
    weights = network.trainable_variables

    def replica_step(prints, active):
        with tf.GradientTape() as tape:
            logits = network(prints, training=True)[:, 0]
            losses = tf.nn.sigmoid_cross_entropy_with_logits(active, logits)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def step(prints, active):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(prints, active)), axis=None)

    return step


def train(step, data, epochs):
    for _ in range(epochs):
        losses = [float(step(*batch)) for batch in data]
    return float(np.mean(losses))


def main():
    prints, active = molecules(360)
    place = np.arange(len(active)) % FOLDS
    report = []
    for fold in range(FOLDS):
        inside, outside = place != fold, place == fold
        data = tf.data.Dataset.from_tensor_slices((prints[inside], active[inside])).batch(BATCH)
        data = strategy.experimental_distribute_dataset(data)

        network = make_network(fold)
        step = make_step(network, make_optimizer(network, 0.03))
        head = train(step, data, epochs=2)

        network.get_layer("encoder").trainable = True
        step = make_step(network, make_optimizer(network, 0.01))
        whole = train(step, data, epochs=4)

        np.savez(f"fold{fold}.npz", *network.get_weights())
        logits = network(prints[outside]).numpy()[:, 0]
        right = float(np.mean((logits > 0) == (active[outside] > 0)))
        loss = float(np.mean(np.logaddexp(0, -logits * (2 * active[outside] - 1))))
        report.append({"fold": fold, "head": head, "whole": whole, "loss": loss, "right": right})
        print(f"fold {fold}: head {head:.4f} whole {whole:.4f} left out {loss:.4f} right {right:.3f}")

    with open("report.json", "w") as file:
        json.dump(report, file, indent=1)
    means = {name: np.mean([row[name] for row in report]) for name in ("head", "whole", "loss", "right")}
    print("mean", " ".join(f"{name} {value:.5f}" for name, value in means.items()))


if __name__ == "__main__":
    main()
