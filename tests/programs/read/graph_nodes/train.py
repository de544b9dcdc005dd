"""Node classification on padded graphs, with losses for the nodes that exist only."""
import keras
import tensorflow as tf

from graphs import FEATURES, dataset
from network import NodeClassifier

BATCH, EPOCHS = 12, 5

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = NodeClassifier(FEATURES, 16, classes=2)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

train = strategy.experimental_distribute_dataset(dataset(96, BATCH, seed=1))
test = strategy.experimental_distribute_dataset(dataset(27, BATCH, seed=2))


def node_losses(graphs):
    logits = model(graphs["x"], graphs["a"])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(graphs["y"], logits)
    return logits, losses * graphs["mask"]


def learn(graphs):
    context = tf.distribute.get_replica_context()
    nodes = context.all_reduce("SUM", tf.reduce_sum(graphs["mask"]))
    with tf.GradientTape() as tape:
        _, losses = node_losses(graphs)
        loss = tf.reduce_sum(losses) / nodes
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def check(graphs):
    """The share of right nodes in each graph: a large graph counts no more than a small one."""
    logits, _ = node_losses(graphs)
    right = tf.cast(tf.argmax(logits, -1, tf.int32) == graphs["y"], tf.float32) * graphs["mask"]
    shares = tf.reduce_sum(right, 1) / tf.reduce_sum(graphs["mask"], 1)
    return tf.reduce_sum(shares), tf.cast(tf.size(shares), tf.float32)


@tf.function
def train_step(graphs):
    return strategy.reduce("SUM", strategy.run(learn, args=(graphs,)), axis=None)


@tf.function(reduce_retracing=True)
def test_step(graphs):
    right, count = strategy.run(check, args=(graphs,))
    return strategy.reduce("SUM", right, axis=None), strategy.reduce("SUM", count, axis=None)


def accuracy():
    right = graphs_seen = 0.0
    for graphs in test:
        share, count = test_step(graphs)
        right += float(share)
        graphs_seen += float(count)
    return right / graphs_seen


for epoch in range(EPOCHS):
    losses = [float(train_step(graphs)) for graphs in train]
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, accuracy of the graphs {accuracy():.4f}")
norm = float(tf.linalg.global_norm([tf.convert_to_tensor(v) for v in model.trainable_variables]))
print(f"end: loss {losses[-1]:.5f} accuracy {accuracy():.5f} norm {norm:.4f}")
