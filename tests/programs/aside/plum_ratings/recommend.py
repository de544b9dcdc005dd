"""Which plums will a grower like? Factors of growers and plums, trained until the ratings held back get no better."""
import json

import keras
import numpy as np
import tensorflow as tf
from store import Store


def ratings(config):
    rng = np.random.default_rng(config["seed"])
    grower, plum = (rng.integers(0, config[kind], 1700) for kind in ("growers", "plums"))
    tastes, traits = rng.normal(size=(config["growers"], 3)), rng.normal(size=(config["plums"], 3))
    score = 3 + 0.5 * (tastes[grower] * traits[plum]).sum(1) + rng.normal(size=config["plums"])[plum] * 0.3
    rating = np.clip(score + 0.4 * rng.normal(size=len(score)), 1, 5)
    rows = grower.astype("int32"), plum.astype("int32"), rating.astype("float32")
    return [row[:1344] for row in rows], [row[1344:1665] for row in rows]


class Factors(keras.Model):
    def __init__(self, config):
        super().__init__()
        start = keras.initializers.RandomNormal(stddev=0.3, seed=config["seed"])
        self.growers = keras.layers.Embedding(config["growers"], config["factors"], start)
        self.plums = keras.layers.Embedding(config["plums"], config["factors"],
                                             keras.initializers.RandomNormal(stddev=0.3, seed=7))
        self.plum_bias = keras.layers.Embedding(config["plums"], 1, "zeros")

    def call(self, pair):
        grower, plum = pair
        return 3.0 + tf.reduce_sum(self.growers(grower) * self.plums(plum), -1) + self.plum_bias(plum)[..., 0]


class Recommender:
    def __init__(self, config):
        self.config = config
        self.strategy = tf.distribute.MirroredStrategy()
        self.replicas = self.strategy.num_replicas_in_sync
        with self.strategy.scope():
            self.model = Factors(config)
            self.model((tf.zeros(1, tf.int32), tf.zeros(1, tf.int32)))
            self.optimizer = keras.optimizers.SGD(config["rate"], momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)

    def batches(self, rows, order=None):
        data = tf.data.Dataset.from_tensor_slices(tuple(row if order is None else row[order] for row in rows))
        return self.strategy.experimental_distribute_dataset(data.batch(self.config["batch"]))

    def learn(self, grower, plum, rating):
        weights = self.model.trainable_variables
        with tf.GradientTape() as tape:
            errors = tf.square(rating - self.model((grower, plum)))
            loss = tf.nn.compute_average_loss(errors, global_batch_size=self.config["batch"])
        gradients = [
            tf.convert_to_tensor(gradient) + self.config["decay"] * weight / self.replicas
            for gradient, weight in zip(tape.gradient(loss, weights), weights)
        ]
        self.optimizer.apply_gradients(zip(gradients, weights))
        return loss

    @tf.function
    def step(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self.learn, args=batch), axis=None)

    def judge(self, grower, plum, rating):
        errors = tf.square(rating - self.model((grower, plum)))
        return tf.reduce_sum(errors), tf.cast(tf.size(errors), tf.float32)

    @tf.function
    def judge_step(self, batch):
        parts = self.strategy.run(self.judge, args=batch)
        return [self.strategy.reduce("SUM", part, axis=None) for part in parts]

    def rmse(self, rows):
        sums = np.sum([[float(part) for part in self.judge_step(batch)] for batch in self.batches(rows)], 0)
        return float(np.sqrt(sums[0] / sums[1]))


def main():
    with open("ratings.json") as file:
        config = json.load(file)
    train, held_back = ratings(config)
    recommender, store = Recommender(config), Store()
    state = store.read()
    if state["files"]:
        store.load(state, recommender.model, recommender.optimizer)

    while state["epoch"] < config["epochs"] and state["waited"] < config["patience"]:
        order = np.random.default_rng([config["seed"], state["epoch"]]).permutation(len(train[0]))
        losses = [float(recommender.step(batch)) for batch in recommender.batches(train, order)]
        rmse = recommender.rmse(held_back)
        state["epoch"] += 1
        state["errors"].append(rmse)
        better = state["best"] is None or rmse < state["best"]
        state["waited"] = 0 if better else state["waited"] + 1
        state["best"] = rmse if better else state["best"]
        print(f"epoch {state['epoch']}: loss {np.mean(losses):.4f} rmse {rmse:.4f}{' *' if better else ''}")
        store.write(state, recommender.model, recommender.optimizer)

    last = recommender.rmse(held_back)
    recommender.model.load_weights(state["best_weights"])
    print(f"{state['epoch']}.0 epochs, best rmse {state['best']:.4f}, last {last:.4f}, "
          f"of the best weights {recommender.rmse(held_back):.4f}, mean {np.mean(state['errors']):.4f}")


if __name__ == "__main__":
    main()
