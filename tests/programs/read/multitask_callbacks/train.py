import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import resuming
import tasks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.3)
    args = parser.parse_args()
    folder = Path(__file__).resolve().parent / "model"
    folder.mkdir(exist_ok=True)

    x, y = tasks.readings(96, seed=1)
    x_valid, y_valid = tasks.readings(96, seed=2)
    valid = tf.data.Dataset.from_tensor_slices((x_valid, y_valid)).batch(args.batch)

    strategy = tf.distribute.MirroredStrategy()
    state = resuming.read_state(folder)
    patience = resuming.Patience(4)
    first, best = 0, None
    with strategy.scope():
        if state:
            model = keras.models.load_model(folder / state["model"])
            first = state["epochs"]
            patience.set_state(state["patience"])
            best = patience.best
            print(f"resumed at epoch {first} from {state['model']}")
        else:
            model = tasks.build()
            tasks.compile_model(model, args.lr)

    best_file = folder / "best.weights.h5"
    callbacks = [
        keras.callbacks.ModelCheckpoint(best_file, monitor="val_loss", save_best_only=True, save_weights_only=True,
                                        initial_value_threshold=best),
        patience,
        resuming.Decay(0.85),
        resuming.SaveAll(folder, {"patience": patience}),
    ]
    if not (state and state["stopped"]) and first < args.epochs:
        data = tasks.epochs_of(x, y, args.batch, first, args.epochs)
        history = model.fit(data, initial_epoch=first, epochs=args.epochs, steps_per_epoch=len(x) // args.batch,
                            validation_data=valid, callbacks=callbacks, verbose=0).history
        for n, (loss, val) in enumerate(zip(history["loss"], history["val_loss"])):
            print(f"epoch {first + n + 1}: loss {loss:.5f} val_loss {val:.5f} explained {history['life_explained'][n]:.4f}")

    last = model.evaluate(valid, verbose=0, return_dict=True)
    weights = sum(float(np.abs(w).sum()) for w in model.get_weights())
    model.load_weights(best_file)
    chosen = model.evaluate(valid, verbose=0, return_dict=True)
    print(f"last {last['loss']:.6f} explained {last['life_explained']:.6f} chosen {chosen['loss']:.6f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
