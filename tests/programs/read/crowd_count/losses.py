"""Terms of the training loss. Every term maps (density, predicted density) to one value for each picture."""
from functools import partial

import tensorflow as tf

PER_PICTURE = (1, 2, 3)


def density_term(truth, predicted):
    return tf.reduce_sum(tf.square(truth - predicted), axis=PER_PICTURE)


def count_term(truth, predicted):
    wanted = tf.reduce_sum(truth, axis=PER_PICTURE)
    found = tf.reduce_sum(predicted, axis=PER_PICTURE)
    return tf.square(wanted - found)


TERMS = {"density": (1.0, density_term), "count": (0.05, count_term)}


def over_batch(values, global_batch):
    return tf.reduce_sum(values) / tf.cast(global_batch, values.dtype)


def total(truth, predicted, reduce):
    return tf.add_n([weight * reduce(term(truth, predicted)) for weight, term in TERMS.values()])


def make_loss(global_batch):
    """The loss of one replica; the sum over the replicas is the loss of the batch."""
    return partial(total, reduce=partial(over_batch, global_batch=global_batch))
