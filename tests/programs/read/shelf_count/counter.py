"""Counts bottles. Learns from pictures of the warehouse first, and then from darker ones of one shop.

The second part begins with a frozen body, and goes on with all layers. The long parts keep a backup, with which they go on
when the program is started again; the last one is short and just begins again.
"""
from types import SimpleNamespace

import keras
import numpy as np
import tensorflow as tf
from shelves import batches, pictures

SETTINGS = SimpleNamespace(batch=24, warehouse_epochs=3, head_epochs=4, shop_epochs=5, rate=0.05, shop_rate=0.01)


def make_model():
    draw = keras.initializers.HeNormal
    body = keras.Sequential([
        keras.Input((12, 12, 1)),
        keras.layers.Conv2D(8, 3, activation="relu", kernel_initializer=draw(1)),
        keras.layers.MaxPooling2D(2),
        keras.layers.Flatten(),
        keras.layers.Dense(24, "relu", kernel_initializer=draw(2)),
    ], name="body")
    head = keras.layers.Dense(5, kernel_initializer=keras.initializers.GlorotUniform(3), name="head")
    return keras.Sequential([keras.Input((12, 12, 1)), body, head])


def compiled(model, rate):
    model.compile(
        optimizer=keras.optimizers.SGD(rate, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def set_trainable(model, value):
    # layer by layer: a body that was saved with frozen layers is loaded with trainable=True and layers that are frozen
    for layer in model.get_layer("body").layers:
        layer.trainable = value


class Part(keras.callbacks.Callback):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def on_epoch_end(self, epoch, logs=None):
        print(f"{self.name} {epoch + 1}: loss {logs['loss']:.4f} accuracy {logs['accuracy']:.4f}", flush=True)


def fit(model, data, epochs, name, backup=True):
    callbacks = [Part(name)]
    if backup:
        callbacks.append(keras.callbacks.BackupAndRestore(f"backups/{name}", delete_checkpoint=False))
    model.fit(data, epochs=epochs, verbose=0, callbacks=callbacks)
    model.save(f"{name}.keras")


def main():
    strategy = tf.distribute.MirroredStrategy()
    warehouse = batches(*pictures(240, 1), SETTINGS.batch)
    shop = batches(*pictures(96, 2, dark=True), SETTINGS.batch)
    test = batches(*pictures(120, 3, dark=True), SETTINGS.batch)

    with strategy.scope():
        model = compiled(make_model(), SETTINGS.rate)
    fit(model, warehouse, SETTINGS.warehouse_epochs, "warehouse")

    with strategy.scope():
        model = keras.models.load_model("warehouse.keras")
        set_trainable(model, False)
        compiled(model, SETTINGS.shop_rate)
    before = model.evaluate(test, verbose=0)
    fit(model, shop, SETTINGS.head_epochs, "head")

    with strategy.scope():
        model = keras.models.load_model("head.keras")
        set_trainable(model, True)
        compiled(model, SETTINGS.shop_rate)
    fit(model, shop, SETTINGS.shop_epochs, "shop", backup=False)

    loss, accuracy = model.evaluate(test, verbose=0)
    kernel = model.get_layer("body").get_weights()[0]
    print(f"shop: accuracy {before[1]:.4f} -> {accuracy:.4f}, loss {before[0]:.4f} -> {loss:.4f}, "
          f"first kernel {float(np.abs(kernel).sum()):.4f}")


if __name__ == "__main__":
    main()
