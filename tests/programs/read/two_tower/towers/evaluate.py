import tensorflow as tf


def make_evaluator(strategy, model, articles, k):
    catalogue = tf.range(articles)

    def hits(history, target):
        scores = tf.matmul(model.users(history), model.items(catalogue), transpose_b=True)
        found = tf.cast(tf.math.in_top_k(target, scores, k), tf.float32)
        own = tf.gather(scores, target, batch_dims=1)
        return tf.reduce_sum(found), tf.reduce_sum(own), tf.cast(tf.size(target), tf.float32)

    @tf.function
    def step(history, target):
        return tuple(strategy.reduce("SUM", part, axis=None) for part in strategy.run(hits, args=(history, target)))

    def evaluate(data):
        found = score = rows = 0.0
        for history, target in strategy.experimental_distribute_dataset(data):
            f, s, n = step(history, target)
            found, score, rows = found + float(f), score + float(s), rows + float(n)
        return found / rows, score / rows

    return evaluate
