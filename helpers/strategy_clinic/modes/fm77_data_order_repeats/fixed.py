import tensorflow as tf

strategy = tf.distribute.get_strategy()
orders = []


def start(epochs):
    with strategy.scope():
        epoch = tf.Variable(0, dtype=tf.int64)
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    checkpoint = tf.train.Checkpoint(epoch=epoch, total=total)
    checkpoint.restore(tf.train.latest_checkpoint("saved"))
    step = tf.function(lambda part: total.assign_add(tf.reduce_sum(part)))
    while epoch < epochs:
        examples = tf.data.Dataset.range(8, output_type=tf.float32).shuffle(8, seed=epoch)  # fixed
        for batch in strategy.experimental_distribute_dataset(examples.batch(8)):
            orders.append(strategy.gather(batch, axis=0).numpy().tolist())
            strategy.run(step, args=(batch,))
        epoch.assign_add(1)
        checkpoint.save("saved/state")


start(2)  # the first run ends after two epochs
start(4)  # the second run continues with the third
print("epoch 3 has the order of epoch:", orders.index(orders[2]) + 1)
