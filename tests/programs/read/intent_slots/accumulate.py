"""Gradients that are collected over several steps."""
import tensorflow as tf


class Accumulator:
    """One sum for each variable and replica; to be created in the scope of the strategy."""

    def __init__(self, variables):
        self.sums = [
            tf.Variable(tf.zeros(v.shape), trainable=False,
                        synchronization=tf.VariableSynchronization.ON_READ,
                        aggregation=tf.VariableAggregation.SUM)
            for v in variables
        ]

    def add(self, gradients):
        for total, gradient in zip(self.sums, gradients):
            total.assign_add(tf.convert_to_tensor(gradient))

    def take(self):
        taken = [tf.identity(total.read_value()) for total in self.sums]
        for total in self.sums:
            total.assign(tf.zeros_like(total))
        return taken
