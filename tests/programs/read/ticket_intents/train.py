"""Trains the intent classifier of the support desk.

    python train.py --epochs 8

An interrupted job is simply started again.
"""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import corpus
from scoring import METRICS, smoothed_crossentropy
from state import EpochLine, PatienceStop, RunState

HERE = Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--batch", type=int, default=32, help="tickets per step, over all devices")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.03)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--work", type=Path, default=HERE / "work")
    return parser.parse_args()


def build(dim):
    tokens = keras.Input((corpus.LENGTH,), dtype="int32")
    hidden = keras.layers.Embedding(corpus.VOCAB, dim)(tokens)
    hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    hidden = keras.layers.Dense(24, activation="tanh")(hidden)
    logits = keras.layers.Dense(len(corpus.INTENTS))(hidden)
    return keras.Model(tokens, logits, name="intents")


def main():
    args = arguments()
    keras.utils.set_random_seed(args.seed)
    train, valid, test = corpus.load()
    strategy = tf.distribute.MirroredStrategy()
    print(f"{strategy.num_replicas_in_sync} devices, {len(train)} tickets")

    keeper = keras.callbacks.ModelCheckpoint(
        str(args.work / "best.weights.h5"), monitor="val_loss", save_best_only=True, save_weights_only=True
    )
    stopper = PatienceStop(args.patience)
    state = RunState(args.work, {"stopper": (stopper, ("best", "wait")), "keeper": (keeper, ("best",))})

    with strategy.scope():
        model = build(args.dim)
        model.compile(
            optimizer=keras.optimizers.Adam(args.rate),
            loss=smoothed_crossentropy,
            metrics=[make() for make in METRICS.values()],
        )
        first = state.restore(model)
    if first:
        print(f"going on with epoch {first}")

    if first < args.epochs and not stopper.exhausted:
        model.fit(
            corpus.train_stream(train, args.batch, first, args.epochs, args.seed),
            steps_per_epoch=len(train) // args.batch,
            validation_data=corpus.fixed_stream(valid, args.batch),
            initial_epoch=first,
            epochs=args.epochs,
            callbacks=[EpochLine(), stopper, keeper, state],
            verbose=0,
        )

    last = model.evaluate(corpus.fixed_stream(test, args.batch), return_dict=True, verbose=0)
    size = float(np.sqrt(sum(np.sum(np.square(w)) for w in model.get_weights())))
    model.load_weights(args.work / "best.weights.h5")
    best = model.evaluate(corpus.fixed_stream(test, args.batch), return_dict=True, verbose=0)
    print(f"last epoch: accuracy {last['accuracy']:.4f}")
    print(
        f"final: loss {best['loss']:.6f} perplexity {best['perplexity']:.6f} "
        f"last {last['loss']:.6f} norm {size:.6f}"
    )


if __name__ == "__main__":
    main()
