"""Learns to find the smell that belongs to a leaf: all other smells of the batch are wrong answers (InfoNCE)."""
import keras
import numpy as np
import tensorflow as tf
from config import Config


def herbs(config):
    """Leaves and smells of the same kinds, sorted by the first of the things that they have in common."""
    rng = np.random.default_rng(config.seed)
    kinds = rng.normal(size=(config.herbs, 4))
    kinds = kinds[np.argsort(kinds[:, 0])]
    leaf = np.tanh(kinds @ rng.normal(size=(4, config.leaf))) + 0.1 * rng.normal(size=(config.herbs, config.leaf))
    smell = np.tanh(kinds @ rng.normal(size=(4, config.smell))) + 0.1 * rng.normal(size=(config.herbs, config.smell))
    return leaf.astype("float32"), smell.astype("float32")


class TwoTowers(keras.Model):
    """One layer for each kind of input, and one trunk for both."""

    def __init__(self, config):
        super().__init__()
        start = lambda number: keras.initializers.GlorotUniform(seed=config.seed + number)  # noqa: E731
        self.leaf = keras.layers.Dense(config.units, "tanh", kernel_initializer=start(1))
        self.smell = keras.layers.Dense(config.units, "tanh", kernel_initializer=start(2))
        layers = [keras.Input((config.units,)), keras.layers.Dense(config.width, kernel_initializer=start(3))]
        self.trunk = keras.Sequential(layers)
        self.smell_trunk = self.trunk

    def call(self, pair):
        leaf, smell = pair
        left, right = self.trunk(self.leaf(leaf)), self.smell_trunk(self.smell(smell))
        return tf.math.l2_normalize(left, -1), tf.math.l2_normalize(right, -1)


class Trainer:
    def __init__(self, config):
        self.config = config
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = self.make_model()
            self.optimizer = keras.optimizers.SGD(config.rate, momentum=0.8)
            self.optimizer.build(self.model.trainable_variables)

    def make_model(self):
        model = TwoTowers(self.config)
        model((tf.zeros((1, self.config.leaf)), tf.zeros((1, self.config.smell))))
        return model

    def losses(self, left, right):
        """The loss of each leaf of this replica; the wrong answers are of the whole batch."""
        context = tf.distribute.get_replica_context()
        answers = context.all_gather(right, axis=0)
        first = context.replica_id_in_sync_group * tf.shape(left)[0]
        logits = left @ tf.transpose(answers) / self.config.temperature
        return tf.nn.sparse_softmax_cross_entropy_with_logits(first + tf.range(tf.shape(left)[0]), logits)

    def clipped(self, gradients):
        """The gradient of the whole batch, which the optimizer gets from each replica in equal shares."""
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients, norm = tf.clip_by_global_norm(gradients, self.config.limit)
        return [gradient / self.strategy.num_replicas_in_sync for gradient in gradients], norm

    def learn(self, leaf, smell):
        with tf.GradientTape() as tape:
            losses = self.losses(*self.model((leaf, smell), training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.config.batch)
        gradients, norm = self.clipped(tape.gradient(loss, self.model.trainable_variables))
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss, norm

    @tf.function
    def step(self, batch):
        loss, norm = self.strategy.run(self.learn, args=batch)
        return self.strategy.reduce("SUM", loss, axis=None), self.strategy.reduce("MEAN", norm, axis=None)

    def fit(self, data):
        dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(self.config.herbs, seed=self.config.seed)
        batches = self.strategy.experimental_distribute_dataset(dataset.batch(self.config.batch, drop_remainder=True))
        for epoch in range(self.config.epochs):
            results = [[float(number) for number in self.step(batch)] for batch in batches]
            loss, norm = np.mean(results, 0)
            print(f"{epoch}: loss {loss:.4f}, norm {norm:.4f}")
        return loss


def recall(model, data):
    """How often the right smell is among the first three."""
    left, right = model(data)
    scores = left.numpy() @ right.numpy().T
    ranks = (scores > np.diag(scores)[:, None]).sum(1)
    return np.mean(ranks < 3), np.mean(1 / (1 + ranks)), np.mean(np.diag(scores))


def main():
    config = Config()
    data = herbs(config)
    trainer = Trainer(config)
    loss = trainer.fit(data)
    trainer.model.save_weights(config.weights)

    fresh = trainer.make_model()
    fresh.load_weights(config.weights)
    hits, rank, closeness = recall(fresh, data)
    trunk = fresh.trunk.layers[-1].kernel
    print(f"loss {loss:.4f}: recall@3 {hits:.3f}, mean reciprocal rank {rank:.4f}, closeness {closeness:.4f}, "
          f"trunk {float(tf.norm(trunk)):.4f}")


if __name__ == "__main__":
    main()
