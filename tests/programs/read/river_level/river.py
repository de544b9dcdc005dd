"""
River level in three hours from the last twelve hours of rain and level.
My laptop goes to sleep all the time, so everything that I need to continue is in river_state.json
and in the weights file that it names. Just start the script again.
"""
import json
import os

import keras
import numpy as np
import tensorflow as tf

EPOCHS = 7
BATCH = 32
HOURS = 12
AHEAD = 3
STATE = "river_state.json"


def river(hours, seed):
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.3, 2.0, hours) * (np.sin(np.arange(hours) / 17) > 0.2)
    level = np.zeros(hours)
    ground = 0.0
    for t in range(1, hours):
        ground = 0.95 * ground + 0.1 * rain[t - 1]
        level[t] = 0.9 * level[t - 1] + 0.08 * rain[t - 1] + 0.05 * ground ** 2 + rng.normal(0, 0.02)
    return np.stack([rain, level], 1).astype("float32")


def windows(series):
    starts = np.arange(len(series) - HOURS - AHEAD)
    x = np.stack([series[s:s + HOURS] for s in starts])
    y = series[starts + HOURS + AHEAD - 1, 1:]
    return x, y


train_series = river(400, seed=1)
mean, std = train_series.mean(0), train_series.std(0)
x_train, y_train = windows((train_series - mean) / std)
x_val, y_val = windows((river(143, seed=2) - mean) / std)
variance = float(y_train.var())


def scaled_error(y_true, y_pred):
    # 1 - Nash-Sutcliffe, for each hour
    return tf.square(y_true - y_pred)[:, 0] / variance


strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([
        keras.Input((HOURS, 2)),
        keras.layers.GRU(12, kernel_initializer=keras.initializers.GlorotUniform(1),
                         recurrent_initializer=keras.initializers.Orthogonal(seed=2)),
        keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(3)),
    ])
    model.compile(keras.optimizers.RMSprop(0.02), loss=scaled_error)

rng = np.random.default_rng(99)
epoch, best, best_file = 0, float("inf"), None
if os.path.exists(STATE):
    with open(STATE) as file:
        state = json.load(file)
    with strategy.scope():
        model.optimizer.build(model.trainable_variables)
        model.load_weights(state["weights"])
    rng.bit_generator.state = state["rng"]
    epoch, best, best_file = state["epoch"], state["best"], state["best_file"]
    print("continue with epoch", epoch + 1)


def data(x, y):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


while epoch < EPOCHS:
    order = rng.permutation(len(x_train) // BATCH * BATCH)
    loss = model.fit(data(x_train[order], y_train[order]), verbose=0).history["loss"][0]
    val_loss = model.evaluate(data(x_val, y_val), verbose=0)
    epoch += 1
    if val_loss < best:
        best, best_file = val_loss, f"best_{epoch}.weights.h5"
        model.save_weights(best_file)
    else:
        model.optimizer.learning_rate.assign(model.optimizer.learning_rate * 0.5)

    weights = f"river_{epoch % 2}.weights.h5"
    model.save_weights(weights)
    with open(STATE + ".new", "w") as file:
        json.dump({"epoch": epoch, "best": best, "best_file": best_file, "weights": weights,
                   "rng": rng.bit_generator.state}, file)
    os.replace(STATE + ".new", STATE)
    print(f"epoch {epoch}: loss {loss:.4f} val_loss {val_loss:.4f}", flush=True)

last = model.evaluate(data(x_val, y_val), verbose=0)
with strategy.scope():
    model.load_weights(best_file)
predicted = model.predict(x_val, verbose=0)
nse = 1 - np.mean((predicted - y_val) ** 2) / y_val.var()
print(f"last val_loss {last:.4f}, best {best:.4f}, Nash-Sutcliffe {nse:.4f}, highest {predicted.max():.4f}")
