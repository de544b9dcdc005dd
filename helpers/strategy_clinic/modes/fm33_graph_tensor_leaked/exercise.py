import tensorflow as tf

first = []


@tf.function
def centred(batch):
    if not first:
        first.append(tf.reduce_mean(batch))
    return batch - first[0]


for batch in [tf.constant([1.0, 3.0]), tf.constant([5.0, 7.0])]:
    result = centred(batch)
    print("minus the first mean:", result.numpy())
