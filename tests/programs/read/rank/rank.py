"""Learns to rank the documents of a query.

    python rank.py --resume     goes on after the last epoch that is saved

The loss is a softmax over the documents of each query. Gradients are clipped by their norm after those of all replicas are
added. Beside the weights, their moving average is kept, which is what is evaluated. At the end the averaged weights are
polished with a low rate.
"""
import argparse
import os

import keras
import numpy as np
import tensorflow as tf

DOCUMENTS = 8
FEATURES = 6


def parsed():
    reader = argparse.ArgumentParser()
    reader.add_argument("--resume", action="store_true")
    reader.add_argument("--epochs", type=int, default=5)
    reader.add_argument("--polish", type=float, default=0.001, metavar="RATE")
    reader.add_argument("--rate", type=float, default=0.03)
    reader.add_argument("--batch", type=int, default=24)
    reader.add_argument("--norm", type=float, default=0.15, help="the largest norm of a gradient")
    reader.add_argument("--folder", default="ranks")
    return reader.parse_args()


# Data


def queries(count, seed):
    """Returns features of documents, and how relevant each is: 0, 1 or 2."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, DOCUMENTS, FEATURES))
    # The first queries are easy, the last ones are not.
    noise = np.linspace(0.1, 1.5, 12)[np.arange(count) % 12][:, None]
    worth = features[..., 0] - 0.7 * features[..., 1] * (features[..., 2] > 0) + noise * rng.normal(size=(count, DOCUMENTS))
    relevance = np.digitize(worth, [0.3, 1.2])
    return features.astype("float32"), relevance.astype("float32")


class Log:
    """The recorded queries, in another order in each epoch."""

    def __init__(self, count, batch):
        self.features, self.relevance = queries(count, 21)
        self.batch = batch
        self.steps = count // batch

    def of_epoch(self, epoch):
        order = np.random.default_rng([3, epoch]).permutation(len(self.features))

        def of_pipeline(context):
            size = context.get_per_replica_batch_size(self.batch)
            data = tf.data.Dataset.from_tensor_slices((self.features[order], self.relevance[order]))
            return data.batch(size, drop_remainder=True)

        return of_pipeline


# Model and its average


def scorer():
    glorot = keras.initializers.GlorotUniform
    document = keras.Input((DOCUMENTS, FEATURES))
    hidden = keras.layers.Dense(12, "relu", kernel_initializer=glorot(31))(document)
    context = keras.layers.GlobalAveragePooling1D(keepdims=True)(hidden)
    both = keras.layers.Subtract()([hidden, context])
    score = keras.layers.Dense(1, kernel_initializer=glorot(32))(both)
    return keras.Model(document, keras.layers.Reshape((DOCUMENTS,))(score))


class Average(tf.Module):
    """A moving average of weights."""

    def __init__(self, weights, keep=0.9):
        super().__init__()
        self.keep = keep
        self.shadow = [tf.Variable(weight.numpy(), trainable=False) for weight in weights]

    def follow(self, weights):
        for mine, weight in zip(self.shadow, weights):
            mine.assign(self.keep * mine + (1 - self.keep) * tf.convert_to_tensor(weight))

    def values(self):
        return [mine.numpy() for mine in self.shadow]


# Loss and score


def losses(scores, relevance):
    """Returns one loss for each query: the cross entropy of its relevance and the softmax of its scores."""
    share = relevance / tf.maximum(tf.reduce_sum(relevance, -1, keepdims=True), 1.0)
    return tf.nn.softmax_cross_entropy_with_logits(share, scores)


def ndcg(scores, relevance, top=4):
    discount = 1 / np.log2(np.arange(top) + 2)
    best = -np.sort(-relevance, -1)[:, :top]
    found = np.take_along_axis(relevance, np.argsort(-scores, -1, kind="stable"), -1)[:, :top]
    gain = ((2**found - 1) * discount).sum(-1)
    return float(np.mean(gain / np.maximum(((2**best - 1) * discount).sum(-1), 1e-9)))


# Training


class Trainer:
    def __init__(self, options):
        self.options = options
        self.strategy = tf.distribute.MirroredStrategy()
        self.log = Log(240, options.batch)
        with self.strategy.scope():
            self.net = scorer()
            self.optimizer = self.make_optimizer(options.rate)
            self.optimizer.build(self.net.trainable_variables)
            self.average = Average(self.net.trainable_variables)
            self.epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
            self.loss = tf.Variable(0.0, trainable=False)
        self.saved = tf.train.Checkpoint(
            net=self.net,
            optimizer=self.optimizer,
            average=self.average,
            epoch=self.epoch,
            loss=self.loss,
        )
        self.manager = tf.train.CheckpointManager(self.saved, options.folder, max_to_keep=2)
        self.step = self.make_step(self.optimizer)

    def make_optimizer(self, rate):
        return keras.optimizers.Adam(rate)

    def clipped(self, gradients):
        """Returns the share of a replica in the clipped gradient of the batch."""
        context = tf.distribute.get_replica_context()
        whole = context.all_reduce("SUM", gradients)
        whole, _ = tf.clip_by_global_norm(whole, self.options.norm)
        return [each / context.num_replicas_in_sync for each in whole]

    def make_step(self, optimizer):
        weights = self.net.trainable_variables

        def learn(features, relevance):
            with tf.GradientTape() as tape:
                each = losses(self.net(features, training=True), relevance)
                loss = tf.nn.compute_average_loss(each, global_batch_size=self.options.batch)
            optimizer.apply_gradients(zip(self.clipped(tape.gradient(loss, weights)), weights))
            return loss

        @tf.function
        def step(features, relevance):
            parts = self.strategy.run(learn, args=(features, relevance))
            return self.strategy.reduce("SUM", parts, axis=None)

        return step

    def run_epoch(self, epoch, step):
        data = self.strategy.distribute_datasets_from_function(self.log.of_epoch(epoch))
        total = []
        for features, relevance in data:
            total.append(float(step(features, relevance)))
            self.average.follow(self.net.trainable_variables)
        return np.mean(total)

    def train(self):
        if self.options.resume and self.manager.latest_checkpoint:
            self.saved.restore(self.manager.latest_checkpoint).assert_consumed()
        for epoch in range(int(self.epoch.numpy()), self.options.epochs):
            self.loss.assign(self.run_epoch(epoch, self.step))
            self.epoch.assign(epoch + 1)
            self.manager.save()
            print(f"epoch {epoch + 1}: loss {self.loss.numpy():.4f}")

    def polish(self):
        """One more epoch with a low rate, which begins with the moments of the training."""
        with self.strategy.scope():
            gentle = self.make_optimizer(self.options.polish)
            gentle.build(self.net.trainable_variables)
        before = tf.train.Checkpoint(optimizer=gentle)
        before.restore(self.manager.latest_checkpoint).expect_partial()
        gentle.learning_rate = self.options.polish
        for weight, value in zip(self.net.trainable_variables, self.average.values()):
            weight.assign(value)
        return self.run_epoch(self.options.epochs, self.make_step(gentle))


def main():
    trainer = Trainer(parsed())
    trainer.train()
    polished = trainer.polish()
    features, relevance = queries(80, 22)
    scores = trainer.net.predict(features, batch_size=40, verbose=0)
    held = float(tf.reduce_mean(losses(scores, tf.constant(relevance))))
    average = sum(np.abs(value).sum() for value in trainer.average.values())
    print(f"loss {trainer.loss.numpy():.4f} polished {polished:.4f} held out {held:.4f} "
          f"ndcg {ndcg(scores, relevance):.3f} average {average:.4f}")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
