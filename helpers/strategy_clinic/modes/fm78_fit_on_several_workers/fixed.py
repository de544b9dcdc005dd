import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    optimizer = tf.keras.optimizers.SGD(0.125)
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)  # fixed: before the first step
examples = [[1.0]] * 4 + [[2.0]] * 4, [[0.0]] * 8
dataset = tf.data.Dataset.from_tensor_slices(examples).batch(8)


def step(inputs, labels):  # fixed: what each worker does with its part of a batch
    with tf.GradientTape() as tape:  # fixed
        errors = tf.square(model(inputs, training=True) - labels)[:, 0]  # fixed
        loss = tf.nn.compute_average_loss(errors, global_batch_size=8)  # fixed
    gradients = tape.gradient(loss, model.trainable_variables)  # fixed
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # fixed


train = tf.function(strategy.run)  # fixed
for batch in strategy.experimental_distribute_dataset(dataset):  # fixed
    train(step, args=batch)  # fixed
print("weight after one step:", float(model.get_weights()[0][0, 0]))
