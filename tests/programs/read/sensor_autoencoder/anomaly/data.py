"""Windows of sensor readings. Healthy pumps move on a curve in the space of the channels, broken ones leave it."""
import numpy as np
import tensorflow as tf


def readings(count: int, channels: int, seed: int, broken: float = 0.0):
    rng = np.random.default_rng(seed)
    load, phase = rng.uniform(0.3, 1.0, size=(count, 1)), rng.uniform(0, 2 * np.pi, size=(count, 1))
    frequency = np.arange(1, channels + 1)[None] / 3.0
    values = load * np.sin(phase + frequency) + 0.4 * load ** 2 + rng.normal(0, 0.06, size=(count, channels))
    ill = rng.random(count) < broken
    values[ill] += rng.normal(0, 0.5, size=(ill.sum(), channels))
    return values.astype("float32"), ill


class Windows:

    def __init__(self, config):
        self.config = config
        self.healthy, _ = readings(240, config.channels, config.seed)
        self.check, _ = readings(70, config.channels, config.seed + 1)
        self.mixed, self.ill = readings(90, config.channels, config.seed + 2, broken=0.3)

    def training_fn(self, epoch: int):
        """For ``distribute_datasets_from_function``: the batches of the replicas of one input pipeline."""
        def make(context: tf.distribute.InputContext):
            per_replica = context.get_per_replica_batch_size(self.config.global_batch)
            rng = np.random.default_rng((self.config.seed, epoch))
            rows = self.healthy[rng.permutation(len(self.healthy))]
            data = tf.data.Dataset.from_tensor_slices(rows).shard(context.num_input_pipelines, context.input_pipeline_id)
            return data.batch(per_replica, drop_remainder=True).prefetch(1)
        return make

    def checking(self):
        return tf.data.Dataset.from_tensor_slices(self.check).batch(self.config.global_batch)
