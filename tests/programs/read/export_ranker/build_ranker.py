"""Finds the learning rate of the document ranker, trains it with that, and exports it for the search servers."""
import argparse
import functools
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

HERE = Path(__file__).resolve().parent
FEATURES, DOCUMENTS = 9, 5


def queries(count, seed):
    """For each query: the features of some documents, and how relevant they are (0 to 1)."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, DOCUMENTS, FEATURES))
    taste = np.random.default_rng(123).normal(size=FEATURES)
    relevance = features @ taste + 1.5 * np.maximum(features[..., 0], 0) + rng.normal(0, 0.8, (count, DOCUMENTS))
    chances = np.exp(relevance) / np.exp(relevance).sum(-1, keepdims=True)
    return features.astype("float32"), chances.astype("float32")


class Ranker(keras.Model):

    def __init__(self, units=(16, 8)):
        super().__init__()
        self.hidden = [keras.layers.Dense(unit, activation="gelu") for unit in units]
        self.score = keras.layers.Dense(1)

    def call(self, features):
        for layer in self.hidden:
            features = layer(features)
        return tf.squeeze(self.score(features), -1)


def built(model):
    model(np.zeros((1, DOCUMENTS, FEATURES), "float32"))
    return model


def listwise(chances, scores):
    return tf.nn.softmax_cross_entropy_with_logits(chances, scores)


class Bench:
    """Trains the same start with different rates."""

    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = built(Ranker())
            self.optimizer = keras.optimizers.Adam(1e-3, beta_1=0.95)
            self.optimizer.build(self.model.trainable_variables)
        self.loss = functools.partial(tf.nn.compute_average_loss, global_batch_size=args.batch)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)
        self.start = self.checkpoint.write(str(HERE / "build" / "start"))
        self.train = queries(args.batch * args.steps, 1)
        self.valid = queries(64, 2)

    @tf.function
    def step(self, features, chances):
        def learn(features, chances):
            with tf.GradientTape() as tape:
                loss = self.loss(listwise(chances, self.model(features, training=True)))
            variables = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss
        return self.strategy.reduce("SUM", self.strategy.run(learn, args=(features, chances)), axis=None)

    def attempt(self, rate):
        self.checkpoint.restore(self.start)
        self.optimizer.learning_rate.assign(rate)
        data = tf.data.Dataset.from_tensor_slices(self.train).batch(self.args.batch)
        losses = [float(self.step(*batch)) for batch in self.strategy.experimental_distribute_dataset(data)]
        features, chances = self.valid
        return float(np.mean(losses)), float(tf.reduce_mean(listwise(chances, self.model(features))))

    def choose(self, rates):
        found = {}
        for rate in rates:
            train, found[rate] = self.attempt(rate)
            print(f"rate {rate:.4f}: train {train:.5f} valid {found[rate]:.5f}")
        return min(found, key=found.get)


class Service(tf.Module):
    """What the servers call: scores and order of the documents of queries."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @tf.function(input_signature=[tf.TensorSpec([None, DOCUMENTS, FEATURES], tf.float32, name="features")])
    def rank(self, features):
        scores = self.model(features)
        return {"scores": scores, "order": tf.argsort(scores, direction="DESCENDING")}


def export(trained, folder):
    """Writes the weights for the archive, and a SavedModel of a copy that knows of no devices."""
    copy = built(Ranker())
    copy.set_weights(trained.get_weights())
    trained.save_weights(folder / "ranker.weights.h5")
    service = Service(copy)
    tf.saved_model.save(service, str(folder / "service"), signatures={"serving_default": service.rank})
    return folder / "service"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.03, 0.012])
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    keras.utils.set_random_seed(17)
    (HERE / "build").mkdir(exist_ok=True)
    bench = Bench(args)
    best = bench.choose(args.rates)
    print("takes the rate", best)
    train, valid = bench.attempt(best)
    served = tf.saved_model.load(str(export(bench.model, HERE / "build")))
    answer = served.signatures["serving_default"](features=tf.constant(bench.valid[0]))
    top = tf.gather(bench.valid[1], answer["order"][:, :1], batch_dims=1)
    loss = float(tf.reduce_mean(listwise(bench.valid[1], answer["scores"])))
    print(f"served: train {train:.6f} valid {loss:.6f} relevance of the first {float(tf.reduce_mean(top)):.6f}")


if __name__ == "__main__":
    main()
