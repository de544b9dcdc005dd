import numpy as np
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
    generator = np.random.default_rng(1)
    while epoch < epochs:
        order = generator.permutation(8).astype("float32")
        examples = tf.data.Dataset.from_tensor_slices(order)
        for batch in strategy.experimental_distribute_dataset(examples.batch(8)):
            orders.append(strategy.gather(batch, axis=0).numpy().tolist())
            strategy.run(step, args=(batch,))
        epoch.assign_add(1)
        checkpoint.save("saved/state")


start(3)
start(6)
print("different orders in six epochs:", len({*map(tuple, orders)}))
