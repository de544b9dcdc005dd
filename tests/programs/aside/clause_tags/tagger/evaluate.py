import tensorflow as tf


def evaluation_step(strategy, model):
    def replica(words, tags):
        mask = tf.cast(words > 0, tf.float32)
        hits = tf.cast(tf.argmax(model(words), -1, tf.int32) == tags, tf.float32)
        return tf.reduce_sum(mask * hits), tf.reduce_sum(mask)

    @tf.function
    def step(words, tags):
        hits, count = strategy.run(replica, args=(words, tags))
        return strategy.reduce("SUM", hits, axis=None), strategy.reduce("SUM", count, axis=None)

    return step


def accuracy(step, data):
    hits = count = 0.0
    for words, tags in data:
        more, of = step(words, tags)
        hits, count = hits + float(more), count + float(of)
    return hits / count
