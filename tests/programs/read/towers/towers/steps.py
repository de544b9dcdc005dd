import tensorflow as tf

TEMPERATURE = 0.2


class Steps:
    def __init__(self, strategy, model, optimizer, batch):
        self.strategy, self.model, self.optimizer, self.batch = strategy, model, optimizer, batch
        with strategy.scope():
            self.hits = tf.keras.metrics.Mean()

    def losses(self, query, item):
        """Every item of the whole batch is a negative example for every query of this replica."""
        context = tf.distribute.get_replica_context()
        every = context.all_gather(item, axis=0)
        own = tf.reduce_sum(query * item, axis=-1) / TEMPERATURE
        logits = tf.matmul(query, every, transpose_b=True) / TEMPERATURE
        return tf.reduce_logsumexp(logits, axis=-1) - own

    def train_step(self, user, history, item):
        with tf.GradientTape() as tape:
            losses = self.losses(*self.model((user, history, item)))
            loss = tf.reduce_sum(losses) / self.batch
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def test_step(self, user, history, item, every):
        query = self.model.query((user, history))
        scores = tf.matmul(query, self.model.item(every), transpose_b=True)
        self.hits.update_state(tf.math.in_top_k(item, scores, 5))

    @tf.function
    def train(self, batch):
        losses = self.strategy.run(self.train_step, args=batch)
        return self.strategy.reduce("SUM", losses, axis=None)

    @tf.function
    def test(self, batch, every):
        self.strategy.run(self.test_step, args=(*batch, every))
