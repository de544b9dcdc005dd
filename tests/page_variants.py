"""A program that uses the code which pages tell to paste, in other models than theirs, on three devices.

`test_page_variants.py` puts that code between the imports and the cases. Each model has an `Embedding`, which has sparse
gradients, and a layer that gets no gradient. Each case takes a step in `fit`, in a loop, or after the model was saved and
loaded. The program prints the names of the cases whose result is not that of one device.
"""

import contextlib
import os
import tempfile

import numpy as np
import tensorflow as tf

KERAS_3 = hasattr(tf.keras, "Variable")
host = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(host, [tf.config.LogicalDeviceConfiguration()] * 3)
three = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
# Two examples for each replica. Those of the last one differ most from the others.
WORDS = tf.constant([[0.0, 1.0], [2.0, 3.0], [4.0, 0.0], [0.0, 1.0], [2.0, 3.0], [5.0, 6.0]])
LABELS = tf.constant([[1.0], [0.0], [1.0], [1.0], [0.0], [3.0]])
CASES = {}


# paste


def case(function):
    CASES[function.__name__] = function
    return function


@tf.keras.utils.register_keras_serializable()
class Stop(tf.keras.layers.Layer):
    def call(self, inputs):
        return tf.stop_gradient(inputs)


def make_model(extra=None):
    """Returns a model with an `Embedding`, a layer that gets no gradient, and another layer."""
    layers = tf.keras.layers
    inputs = tf.keras.Input((2,))
    hidden = layers.Embedding(7, 2, embeddings_initializer="ones")(inputs)
    hidden = layers.Flatten()(extra(hidden) if extra else hidden)
    resting = Stop()(layers.Dense(1)(hidden))
    outputs = layers.Add()([layers.Dense(1, kernel_initializer="ones")(hidden), resting])
    return tf.keras.Model(inputs, layers.Activation("linear", dtype="float32")(outputs))


def in_fit(make, optimizer, labels, loss="mse"):
    """Returns a model after a step of `fit`, and its weights before the step."""
    with three.scope():
        model = make()
        model.compile(optimizer(), loss)
    before = model.get_weights()
    fit(model, labels)
    return model, before


def fit(model, labels):
    return model.fit(WORDS, labels, batch_size=6, shuffle=False, verbose=0).history


def in_loop(make, optimizer, labels):
    with three.scope():
        model, optimizer = make(), optimizer()
        optimizer.build(model.trainable_variables)
    before = model.get_weights()
    tf.function(step_of(model, optimizer))(next(iter(batches(labels))))
    return model, before


def batches(labels):
    data = tf.data.Dataset.from_tensor_slices((WORDS, labels)).batch(6)
    return three.experimental_distribute_dataset(data)


def step_of(model, optimizer):
    scaled = getattr(optimizer, "scale_loss", lambda loss: loss)

    def step(words, labels):
        with tf.GradientTape() as tape:
            errors = tf.square(model(words, training=True) - labels)
            loss = scaled(tf.reduce_sum(errors) / 6)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    return lambda batch: three.run(step, args=batch)


def loaded_again(make, optimizer, labels, prepare=lambda model: None):
    """Returns a model that was trained, saved and loaded after its second step, and its weights before that."""
    model, _ = in_fit(make, optimizer, labels)
    model.save("model.keras")
    with three.scope():
        model = tf.keras.models.load_model("model.keras")
    prepare(model)
    before = model.get_weights()
    fit(model, labels)
    return model, before


@contextlib.contextmanager
def policy(name):
    tf.keras.mixed_precision.set_global_policy(name)
    yield
    tf.keras.mixed_precision.set_global_policy("float32")


def change(model, before):
    return float(tf.linalg.global_norm([a - b for a, b in zip(model.get_weights(), before)]))


if KERAS_3:  # Keras 2 needs neither class nor function

    @case
    def clips_the_sum():
        def clipping():
            return ClipsTheSum(1.0, global_clipnorm=0.1)

        ways = in_fit, in_loop, loaded_again
        changes = [change(*way(make_model, clipping, LABELS)) for way in ways]
        near = 4.0 + LABELS / 8.0  # small errors, so that no gradient overflows
        with policy("mixed_float16"):
            changes.append(change(*in_fit(make_model, clipping, near)))
        return np.allclose(changes, 0.1, rtol=0.02)

    @case
    def finite_everywhere_leaves_the_step_out():
        overflow = tf.concat([LABELS[:5], [[1e30]]], axis=0)  # on the last replica
        with policy("mixed_float16"):
            fitted, before = in_fit(make_model, scaling, overflow)
            looped = in_loop(make_model, scaling, overflow)
            loaded = loaded_again(make_model, scaling, LABELS, ask_all)
            fit(loaded[0], overflow)
            kept = change(fitted, before) == change(*looped) == 0.0
            return kept and float(fitted.optimizer.dynamic_scale.numpy()) == 2.0**14

    def scaling():
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.01))
        optimizer.check_finite = finite_everywhere
        return optimizer

    def ask_all(model):
        model.optimizer.check_finite = finite_everywhere


@case
def own_dropout():
    def make():
        return make_model(OwnDropout())

    for name in ("float32", "mixed_bfloat16"):
        with policy(name):
            for way in (in_fit, in_loop, loaded_again):
                way(make, sgd, LABELS)
    with three.scope():
        layer = OwnDropout()
    masks = three.run(tf.function(lambda: layer(tf.ones((1, 64)), training=True)))
    return len({bytes(each.numpy()) for each in three.experimental_local_results(masks)}) == 3


def sgd():
    return tf.keras.optimizers.SGD(0.01)


@case
def dice_of_all_replicas():
    labels = tf.cast(LABELS > 0.0, tf.int32)
    model, _ = in_fit(make_model, sgd, labels, dice)
    alone = float(dice(labels, model(WORDS))[0])
    evaluated = model.evaluate(WORDS, labels, batch_size=6, verbose=0)
    model.save("dice.keras")
    with three.scope():
        loaded = tf.keras.models.load_model("dice.keras", custom_objects={"dice": dice})
    return np.allclose([evaluated, fit(loaded, labels)["loss"][0]], alone, rtol=1e-4)


def started(kinds, stops, saves_last=True):
    """Returns the rate and the weight after each epoch, and the weight in the best file, of a training started so often."""
    callbacks, epochs = tf.keras.callbacks, []
    inputs = tf.ones((6, 1))

    class Record(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            (weight,) = self.model.get_weights()
            epochs.append((epoch, rate_of(self.model), float(weight[0, 0])))

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for stop in stops:
            dense = tf.keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)
            model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
            model.compile(tf.keras.optimizers.SGD(0.125), "mse")
            given = [
                kinds[0]("val_loss", patience=6, start_from_epoch=1),
                kinds[1]("val_loss", patience=2, factor=0.5, cooldown=2),
                kinds[2]("best.keras", save_best_only=True),
                Record(),
            ]
            backup = callbacks.BackupAndRestore("backup", delete_checkpoint=False)
            given.insert(len(given) if saves_last else 0, backup)
            settings = {"epochs": stop, "batch_size": 6, "verbose": 0, "callbacks": given}
            model.fit(inputs, 2.0 * inputs, validation_data=(inputs, inputs), **settings)
        return epochs, float(tf.keras.models.load_model("best.keras").get_weights()[0][0, 0])


def rate_of(model):
    return float(tf.convert_to_tensor(model.optimizer.learning_rate))


@case
def remembers_what_callbacks_count():
    callbacks = tf.keras.callbacks
    forgetting = callbacks.EarlyStopping, callbacks.ReduceLROnPlateau, callbacks.ModelCheckpoint
    lowering = type("Lowering", (Remembering, callbacks.ReduceLROnPlateau), {})
    keeping = type("Keeping", (Remembering, callbacks.ModelCheckpoint), {})
    remembering, stops = (
        (Stopping, lowering, keeping),
        (1, 4, 9),
    )  # the rate is lowered in the fourth epoch
    whole = started(forgetting, [9])
    others = started(forgetting, stops), started(remembering, stops, saves_last=False)
    return started(remembering, stops) == whole and whole not in others


@case
def the_rate_is_in_the_file():
    with three.scope():
        model = make_model()
        model.compile(sgd(), tf.keras.losses.MeanSquaredError())
    fit(model, LABELS)
    model.optimizer.learning_rate.assign(0.5)
    for name in ("rate.keras", "rate.h5"):
        model.save(name)
    model.save_weights("rate.weights.h5")
    tf.train.Checkpoint(model=model).save("rate/checkpoint")

    def filled(fill):
        with three.scope():
            other = make_model()
            other.compile(sgd(), "mse")
            other.optimizer.build(other.trainable_variables)
        fill(other)
        return other

    models = [tf.keras.models.load_model(name) for name in ("rate.keras", "rate.h5")]
    path = tf.train.latest_checkpoint("rate")
    models.append(filled(lambda other: tf.train.Checkpoint(model=other).restore(path)))
    models.append(filled(lambda other: other.load_weights("rate.weights.h5")))
    return np.allclose(list(map(rate_of, models)), [0.5, 0.5, 0.5, 0.5 if KERAS_3 else 0.01])


@case
def a_layer_in_a_layer():
    def make():
        return make_model(Wrapping(tf.keras.layers.Dense(2)))

    model, _ = loaded_again(make, sgd, LABELS)
    model.save("wrapping.h5")
    again = tf.keras.models.load_model("wrapping.h5", compile=False)
    return np.allclose(model.predict(WORDS, verbose=0), again(WORDS), atol=1e-5)


@case
def an_own_model():
    model, _ = in_fit(lambda: Scaling(factor=5.0), sgd, LABELS)
    model.save("scaling.keras")
    with three.scope():
        loaded = tf.keras.models.load_model("scaling.keras")
    same = np.allclose(model.predict(WORDS, verbose=0), loaded.predict(WORDS, verbose=0))
    fit(loaded, LABELS)
    return same and loaded.factor == 5.0


@case
def keeps_a_mean():
    def make():
        return make_model(Centre())

    def mean_of(model):
        (layer,) = [each for each in model.layers if isinstance(each, Centre)]
        return float(layer.mean.numpy())

    fitted, looped = in_fit(make, sgd, LABELS)[0], in_loop(make, sgd, LABELS)[0]
    fitted.save("centre.keras")
    with three.scope():
        loaded = tf.keras.models.load_model("centre.keras", custom_objects={"Centre": Centre})
    # All numbers of the embedding are 1.
    return [mean_of(each) for each in (fitted, looped, loaded)] == [1.0, 1.0, 1.0]


@case
def patched_layers():
    if KERAS_3:
        exec(PATCH, {"tf": tf})

    def make():
        return make_model(tf.keras.layers.Dropout(0.5))

    for way in (in_fit, in_loop, loaded_again):
        way(make, sgd, LABELS)
    return True


def outcome(function):
    """Returns what is wrong with a case, in a folder of its own, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return "" if function() else "another result"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            os.chdir("/")


for name, function in CASES.items():
    if words := outcome(function):
        print(f"{name}: {words}")
print("all cases have run:", len(CASES) >= 8)
