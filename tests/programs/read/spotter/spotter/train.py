"""Spots words: python -m spotter.train. Goes on from the last epoch that was complete."""
import keras
import tensorflow as tf

from spotter.average import Average
from spotter.network import Spotter
from spotter.settings import Settings
from spotter.sound import clips, epoch_of


class Run:
    def __init__(self, settings):
        self.settings = settings
        self.strategy = tf.distribute.MirroredStrategy()
        once = tf.VariableAggregation.ONLY_FIRST_REPLICA
        with self.strategy.scope():
            self.model = Spotter(settings)
            self.model(tf.zeros((1, settings.frames, settings.bands)))
            self.optimizer = keras.optimizers.SGD(settings.rate, momentum=0.8)
            self.optimizer.build(self.model.trainable_variables)
            updates = tf.Variable(0, trainable=False, aggregation=once)
            self.average = Average(self.model.trainable_variables, settings.decay, updates)
            self.epoch = tf.Variable(0, trainable=False)
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, average=self.average, epoch=self.epoch
        )
        self.manager = tf.train.CheckpointManager(self.checkpoint, settings.folder, max_to_keep=3)

    def step(self, sound, word):
        with tf.GradientTape() as tape:
            logits = self.model(sound, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(word, logits)
            loss = tf.reduce_sum(losses) / self.settings.batch
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.average.update()
        return loss

    @tf.function
    def distributed(self, sound, word):
        return self.strategy.reduce("SUM", self.strategy.run(self.step, (sound, word)), axis=None)

    def fit(self, until):
        while self.epoch < until:
            data = self.strategy.experimental_distribute_dataset(epoch_of(self.settings, int(self.epoch.numpy())))
            losses = [float(self.distributed(*batch)) for batch in data]
            self.epoch.assign_add(1)
            self.manager.save()
            print(f"epoch {int(self.epoch.numpy())} loss {sum(losses) / len(losses):.4f}")

    def validate(self):
        sound, word = clips(self.settings, 48, 2)
        with self.average.in_place():
            logits = self.model(sound)
        return float(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(word, logits)))

    def resume(self):
        self.manager.restore_or_initialize()

    def cool(self):
        """Goes back by one epoch, and from there to the end in small steps."""
        self.checkpoint.restore(self.manager.checkpoints[-2])
        self.optimizer.learning_rate.assign(self.settings.cool_rate)
        for number in range(self.settings.cool_epochs):
            data = epoch_of(self.settings, 50 + number)
            for batch in self.strategy.experimental_distribute_dataset(data):
                loss = self.distributed(*batch)
        return float(loss)


def main():
    settings = Settings()
    keras.utils.set_random_seed(1)
    run = Run(settings)
    run.resume()
    run.fit(settings.epochs)
    before = run.validate()
    loss = run.cool()
    seen = run.model.low.norm
    size = sum(float(tf.reduce_sum(tf.abs(each))) for each in run.model.trainable_variables)
    print(f"before {before:.4f} cooled {run.validate():.4f} loss {loss:.4f} weights {size:.3f} "
          f"seen {float(tf.reduce_sum(seen.moving_mean)):.4f} {float(tf.reduce_sum(seen.moving_variance)):.4f}")


if __name__ == "__main__":
    main()
