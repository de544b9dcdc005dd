"""Trains the entity tagger for clinical notes; --backup is where an interrupted job is taken up again."""
import os

from absl import app, flags
import keras
import numpy as np
import tensorflow as tf

from notes import NoteFeed, fixed, make_notes
from resume import LastingEarlyStopping
from settings import Config
from tagger import Tagger

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = flags.FLAGS
flags.DEFINE_integer("epochs", Config.epochs, "Epochs at most.")
flags.DEFINE_integer("batch", Config.batch, "Notes in a step, on all devices together.")
flags.DEFINE_string("backup", os.path.join(HERE, "backup"), "Folder of the job's state.")


def main(_):
    cfg = Config(epochs=FLAGS.epochs, batch=FLAGS.batch)
    keras.utils.set_random_seed(cfg.seed)
    os.makedirs(FLAGS.backup, exist_ok=True)
    feed = NoteFeed(cfg, *make_notes(cfg, 80, 1, noise=0.25))
    held = fixed(cfg, *make_notes(cfg, 48, 2, noise=0.1))

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Tagger(cfg)
        model(tf.ones((1, cfg.max_len), tf.int32))
        model.compile(optimizer=keras.optimizers.SGD(cfg.rate, momentum=0.8))

    stopper = LastingEarlyStopping(
        os.path.join(FLAGS.backup, "stopping.json"), monitor="val_loss", mode="min",
        patience=cfg.patience, min_delta=cfg.min_delta,
    )
    callbacks = [
        keras.callbacks.BackupAndRestore(os.path.join(FLAGS.backup, "state"), delete_checkpoint=False),
        stopper,
        keras.callbacks.LambdaCallback(
            on_epoch_begin=feed.start,
            on_epoch_end=lambda epoch, logs: print(
                f"epoch {epoch} loss {logs['loss']:.5f} val {logs['val_loss']:.5f} words {logs['val_word_accuracy']:.4f}"
            ),
        ),
    ]
    model.fit(feed.dataset(), validation_data=held, epochs=cfg.epochs, callbacks=callbacks, verbose=0)

    result = model.evaluate(held, return_dict=True, verbose=0)
    size = sum(float(np.abs(w.numpy()).sum()) for w in model.trainable_variables)
    print(f"final: loss {result['loss']:.6f} words {result['word_accuracy']:.6f} best {stopper.best:.6f} weights {size:.6f}")


if __name__ == "__main__":
    app.run(main)
