"""python -m tagger.train"""
import keras
import tensorflow as tf

from .data import LONGEST, batches, corpus
from .evaluate import accuracy, evaluation_step
from .model import Tagger

BATCH, EPOCHS, FOLDER = 24, 4, "tagger_ckpt"


def training_step(strategy, model, optimizer):
    def replica(words, tags):
        mask = tf.cast(words > 0, tf.float32)
        # the parts of a batch differ in words: divide by those of the whole batch
        count = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(mask))
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, model(words, training=True))
            loss = tf.reduce_sum(mask * losses) / count
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def step(words, tags):
        return strategy.reduce("SUM", strategy.run(replica, args=(words, tags)), axis=None)

    return step


def main():
    keras.utils.set_random_seed(31)
    train, dev, test = corpus(240, seed=1), corpus(60, seed=2), corpus(70, seed=3)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Tagger()
        model(tf.zeros((1, LONGEST), tf.int32))
        optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
        optimizer.build(model.trainable_variables)
    step, dev_step = training_step(strategy, model, optimizer), evaluation_step(strategy, model)
    dev_data = strategy.experimental_distribute_dataset(batches(dev, BATCH))
    saver = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), FOLDER, max_to_keep=1)

    best, best_epoch = 0.0, None
    for epoch in range(1, EPOCHS + 1):
        data = strategy.experimental_distribute_dataset(batches(train, BATCH, seed=epoch))
        losses = [float(step(words, tags)) for words, tags in data]
        loss, score = sum(losses) / len(losses), accuracy(dev_step, dev_data)
        print(f"epoch {epoch}  loss {loss:.4f}  dev accuracy {score:.4f}")
        if score > best:
            best, best_epoch = score, epoch
            saver.save(checkpoint_number=epoch)

    # the test is run as those who get the checkpoint will run it: with a new model
    with strategy.scope():
        tester = Tagger()
        tester(tf.zeros((1, LONGEST), tf.int32))
        tf.train.Checkpoint(model=tester).restore(saver.latest_checkpoint).expect_partial()
    data = strategy.experimental_distribute_dataset(batches(test, BATCH))
    print(f"best epoch {best_epoch}: loss {loss:.4f} dev {best:.4f} "
          f"test {accuracy(evaluation_step(strategy, tester), data):.4f}")


if __name__ == "__main__":
    main()
