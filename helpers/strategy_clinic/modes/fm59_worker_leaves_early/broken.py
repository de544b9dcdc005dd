import tensorflow as tf

limit = tf.distribute.experimental.CommunicationOptions(timeout_seconds=5)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=limit)
with strategy.scope():
    weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
dataset = tf.data.Dataset.from_tensor_slices([1.0, 3.0]).batch(2).repeat()
batches = iter(strategy.experimental_distribute_dataset(dataset))


def step(inputs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(weight * inputs - 2.0 * inputs))
    weight.assign_sub(0.05 * tape.gradient(loss, weight))
    return loss


train = tf.function(strategy.run)
steps = 0
while True:
    steps += 1
    losses = train(step, args=(next(batches),))
    if strategy.experimental_local_results(losses)[0] < 0.1:  # wrong: the loss of this worker
        break
print("steps:", steps)
