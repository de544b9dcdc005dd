import time

import tensorflow as tf

data = tf.data.Dataset.range(9).prefetch(tf.data.AUTOTUNE)


def seconds_of_deletion():
    iterator = iter(data)
    next(iterator)
    time.sleep(0.4)  # as a step of training
    began = time.perf_counter()
    del iterator
    return time.perf_counter() - began


waits = any(seconds_of_deletion() > 0.1 for _ in range(60))
print(f"a deletion of 60 waits: got {waits}, expected False")
