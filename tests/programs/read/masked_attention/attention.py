import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)
strategy = tf.distribute.MirroredStrategy()
rng = np.random.default_rng(0)
x = np.zeros((128, 12), 'int64')
for row in x:
    k = rng.integers(4, 12)
    row[:k] = rng.integers(3, 40, k)
y = np.where(x > 0, (x * 7) % 37 + 3, 0)


class Encoder(tf.keras.Model):
    def __init__(self):
      super().__init__()
      self.embedding = tf.keras.layers.Embedding(40, 16, mask_zero=True)
      self.mha = tf.keras.layers.MultiHeadAttention(num_heads=2, key_dim=16)
      self.final_layer = tf.keras.layers.Dense(40)

    def call(self, x):
      x = self.embedding(x) * 4.
      return self.final_layer(x + self.mha(query=x, value=x, key=x))


def masked_loss(label, pred):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction='none')(label, pred)
    return tf.reduce_sum(loss * tf.cast(label != 0, loss.dtype), axis=-1) / 12.


with strategy.scope():
    model = Encoder()
    model.compile(loss=masked_loss, optimizer=tf.keras.optimizers.Adam(1e-3, beta_2=0.98, epsilon=1e-9))
model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=2)
print(model.evaluate(x, y, batch_size=32, verbose=0))
