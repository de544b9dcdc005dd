"""Losses and errors. Hidden joints do not count."""
import tensorflow as tf


def on_all_devices(value):
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


def visible_mean(values, visible):
    """Share of this replica in the mean over the visible joints of the whole batch."""
    return tf.math.divide_no_nan(tf.reduce_sum(values * visible), on_all_devices(tf.reduce_sum(visible)))


def squared_distance(truth, found):
    return tf.reduce_sum(tf.square(truth - found), axis=-1)


def objective(truth, visible, found, spread, smooth_share):
    return visible_mean(squared_distance(truth, found) + smooth_share * spread, visible)


def error_sums(truth, visible, found):
    """Sum of the distances and number of the visible joints, to be added up over devices and batches."""
    distance = tf.sqrt(squared_distance(truth, found) + 1e-12)
    return tf.reduce_sum(distance * visible), tf.reduce_sum(visible)
