"""SimCLR: the two views of a curve belong together, all other curves of the batch do not."""
import keras
import tensorflow as tf

from .data import curves, pairs
from .networks import make_encoder, make_projector

TEMPERATURE = 0.3


def info_nce(one, other):
    """The loss of each row of `one`, with the rows of all replicas to choose from."""
    context = tf.distribute.get_replica_context()
    one, other = tf.math.l2_normalize(one, -1), tf.math.l2_normalize(other, -1)
    candidates = context.all_gather(other, axis=0)
    logits = tf.matmul(one, candidates, transpose_b=True) / TEMPERATURE
    rows = tf.shape(one)[0]
    own = context.replica_id_in_sync_group * rows + tf.range(rows)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(own, logits)


def pretrain(strategy, folder, rows=256, batch=32, epochs=4, rate=0.1):
    with strategy.scope():
        encoder, projector = make_encoder(), make_projector()
        weights = encoder.trainable_variables + projector.trainable_variables
        optimizer = keras.optimizers.SGD(rate, momentum=0.9)
        optimizer.build(weights)

    def learn(first, second):
        with tf.GradientTape() as tape:
            one, other = (projector(encoder(view, training=True)) for view in (first, second))
            losses = (info_nce(one, other) + info_nce(other, one)) / 2
            loss = tf.nn.compute_average_loss(losses, global_batch_size=batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def step(first, second):
        return strategy.reduce("SUM", strategy.run(learn, args=(first, second)), axis=None)

    x, _ = curves(rows, seed=1)
    for epoch in range(epochs):
        views = strategy.experimental_distribute_dataset(pairs(x, batch, epoch))
        losses = [float(step(*both)) for both in views]
        print(f"pretraining {epoch}: loss {sum(losses) / len(losses):.4f}")
    tf.train.Checkpoint(encoder=encoder, projector=projector).save(f"{folder}/contrastive/ckpt")
    return losses[-1]
