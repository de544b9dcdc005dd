"""Who comes back within thirty days?    python -m readmit.train --epochs 9"""
import argparse
import csv
import dataclasses

import keras
import tensorflow as tf

from .features import Features, draw_admissions
from .network import build
from .settings import Settings


def parse():
    parser = argparse.ArgumentParser()
    for field in dataclasses.fields(Settings):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type, default=field.default)
    return Settings(**vars(parser.parse_args()))


def main():
    settings = parse()
    keras.utils.set_random_seed(settings.seed)
    raw, labels = draw_admissions(settings.rows + settings.holdout, settings.seed)
    split = lambda part: {name: column[part] for name, column in raw.items()}  # noqa: E731
    seen, unseen = slice(None, settings.rows), slice(settings.rows, None)

    features = Features(settings, split(seen))
    train = features.dataset(split(seen), labels[seen], settings.batch_size, shuffle_seed=settings.seed)
    holdout = features.dataset(split(unseen), labels[unseen], settings.batch_size)
    width = train.element_spec[0]["row"].shape[-1]

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = build(settings, width)
    model.fit(
        train,
        validation_data=holdout,
        epochs=settings.epochs,
        verbose=0,
        callbacks=[
            keras.callbacks.CSVLogger("readmit.csv"),
            keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=1e-3),
            keras.callbacks.EarlyStopping("val_f2", mode="max", patience=4, restore_best_weights=True),
        ],
    )
    with open("readmit.csv", newline="") as file:
        for row in csv.DictReader(file):
            print(f"epoch {row['epoch']}: " + "  ".join(f"{k} {float(v):.4f}" for k, v in row.items() if k != "epoch"))
    scores = model.evaluate(holdout, verbose=0, return_dict=True)
    size = sum(float(tf.reduce_sum(tf.abs(weight))) for weight in model.get_weights())
    print(f"holdout loss {scores['loss']:.4f} f2 {scores['f2']:.4f} accuracy {scores['acc']:.4f} weights {size:.3f}")


if __name__ == "__main__":
    main()
