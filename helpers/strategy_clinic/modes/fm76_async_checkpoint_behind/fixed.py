import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    step = tf.Variable(0)
    table = tf.Variable(tf.zeros((5_000_000,)))
checkpoint = tf.train.Checkpoint(step=step, table=table)
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)
options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
for number in (1, 2, 3):
    step.assign(number)
    manager.save(options=options)
step.assign(-1)
manager.sync()  # fixed: waits until the last one is written
checkpoint.restore(manager.latest_checkpoint)  # fixed: now it is the last one
print("step after restoring:", int(step.numpy()))
