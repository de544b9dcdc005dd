import numpy as np
import tensorflow as tf

HISTORY = 6


class Interactions:
    """Users read articles of a few topics; each row is (history, next article)."""

    def __init__(self, articles=80, topics=8, rows=384, held_out=90, seed=3):
        rng = np.random.default_rng(seed)
        self.articles, self.topics = articles, topics
        self.topic_of = rng.integers(0, topics, articles).astype("int32")
        by_topic = [np.flatnonzero(self.topic_of == t) for t in range(topics)]
        by_topic = [b if len(b) else np.arange(articles) for b in by_topic]

        def draw(n):
            history, target = np.zeros((n, HISTORY), "int32"), np.zeros(n, "int32")
            for i in range(n):
                likes = rng.choice(topics, 2, replace=False)
                for j in range(HISTORY):
                    history[i, j] = rng.choice(by_topic[likes[j % 2]])
                target[i] = rng.choice(by_topic[likes[rng.integers(2)]])
            return history, target

        self.train, self.test = draw(rows), draw(held_out)
        counts = np.bincount(self.train[1], minlength=articles) + 1.0
        self.log_frequency = np.log(counts / counts.sum()).astype("float32")

    def training(self, global_batch, seed):
        """Input function for `distribute_datasets_from_function`; goes round for ever."""
        history, target = self.train

        def make(context):
            ds = tf.data.Dataset.from_tensor_slices((history, target))
            ds = ds.shuffle(len(target), seed=seed, reshuffle_each_iteration=True).repeat()
            ds = ds.shard(context.num_input_pipelines, context.input_pipeline_id)
            size = context.get_per_replica_batch_size(global_batch)
            return ds.batch(size, drop_remainder=True).prefetch(2)

        return make

    def testing(self, global_batch):
        return tf.data.Dataset.from_tensor_slices(self.test).batch(global_batch)
