import numpy as np
import tensorflow as tf

from .config import Config


def clouds(cfg: Config, count, seed):
    """Poles, walls, cars and bushes, turned by any angle."""
    rng = np.random.default_rng(seed)
    kind = np.sort(rng.integers(0, cfg.classes, count))
    size = np.array([[0.1, 0.1, 1.5], [1.5, 0.1, 1.0], [1.0, 0.6, 0.5], [0.5, 0.5, 0.5]])[kind]
    cloud = rng.uniform(-1, 1, (count, cfg.points, 3)) * size[:, None]
    angle = rng.uniform(0, np.pi, count)
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], -1).reshape(-1, 2, 2)
    cloud[..., :2] = np.einsum("nij,npj->npi", turn, cloud[..., :2])
    cloud += rng.normal(0, 0.15, cloud.shape)
    return cloud.astype("float32"), kind.astype("int32")


class Stream:
    """The batches of a training from step `begin` on, in the order of each epoch."""

    def __init__(self, cfg: Config, table, begin=0):
        self.cfg, self.begin = cfg, begin
        self.cloud, self.kind = (tf.constant(part) for part in table)

    def rows(self, epoch):
        seed = tf.stack([self.cfg.seed, tf.cast(epoch, tf.int32)])
        order = tf.random.experimental.stateless_shuffle(tf.range(self.cfg.clouds), seed=seed)
        return tf.data.Dataset.from_tensor_slices(order)

    def dataset(self, context):
        size = context.get_per_replica_batch_size(self.cfg.batch)
        data = tf.data.Dataset.range(self.cfg.epochs).flat_map(self.rows)
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
        data = data.skip(self.begin * self.cfg.batch).batch(size, drop_remainder=True)
        return data.map(lambda rows: (tf.gather(self.cloud, rows), tf.gather(self.kind, rows)))
