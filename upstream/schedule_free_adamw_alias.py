import math

import keras
import tensorflow as tf

rate, beta_1, beta_2, epsilon = 0.1, 0.9, 0.999, 1e-8
variable = keras.Variable(1.0)
optimizer = keras.optimizers.ScheduleFreeAdamW(rate, weight_decay=None)
z = x = y = 1.0  # arXiv:2405.15682: the base sequence, its average, where gradients are taken
v = 0.0
for step in range(1, 5):
    optimizer.apply([tf.constant(2.0 * float(variable.numpy()))], [variable])
    gradient = 2.0 * y
    v = beta_2 * v + (1 - beta_2) * gradient**2
    z -= rate * gradient / (math.sqrt(v / (1 - beta_2**step)) + epsilon)
    x += (z - x) / step
    y = (1 - beta_1) * z + beta_1 * x
    got = round(float(variable.numpy()), 4)
    print(f"x * x, x after step {step}: got {got}, expected {round(float(y), 4)}")
