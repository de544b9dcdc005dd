import tensorflow as tf


class Momentum(tf.Module):
    """Gradient descent with momentum. `step` is called in each replica with the gradients of its own part."""

    def __init__(self, variables, rate, decay=0.9):
        super().__init__(name="momentum")
        self.variables_to_train = tuple(variables)
        self.rate = tf.Variable(rate, trainable=False, name="rate")
        self.decay = decay
        self.slots = [tf.Variable(tf.zeros_like(v), trainable=False, name="slot") for v in self.variables_to_train]

    def step(self, gradients):
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        for gradient, slot, variable in zip(gradients, self.slots, self.variables_to_train):
            slot.assign(self.decay * slot - self.rate * gradient)
            variable.assign_add(slot)
