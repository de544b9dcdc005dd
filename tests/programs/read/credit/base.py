"""What trainers of tables have in common; a subclass says what its model and its loss are."""
import abc
import json
from pathlib import Path
from types import SimpleNamespace

import keras
import tensorflow as tf


def read_config(path):
    return SimpleNamespace(**json.loads(Path(path).read_text()))


class TableTrainer(abc.ABC):
    def __init__(self, config, folder="kept"):
        self.config = config
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = self.make_model()
            self.optimizer = keras.optimizers.SGD(config.rate, momentum=0.9)
            self.optimizer.build(self.model.variables)
        self.state = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)
        self.folder = folder
        self.step = self.make_step()

    @abc.abstractmethod
    def make_model(self): ...

    @abc.abstractmethod
    def losses(self, features, labels): ...

    @property
    def global_batch(self):
        return self.config.batch

    @property
    def weights(self):
        return self.model.trainable_variables

    def distribute(self, table):
        def pipeline(context):
            rows = context.get_per_replica_batch_size(self.global_batch)
            data = tf.data.Dataset.from_tensor_slices(table)
            return data.shard(context.num_input_pipelines, context.input_pipeline_id).batch(
                rows, drop_remainder=True)

        return self.strategy.distribute_datasets_from_function(pipeline)

    def learn(self, features, labels):
        with tf.GradientTape() as tape:
            losses = self.losses(features, labels)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.global_batch)
        gradients = tape.gradient(loss, self.weights)
        self.optimizer.apply_gradients(zip(gradients, self.weights))
        return loss

    def make_step(self):
        """A step for the weights that are open now."""

        @tf.function
        def step(features, labels):
            return self.strategy.run(self.learn, args=(features, labels))

        return step

    def total(self, shares):
        return float(self.strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None))

    def fit(self, table, epochs):
        for _ in range(epochs):
            losses = [self.total(self.step(*batch)) for batch in self.distribute(table)]
            print(f"  loss {sum(losses) / len(losses):.4f}")
        return sum(losses) / len(losses)

    def best_rate(self, table, rates):
        """Tries rates for one epoch each, all from the same start, to which it returns at last."""
        start = self.state.save(f"{self.folder}/start")
        found = {}
        for rate in rates:
            self.state.restore(start)
            self.optimizer.learning_rate.assign(rate)
            found[rate] = self.fit(table, 1)
        self.state.restore(start)
        self.optimizer.learning_rate.assign(min(found, key=found.get))
        return found
