"""python -m claims.fit"""
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from .callbacks import Balance, Ledger
from .network import ClaimsModel, LogCosh, RelativeSpread, example_inputs
from .table import draw

OUT = Path(__file__).resolve().parents[1] / "out"
BACKUP, BEST = OUT / "backup", OUT / "best.weights.h5"
BATCH, EPOCHS, RATE = 32, 8, 0.03
WATCHED = "val_fraud_nll"


def metrics():
    return {
        "fraud": [keras.metrics.BinaryCrossentropy(from_logits=True, name="nll")],
        "amount": [keras.metrics.MeanAbsoluteError(name="error"), RelativeSpread(name="spread")],
    }


def main():
    OUT.mkdir(exist_ok=True)
    keras.utils.set_random_seed(6)
    strategy = tf.distribute.MirroredStrategy()
    batch = BATCH
    train, held = draw(160, 1).dataset(batch), draw(96, 2).dataset(batch)

    with strategy.scope():
        model = ClaimsModel().with_losses(keras.losses.BinaryCrossentropy(from_logits=True), LogCosh())
        model(example_inputs())
        model.compile(optimizer=keras.optimizers.Adam(RATE), metrics=metrics())

    ledger = Ledger(OUT / "ledger.jsonl", BACKUP)
    keeper = keras.callbacks.ModelCheckpoint(
        str(BEST), monitor=WATCHED, mode="min", save_best_only=True, save_weights_only=True,
        initial_value_threshold=ledger.best(WATCHED),
    )
    backup = keras.callbacks.BackupAndRestore(str(BACKUP), delete_checkpoint=False)
    model.fit(train, validation_data=held, epochs=EPOCHS, callbacks=[ledger, Balance(), keeper, backup], verbose=0)

    size = sum(float(np.abs(w.numpy()).sum()) for w in model.trainable_variables)
    last = model.evaluate(held, return_dict=True, verbose=0)
    model.load_weights(BEST)
    best = model.evaluate(held, return_dict=True, verbose=0)
    print(
        f"final: last {last['fraud_nll']:.6f} {last['amount_error']:.6f} best {best['fraud_nll']:.6f} "
        f"{best['amount_error']:.6f} spread {best['amount_spread']:.6f} weights {size:.6f}"
    )


if __name__ == "__main__":
    main()
