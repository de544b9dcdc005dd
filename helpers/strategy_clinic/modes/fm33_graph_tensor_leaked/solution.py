import tensorflow as tf

first = []


@tf.function
def centred(batch, mean):
    return batch - mean


for batch in [tf.constant([1.0, 3.0]), tf.constant([5.0, 7.0])]:
    if not first:
        first.append(tf.reduce_mean(batch))
    result = centred(batch, first[0])
    print("minus the first mean:", result.numpy())
