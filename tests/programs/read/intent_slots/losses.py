"""Losses as this replica's part of the loss of the global batch."""
import tensorflow as tf

xent = tf.nn.sparse_softmax_cross_entropy_with_logits


def over_replicas(value):
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


def intent_loss(labels, scores, batch):
    return tf.reduce_sum(xent(labels, scores)) / batch


def slot_loss(labels, scores, keep):
    """Mean over all words of the global batch that are not padding."""
    words = over_replicas(tf.reduce_sum(keep))
    return tf.reduce_sum(xent(labels, scores) * keep) / words


def weight_loss(variables, cost):
    squares = tf.add_n([tf.nn.l2_loss(v.value) for v in variables if len(v.shape) == 2])
    return tf.nn.scale_regularization_loss(cost * squares)
