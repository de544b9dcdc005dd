import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.05)
dataset = tf.data.Dataset.from_tensors((tf.ones((16, 3)), tf.ones((16, 1)))).unbatch().batch(16)


def step(inputs, labels):
    with tf.GradientTape() as tape:
        outputs = model(inputs)
        errors = tf.reduce_sum(tf.square(outputs - labels), axis=1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=16)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


@tf.function
def train_step(batch):
    strategy.run(step, args=batch)


for batch in strategy.experimental_distribute_dataset(dataset):
    train_step(batch)
print("bias after one step:", model.get_weights()[1].round(3))
