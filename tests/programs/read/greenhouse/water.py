"""Predicts the water that plants in a greenhouse need, first for all houses and then for a new one."""

import json
import os

import keras
import numpy as np
import tensorflow as tf

SENSORS, PLANTS, BATCH, EPOCHS = 6, 4, 32, 5
FOLDER = "work"


class Readings(keras.utils.PyDataset):
    """Readings of the sensors, in another order in every epoch."""

    def __init__(self, sensors, plants, water):
        super().__init__()
        self.sensors, self.plants, self.water = sensors, plants, water
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.epoch = epoch
        self.order = np.random.default_rng(50 + epoch).permutation(len(self.water))

    def __len__(self):
        return len(self.water) // BATCH

    def __getitem__(self, number):
        chosen = self.order[number * BATCH : (number + 1) * BATCH]
        inputs = {"sensors": self.sensors[chosen], "plants": self.plants[chosen]}
        return inputs, self.water[chosen]


def measure(count, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    sensors = rng.normal(size=(count, SENSORS)).astype("float32")
    plants = rng.integers(0, PLANTS, size=(count, 1))
    need = np.array([0.5, 1.0, 1.5, 3.0])[plants]
    water = need * np.exp(0.4 * sensors[:, :1]) + 0.3 * np.abs(sensors[:, 1:2]) + shift
    water = water + rng.exponential(0.2, size=water.shape)
    return sensors, plants.astype("int32"), water.astype("float32")


@keras.saving.register_keras_serializable("greenhouse")
def dry_loss(needed, given):
    """Too little water counts three times, and plants that need much count more."""
    error = needed - given
    cost = tf.where(error > 0.0, 3.0 * error, -error)
    return tf.reduce_mean(cost * tf.sqrt(needed), axis=-1)


@keras.saving.register_keras_serializable("greenhouse")
class RelativeError(keras.metrics.Metric):
    """The sum of the errors in relation to the sum of what is needed."""

    def __init__(self, name="relative", **kwargs):
        super().__init__(name=name, **kwargs)
        self.errors = self.add_weight(name="errors", initializer="zeros")
        self.needed = self.add_weight(name="needed", initializer="zeros")

    def update_state(self, needed, given, sample_weight=None):
        self.errors.assign_add(tf.reduce_sum(tf.abs(needed - given)))
        self.needed.assign_add(tf.reduce_sum(needed))

    def result(self):
        return self.errors / self.needed


def build():
    sensors = keras.Input((SENSORS,), name="sensors")
    plants = keras.Input((1,), name="plants", dtype="int32")
    kind = keras.layers.Flatten()(keras.layers.Embedding(PLANTS, 4)(plants))
    x = keras.layers.Concatenate()([sensors, kind])
    x = keras.layers.Dense(24, activation="swish")(x)
    x = keras.layers.Dense(12, activation="swish")(x)
    model = keras.Model([sensors, plants], keras.layers.Dense(1)(x))
    model.compile(
        keras.optimizers.Adam(0.03), loss=dry_loss, metrics=[RelativeError()], jit_compile=False
    )
    return model


class Plateau(keras.callbacks.ReduceLROnPlateau):
    """Divides the rate when the loss does not fall, and remembers the losses in a file."""

    def __init__(self, first, **kwargs):
        super().__init__(**kwargs)
        self.first = first

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if self.first:
            with open(f"{FOLDER}/loss-{self.first - 1}.json") as file:
                self.best, self.wait = json.load(file)

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        with open(f"{FOLDER}/loss-{epoch}.json", "w") as file:
            json.dump([float(self.best), self.wait], file)


class Save(keras.callbacks.Callback):
    def __init__(self, manager, epoch):
        super().__init__()
        self.manager, self.epoch = manager, epoch

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.assign(epoch + 1)
        self.manager.save()


def main():
    keras.utils.set_random_seed(12)
    os.makedirs(FOLDER, exist_ok=True)
    strategy = tf.distribute.MirroredStrategy()
    readings, held = Readings(*measure(256, 1)), Readings(*measure(96, 2))
    done = tf.Variable(0, dtype=tf.int64)
    with strategy.scope():
        model = build()
        model.optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, done=done)
    manager = tf.train.CheckpointManager(checkpoint, FOLDER, max_to_keep=2)
    manager.restore_or_initialize()
    callbacks = [
        keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: readings.set_epoch(epoch)),
        Plateau(int(done), monitor="val_loss", factor=0.3, patience=1, min_delta=0.1),
        Save(manager, done),
    ]
    model.fit(
        readings,
        shuffle=False,  # it has an order of its own
        initial_epoch=int(done),
        epochs=EPOCHS,
        validation_data=held,
        callbacks=callbacks,
        verbose=0,
    )
    loss, relative = model.evaluate(held, verbose=0)
    model.save(f"{FOLDER}/all_houses.keras")

    with strategy.scope():
        tuned = keras.models.load_model(f"{FOLDER}/all_houses.keras")
        tuned.optimizer.learning_rate = 0.003
        history = tuned.fit(Readings(*measure(64, 3, shift=0.5)), shuffle=False, epochs=3, verbose=0)
    tuned_losses = history.history["loss"]
    print(f"loss {loss:.4f} relative {relative:.4f} new {tuned_losses[0]:.4f} {tuned_losses[-1]:.4f}")


if __name__ == "__main__":
    main()
