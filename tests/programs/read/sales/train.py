"""Trains a forecaster of sales, and goes on with the best of its epochs. A run that was stopped continues when it is started again."""
import json
import math
from pathlib import Path

import keras
import tensorflow as tf

import shops

BATCH = 8
EPOCHS = 7
BEST = Path("best.keras")
NOTES = Path("best.json")


class Notes(keras.callbacks.Callback):
    """Keeps the best validation loss in a file, for the next start."""

    def __init__(self, path):
        super().__init__()
        self.path, self.best = path, value_in(path)

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_loss"] < (self.best or math.inf):
            self.best = logs["val_loss"]
            self.path.write_text(json.dumps({"val_loss": self.best}))
        print(f"{epoch + 1}/{EPOCHS}", *(f"{name}={value:.4f}" for name, value in logs.items() if name.endswith("loss")))


def value_in(path):
    return json.loads(path.read_text())["val_loss"] if path.exists() else None


def callbacks():
    keep = keras.callbacks.ModelCheckpoint(BEST, monitor="val_loss", save_best_only=True, initial_value_threshold=value_in(NOTES))
    return [keep, Notes(NOTES), keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)]


def streamed(inputs, sold):
    return tf.data.Dataset.from_generator(shops.batches_of(inputs, sold, BATCH), output_signature=shops.SIGNATURE)


def in_order(inputs, sold):
    return tf.data.Dataset.from_tensor_slices((inputs, sold)).batch(BATCH)


def first_stage(strategy, train, check):
    with strategy.scope():
        model = shops.forecaster()
        model.compile(optimizer=keras.optimizers.Adam(0.02), loss="mse", metrics=["mae"])
    model.fit(
        in_order(*train).repeat(),
        steps_per_epoch=len(train[1]) // BATCH,
        validation_data=in_order(*check),
        epochs=EPOCHS,
        callbacks=callbacks(),
        verbose=0,
    )
    return model


def second_stage(strategy, newer):
    """The best model learns from newer weeks, more slowly."""
    with strategy.scope():
        model = keras.models.load_model(BEST)
        model.compile(optimizer=keras.optimizers.Adam(0.004), loss="mse", metrics=["mae"])
    told = model.fit(in_order(*newer), epochs=2, verbose=0)
    return model, told.history["loss"]


def main():
    strategy = tf.distribute.MirroredStrategy()
    train, check, newer = shops.table(96, 1), shops.table(96, 2, growth=0.1), shops.table(192, 3, growth=0.2)
    first = first_stage(strategy, train, check)
    left = first.evaluate(in_order(*check), return_dict=True, verbose=0)
    model, losses = second_stage(strategy, newer)
    test = shops.table(320, 4, growth=0.2)
    told = model.evaluate(streamed(*test), return_dict=True, verbose=0)
    print("best", f"{value_in(NOTES):.4f}", "last", f"{left['loss']:.4f}", "newer", *(f"{loss:.4f}" for loss in losses), "test", f"{told['loss']:.4f} {told['mae']:.4f}")


if __name__ == "__main__":
    main()
