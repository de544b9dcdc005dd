import tensorflow as tf


class GraphConvolution(tf.Module):
    def __init__(self, inputs, outputs, seed, name=None):
        super().__init__(name=name)
        scale = (2.0 / inputs) ** 0.5
        start = scale * tf.random.stateless_normal((2, inputs, outputs), seed=(seed, 7))
        self.own = tf.Variable(start[0], name="own")
        self.neighbours = tf.Variable(start[1], name="neighbours")
        self.bias = tf.Variable(tf.zeros(outputs), name="bias")

    def __call__(self, x, a):
        return x @ self.own + a @ (x @ self.neighbours) + self.bias


class NodeClassifier(tf.Module):
    def __init__(self, features, width, classes, depth=2):
        super().__init__(name="node_classifier")
        sizes = [features] + [width] * depth
        self.hidden = [GraphConvolution(n, m, seed) for seed, (n, m) in enumerate(zip(sizes, sizes[1:]))]
        self.out = GraphConvolution(width, classes, depth)

    def __call__(self, x, a):
        for layer in self.hidden:
            x = tf.nn.relu(layer(x, a))
        return self.out(x, a)
