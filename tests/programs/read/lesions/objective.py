import tensorflow as tf

SPACE = (1, 2, 3)


def pooled(*sums):
    """Adds up what every replica has found in its part of the batch."""
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, list(sums))


def soft_dice(masks, probability):
    hit, marked, said = pooled(
        tf.reduce_sum(masks * probability), tf.reduce_sum(masks), tf.reduce_sum(probability)
    )
    return 1.0 - (2.0 * hit + 1.0) / (marked + said + 1.0)


def pixelwise(masks, logits, batch):
    each = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(masks, logits), SPACE)
    return tf.nn.compute_average_loss(each, global_batch_size=batch)


def bounded(gradients, limit):
    context = tf.distribute.get_replica_context()
    summed = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    kept, _ = tf.clip_by_global_norm(summed, limit)
    return [each / context.num_replicas_in_sync for each in kept]


def overlap(masks, logits):
    said = tf.cast(logits > 0, tf.float32)
    both = tf.reduce_sum(masks * said)
    return tf.stack([both, tf.reduce_sum(masks) + tf.reduce_sum(said) - both])
