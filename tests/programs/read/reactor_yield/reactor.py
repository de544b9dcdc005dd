"""Yield and impurity of a batch reactor, from its recipe (numbers) and the temperature curve.

A model with a train_step of its own: both outputs have their losses, and the two must not add up to more than one, which
a penalty says. The weights that are kept are the average that the optimizer makes of them.
"""
import dataclasses
import json

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass
class Config:
    runs: int = 448
    test: int = 64
    batch: int = 32
    epochs: int = 8
    rate: float = 0.01
    average: float = 0.95
    penalty: float = 2.0
    units: int = 20
    seed: int = 55


def reactor_runs(count, seed):
    rng = np.random.default_rng(seed)
    recipe = rng.uniform(-1, 1, (count, 5)).astype("float32")
    t = np.linspace(0, 1, 24)
    peak, width = rng.uniform(0.2, 0.8, (count, 1)), rng.uniform(0.05, 0.3, (count, 1))
    curve = np.float32(np.exp(-(((t - peak) / width) ** 2)) + rng.normal(0, 0.03, (count, 24)))
    heat = curve.mean(axis=1)
    gain = 1 / (1 + np.exp(-(2 * recipe[:, 0] - recipe[:, 1] * recipe[:, 2] + 4 * heat - 1)))
    dirt = (1 - gain) * (0.4 + 0.3 * np.tanh(recipe[:, 3] + heat))
    targets = {"yield": np.float32(gain)[:, None], "impurity": np.float32(dirt)[:, None]}
    return {"recipe": recipe, "curve": curve[..., None]}, targets


class ReactorModel(keras.Model):
    """A functional model whose training step knows that yield and impurity are parts of one whole."""

    def __init__(self, *args, penalty=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.penalty = penalty
        self.seen_loss = keras.metrics.Mean(name="loss")
        self.seen_error = keras.metrics.MeanAbsoluteError(name="yield_error")

    @property
    def metrics(self):
        return [self.seen_loss, self.seen_error]

    def example_losses(self, targets, outputs):
        both = outputs["yield"] + outputs["impurity"]
        losses = [tf.square(targets[name] - outputs[name]) for name in targets]
        return tf.squeeze(sum(losses) + self.penalty * tf.nn.relu(both - 1.0), -1)

    def train_step(self, data):
        inputs, targets = data
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        with tf.GradientTape() as tape:
            outputs = self(inputs, training=True)
            # the gradients of the replicas are added up
            loss = tf.reduce_mean(self.example_losses(targets, outputs)) / replicas
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.seen_loss.update_state(loss * replicas)
        self.seen_error.update_state(targets["yield"], outputs["yield"])
        return {metric.name: metric.result() for metric in self.metrics}

    def test_step(self, data):
        inputs, targets = data
        outputs = self(inputs, training=False)
        self.seen_loss.update_state(self.example_losses(targets, outputs))
        self.seen_error.update_state(targets["yield"], outputs["yield"])
        return {metric.name: metric.result() for metric in self.metrics}


def build(config):
    recipe = keras.Input((5,), name="recipe")
    curve = keras.Input((24, 1), name="curve")
    x = keras.layers.Conv1D(8, 5, strides=2, activation="relu")(curve)
    x = keras.layers.GlobalAveragePooling1D()(x)
    x = keras.layers.Dense(config.units, "tanh")(keras.layers.Concatenate()([recipe, x]))
    x = keras.layers.Dense(config.units, "tanh")(x)
    outputs = {name: keras.layers.Dense(1, "sigmoid", name=name)(x) for name in ("yield", "impurity")}
    return ReactorModel({"recipe": recipe, "curve": curve}, outputs, penalty=config.penalty)


def main():
    config = Config()
    keras.utils.set_random_seed(config.seed)
    inputs, targets = reactor_runs(config.runs + config.test, config.seed)
    take = lambda tree, part: {name: values[part] for name, values in tree.items()}  # noqa: E731
    known, new = slice(config.runs), slice(config.runs, None)
    train = tf.data.Dataset.from_tensor_slices((take(inputs, known), take(targets, known)))
    train = train.cache().shuffle(config.runs, seed=config.seed).batch(config.batch, drop_remainder=True)
    test = tf.data.Dataset.from_tensor_slices((take(inputs, new), take(targets, new))).batch(config.batch)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = build(config)
        model.compile(
            optimizer=keras.optimizers.Nadam(
                config.rate,
                use_ema=True,
                ema_momentum=config.average,
            )
        )
    history = model.fit(train, epochs=config.epochs, verbose=0).history
    for epoch, (loss, error) in enumerate(zip(history["loss"], history["yield_error"]), 1):
        print(f"epoch {epoch}: loss {loss:.5f} yield error {error:.4f}")
    scores = model.evaluate(test, verbose=0, return_dict=True)
    with open("reactor.json", "w") as file:
        json.dump({**dataclasses.asdict(config), **{k: float(v) for k, v in scores.items()}}, file)
    size = sum(float(tf.reduce_sum(tf.abs(weight.value))) for weight in model.trainable_variables)
    print(f"trained to {history['loss'][-1]:.5f}, test loss {scores['loss']:.5f} yield error {scores['yield_error']:.4f}"
          f" weights {size:.4f}")


if __name__ == "__main__":
    main()
