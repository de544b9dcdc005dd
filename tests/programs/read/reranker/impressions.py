"""Lists of candidates shown to users, with graded feedback."""
import numpy as np
import tensorflow as tf

LIST, FEATURES = 6, 9


def draw(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, LIST, FEATURES)).astype("float32")
    context = x.mean(axis=1, keepdims=True)
    appeal = 1.2 * x[..., 0] - 0.8 * x[..., 1] * context[..., 2] + 0.6 * np.maximum(x[..., 3], 0) - x[..., 0] * (context[..., 0] > 0)
    grade = np.clip(np.round(appeal + 0.3 * rng.normal(size=appeal.shape) + 0.5), 0, 3)
    grade[grade.max(axis=1) == 0, 0] = 1
    return x, grade.astype("float32")


def training_input(x, grade, global_batch, seed):
    def per_pipeline(context):
        size = context.get_per_replica_batch_size(global_batch)
        return (tf.data.Dataset.from_tensor_slices((x, grade))
                .shard(context.num_input_pipelines, context.input_pipeline_id)
                .shuffle(len(x), seed=seed).repeat().batch(size, drop_remainder=True))
    return per_pipeline


def evaluation_input(x, grade, batch):
    return tf.data.Dataset.from_tensor_slices((x, grade)).batch(batch)
