"""python -m usage.pipeline

Three stages: the head on a fixed encoder, everything on the older customers, everything on the newer customers with
a small learning rate. Each stage leaves a file; the last one is loaded again and evaluated.
"""
import argparse
import pathlib

import keras
import numpy as np
import tensorflow as tf

from . import layers, objective
from .records import DAYS, PLANS, SIGNALS, customers, stream

PLACE = pathlib.Path(__file__).resolve().parents[1] / "models"


def build_encoder(width=10):
    use = keras.Input([DAYS, SIGNALS], name="use")
    days = keras.layers.Dense(width, activation="relu")(use)
    return keras.Model(use, layers.norm("norm")(layers.AttentionPool(width)(days)), name="encoder")


def build_model(encoder):
    use, plan = keras.Input([DAYS, SIGNALS], name="use"), keras.Input([], dtype="int32", name="plan")
    both = keras.layers.Concatenate()([encoder(use), keras.layers.Embedding(PLANS, 3)(plan)])
    hidden = keras.layers.Dense(12, activation="tanh")(both)
    return keras.Model({"use": use, "plan": plan}, keras.layers.Dense(1)(hidden))


class Pipeline:
    rates = {"head": 0.05, "older": 0.08, "newer": 0.01}

    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        self.older = customers(256, seed=10)
        self.newer = customers(192, seed=11, drift=0.2)
        self.held = customers(96, seed=12, drift=0.2)

    def optimizer(self, stage):
        return keras.optimizers.SGD(self.rates[stage], momentum=0.9, nesterov=True)

    def compiled(self, model, optimizer):
        model.compile(optimizer, loss=objective.poisson_loss, metrics=objective.metrics())
        model.optimizer.build(model.trainable_variables)
        return model

    def fit(self, model, data, epochs, stage):
        batch = self.args.batch
        steps = len(data[1]) // batch
        history = model.fit(stream(data, batch, seed=5, endless=True), steps_per_epoch=steps, epochs=epochs, verbose=0)
        for epoch, (loss, explained) in enumerate(zip(history.history["loss"], history.history["explained"])):
            print(f"{stage} epoch {epoch + 1}: loss {loss:.5f} explained {explained:.5f}", flush=True)

    def pretrain(self):
        """Head first, then everything. Leaves weights and optimizer in one file."""
        with self.strategy.scope():
            encoder = build_encoder()
            model = build_model(encoder)
            encoder.trainable = False
            self.compiled(model, self.optimizer("head"))
        self.fit(model, self.older, 1, "head")
        with self.strategy.scope():
            encoder.trainable = True
            self.compiled(model, self.optimizer("older"))
        self.fit(model, self.older, self.args.epochs, "older")
        model.save_weights(PLACE / "older.weights.h5")

    def adapt(self):
        """Goes on from the older customers, momentum included, with the rate of this stage."""
        with self.strategy.scope():
            model = self.compiled(build_model(build_encoder()), self.optimizer("newer"))
            model.load_weights(PLACE / "older.weights.h5")
            model.optimizer.learning_rate = self.rates["newer"]
        self.fit(model, self.newer, 2, "newer")
        model.save(PLACE / "newer.keras")

    def report(self):
        with self.strategy.scope():
            model = keras.models.load_model(PLACE / "newer.keras")
        result = model.evaluate(stream(self.held, self.args.batch), verbose=0, return_dict=True)
        size = sum(float(np.abs(w).sum()) for w in model.get_weights())
        print("final: " + " ".join(f"{k} {v:.5f}" for k, v in sorted(result.items())) + f" weights {size:.5f}")


def main():
    parser = argparse.ArgumentParser(description="Support calls from the use of a service.")
    parser.add_argument("--epochs", type=int, default=3, help="epochs on the older customers")
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    PLACE.mkdir(exist_ok=True)
    keras.utils.set_random_seed(9)
    pipeline = Pipeline(args)
    pipeline.pretrain()
    pipeline.adapt()
    pipeline.report()


if __name__ == "__main__":
    main()
