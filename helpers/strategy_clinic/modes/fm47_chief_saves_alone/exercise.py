import threading

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    options = {"aggregation": tf.VariableAggregation.SUM, "trainable": False}
    seen = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, **options)
checkpoint = tf.train.Checkpoint(seen=seen)


def save(path):
    writing = threading.Thread(target=checkpoint.write, args=(path,), daemon=True)
    writing.start()
    writing.join(5)
    if writing.is_alive():
        raise TimeoutError("the chief has waited for five seconds in checkpoint.write")
    print("examples:", tf.train.load_variable(path, "seen/.ATTRIBUTES/VARIABLE_VALUE"))


tf.function(strategy.run)(lambda: seen.assign_add(8.0 / strategy.num_replicas_in_sync))
is_chief = not strategy.cluster_resolver or not strategy.cluster_resolver.task_id
if is_chief:
    save("chief")
