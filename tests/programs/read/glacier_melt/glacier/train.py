"""python -m glacier.train"""
import math

import keras
import tensorflow as tf

from .callbacks import SlowDown
from .config import Config
from .data import batches, measurements, orders
from .model import build, compile_model


class MeltTrainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        keras.utils.set_random_seed(cfg.seed)
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = build(cfg)
            compile_model(self.model, cfg)
        self.slow_down = SlowDown(cfg.patience, cfg.factor)
        self.epoch = tf.Variable(0, dtype=tf.int64)
        self.plateau = tf.Variable([math.inf, 0.0])
        # the optimizer belongs to the compiled model
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, epoch=self.epoch, plateau=self.plateau
        )
        self.manager = tf.train.CheckpointManager(self.checkpoint, cfg.folder, max_to_keep=2)

    def resume(self):
        if self.manager.latest_checkpoint is None:
            return
        self.checkpoint.restore(self.manager.latest_checkpoint).expect_partial()
        self.slow_down.set_state(self.plateau.numpy())
        print(f"going on after epoch {int(self.epoch.numpy())}")

    def keep(self, done):
        self.epoch.assign(done)
        self.plateau.assign(self.slow_down.state())
        self.manager.save(checkpoint_number=done)

    def run(self):
        cfg = self.cfg
        (weather, melt), held_out = measurements(cfg)
        held_out = batches(held_out, cfg)
        start = int(self.epoch.numpy())
        for epoch, order in enumerate(orders(cfg, start), start):
            data = batches((weather[order], melt[order]), cfg)
            logs = self.model.fit(
                data,
                initial_epoch=epoch,
                epochs=epoch + 1,
                validation_data=held_out,
                callbacks=[self.slow_down],
                verbose=0,
            ).history
            print(f"epoch {epoch}: loss {logs['loss'][0]:.5f} held out {logs['val_loss'][0]:.5f}")
            self.keep(epoch + 1)
        return self.model.evaluate(held_out, verbose=0, return_dict=True)


def main():
    trainer = MeltTrainer(Config())
    trainer.resume()
    scores = trainer.run()
    rate = float(trainer.model.optimizer.learning_rate.numpy())
    print(
        f"held out: loss {scores['loss']:.5f} mae {scores['mae']:.5f} "
        f"best {trainer.slow_down.best:.5f} rate {rate:.5f}"
    )


if __name__ == "__main__":
    main()
