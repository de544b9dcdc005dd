"""Cross-validation, and a second training of the last fold from its start with a smaller rate."""
import numpy as np
import tensorflow as tf

from lab import data
from lab.config import Config
from lab.trainer import Trainer


def cross_validate(strategy, config, arrays):
    scores, parts = [], data.folds(config)
    for number, held in enumerate(parts):
        rest = np.concatenate([part for i, part in enumerate(parts) if i != number])
        trainer = Trainer(strategy, config)
        start = tf.train.Checkpoint(model=trainer.model, optimizer=trainer.optimizer).save("start/fold")
        epochs = [data.dataset(arrays, rest, config, epoch) for epoch in range(config.epochs)]
        trainer.fit(epochs)
        scores.append(trainer.evaluate(data.dataset(arrays, held, config), len(held)))
        print(f"fold {number}: loss {scores[-1][0]:.4f}, area {scores[-1][1]:.4f}")
    return scores, trainer, start, epochs, (data.dataset(arrays, held, config), len(held))


def again_from(start, trainer, epochs, rate, held):
    checkpoint = tf.train.Checkpoint(model=trainer.model, optimizer=trainer.optimizer)
    checkpoint.restore(start).assert_consumed()
    trainer.optimizer.learning_rate.assign(rate)
    trainer.fit(epochs[:2])
    loss, _ = trainer.evaluate(*held)
    return loss


def main():
    config = Config()
    tf.keras.utils.set_random_seed(config.seed)
    strategy = tf.distribute.MirroredStrategy()
    arrays = data.make_table(config)
    scores, trainer, start, epochs, held = cross_validate(strategy, config, arrays)
    losses, areas = np.mean(scores, axis=0)
    second = again_from(start, trainer, epochs, rate=config.rate / 5, held=held)
    print(f"mean loss {losses:.4f}, mean area {areas:.4f}, loss after the second start {second:.4f}")


if __name__ == "__main__":
    main()
