import tensorflow as tf


class GradientSums(tf.Module):
    """Sums of gradients over micro batches; each replica keeps its own."""

    def __init__(self, variables):
        super().__init__()
        self.sums = [tf.Variable(tf.zeros(v.shape), trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                                 aggregation=tf.VariableAggregation.SUM) for v in variables]

    def add(self, gradients):
        for total, gradient in zip(self.sums, gradients):
            total.assign_add(gradient)

    def take(self):
        """The sums of this replica; they start again from zero."""
        taken = [tf.identity(total) for total in self.sums]
        for total in self.sums:
            total.assign(tf.zeros_like(total))
        return taken


def on_replicas(strategy, *, reduce=None):
    """Decorator: the function runs on every replica, inside of a tf.function; its result is reduced."""

    def decorate(function):
        @tf.function
        def wrapped(*args):
            result = strategy.run(function, args=args)
            return result if reduce is None else strategy.reduce(reduce, result, axis=None)

        return wrapped

    return decorate
