"""python -m soil.train: trains, or goes on where the last start has ended."""
import csv

import keras
import tensorflow as tf

from soil.config import Experiment
from soil.data import epoch_of_training, in_order, stations
from soil.model import SoilModel


def new_model(experiment):
    model = SoilModel(experiment.hidden, experiment.depth_weight, experiment.ramp)
    model.build()
    model.compile(keras.optimizers.Adam(experiment.rate))
    return model


def open_model(experiment):
    if experiment.newest.exists():
        return keras.models.load_model(experiment.newest)
    return new_model(experiment)


def main():
    experiment = Experiment()
    experiment.folder.mkdir(exist_ok=True)
    training, testing = stations(240, seed=experiment.seed), stations(60, seed=experiment.seed + 1)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = open_model(experiment)

    steps = len(training[0]) // experiment.batch
    first = int(model.optimizer.iterations.numpy()) // steps
    held_out = in_order(testing, batch=30)
    for epoch in range(first, experiment.epochs):
        data = epoch_of_training(training, experiment.batch, experiment.seed, epoch)
        seen = model.fit(data, verbose=0).history
        told = model.evaluate(held_out, verbose=0, return_dict=True)
        row = {"epoch": epoch + 1, "error": seen["error"][-1], "test_error": told["error"], "test_top": told["top"]}
        print(" ".join(f"{key} {value:.5f}" for key, value in row.items()))
        with open(experiment.table, "a", newline="") as file:
            csv.DictWriter(file, row).writerow(row)
        model.save(experiment.newest)

    told = model.evaluate(held_out, verbose=0, return_dict=True)
    again = model.evaluate(in_order(training, experiment.batch), verbose=0, return_dict=True)
    reported = float(experiment.table.read_text().splitlines()[-1].split(",")[1])
    print(f"test error {told['error']:.6f} top {told['top']:.6f} training error {again['error']:.6f} reported {reported:.6f} "
          f"after {int(model.optimizer.iterations.numpy())}.0 steps")


if __name__ == "__main__":
    main()
