import threading

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    options = {"aggregation": tf.VariableAggregation.SUM, "trainable": False}
    correct = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, **options)


def report():
    printing = threading.Thread(target=lambda: print("correct:", correct.numpy()), daemon=True)
    printing.start()
    printing.join(5)
    if printing.is_alive():
        raise TimeoutError("the chief has waited for five seconds for the value")


tf.function(strategy.run)(lambda: correct.assign_add(8.0 / strategy.num_replicas_in_sync))
is_chief = not strategy.cluster_resolver or not strategy.cluster_resolver.task_id
if is_chief:
    report()
