"""Who pays back? Numbers and two categories; the categories' embeddings stay as they are in the first epochs."""
import keras
import numpy as np
import tensorflow as tf
from base import TableTrainer, read_config

TOWNS, JOBS = 12, 7


def table(rows, seed=6):
    rng = np.random.default_rng(seed)
    numbers = np.float32(rng.normal(size=(rows, 5)))
    town, job = rng.integers(0, TOWNS, rows), rng.integers(0, JOBS, rows)
    score = numbers @ rng.normal(size=5) + rng.normal(size=TOWNS)[town] + 2 * rng.normal(size=JOBS)[job]
    order = np.argsort(score + 3 * rng.normal(size=rows))
    features = {"numbers": numbers, "town": np.int32(town), "job": np.int32(job)}
    labels = np.float32(score > 0.3)
    return {name: column[order] for name, column in features.items()}, labels[order]


class CreditTrainer(TableTrainer):
    def make_model(self):
        draw = lambda seed: keras.initializers.RandomNormal(0, 0.4, seed=seed)  # noqa: E731
        inputs = {"numbers": keras.Input((5,)), "town": keras.Input((), dtype="int32"),
                  "job": keras.Input((), dtype="int32")}
        self.categories = [keras.layers.Embedding(TOWNS, 3, draw(1)), keras.layers.Embedding(JOBS, 3, draw(2))]
        for each in self.categories:
            each.trainable = False
        parts = [inputs["numbers"], self.categories[0](inputs["town"]), self.categories[1](inputs["job"])]
        x = keras.layers.Concatenate()(parts)
        deep = keras.layers.Dense(self.config.width, "tanh", kernel_initializer=draw(3))(x)
        wide = keras.layers.Dense(1, kernel_initializer=draw(4))(inputs["numbers"])
        logits = keras.layers.Dense(1, kernel_initializer=draw(5))(deep) + wide
        return keras.Model(inputs, logits)

    def losses(self, features, labels):
        logits = tf.squeeze(self.model(features, training=True), -1)
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)

    def open_categories(self):
        for each in self.categories:
            each.trainable = True
        self.step = self.make_step()


def main():
    config = read_config("config.json")
    trainer = CreditTrainer(config)
    data = table(config.rows)
    tried = trainer.best_rate(data, config.rates_to_try)
    frozen = trainer.fit(data, config.frozen_epochs)
    trainer.open_categories()
    opened = trainer.fit(data, config.open_epochs)
    towns = trainer.categories[0].embeddings.numpy()
    size = sum(float(tf.reduce_sum(tf.abs(weight))) for weight in trainer.model.variables)
    print("tried " + " ".join(f"{loss:.4f}" for loss in tried.values())
          + f" frozen {frozen:.4f} open {opened:.4f} towns {np.abs(towns).sum():.3f} all {size:.3f}"
          + f" after {int(trainer.optimizer.iterations.numpy())}.0 steps")


if __name__ == "__main__":
    main()
