"""Wide and deep network on the customer table."""
import keras
import tensorflow as tf

import tabular


def build(width=32, depth=2, seed=7):
    inputs, embedded, wide = {}, [], []
    for i, (name, size) in enumerate(tabular.CATEGORICAL.items()):
        inputs[name] = keras.Input((), dtype="int32", name=name)
        init = keras.initializers.RandomUniform(-0.1, 0.1, seed=seed + i)
        embedded.append(keras.layers.Embedding(size, 4, embeddings_initializer=init, name=f"deep_{name}")(inputs[name]))
        wide.append(keras.layers.Embedding(size, 1, embeddings_initializer="zeros", name=f"wide_{name}")(inputs[name]))
    inputs["numeric"] = keras.Input((len(tabular.NUMERIC),), name="numeric")
    hidden = keras.layers.Concatenate()(embedded + [inputs["numeric"]])
    for level in range(depth):
        init = keras.initializers.GlorotUniform(seed=seed + 100 + level)
        hidden = keras.layers.Dense(width, activation="gelu", kernel_initializer=init, name=f"hidden_{level}")(hidden)
    head = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 200), name="head")(hidden)
    logit = keras.layers.Add()([head] + wide)
    return keras.Model(inputs, keras.layers.Reshape(())(logit), name="wide_and_deep")


class Objective:
    """Weighted log loss; `total` is what a step minimises, `each` what validation adds up."""

    def __init__(self, global_batch, positive_weight=1.5):
        self.global_batch = global_batch
        self.positive_weight = positive_weight

    def each(self, target, logit):
        return tf.nn.weighted_cross_entropy_with_logits(target, logit, self.positive_weight)

    def total(self, target, logit):
        return self.reduce(self.each(target, logit))

    def reduce(self, values):
        return tf.reduce_sum(values) / self.global_batch
