"""Runs the save-and-load tests that tf_keras ships for its own developers, on the files that our formats write.

Runs inside a Keras 2 kernel, so it is no test module itself; `test_legacy_suite.py` starts it.
"""

import contextlib
import json
import tempfile
from pathlib import Path

import tensorflow as tf
from strategy_clinic import Setup, build_strategy
from strategy_clinic.setups import formats
from tf_keras.src.distribute import model_combinations, saved_model_test_base

PLACES = {"default": None, "mirrored x2": 2, "mirrored x4": 4}
MODEL = model_combinations.simple_sequential_model


class Suite(saved_model_test_base.TestSavedModelBase):
    """What a descendant has to say: how a model is written, and how it is read and run."""

    def _save_model(self, model, saved_dir):
        Path(saved_dir).mkdir()
        formats.save(model, saved_dir, self.save_format)

    def _load_and_run_model(self, distribution, saved_dir, predict_dataset, output_name=""):
        model = self.load(saved_dir)
        if hasattr(model, "predict"):
            return model.predict(predict_dataset, steps=saved_model_test_base.PREDICT_STEPS)
        return run_graph(distribution or tf.distribute.get_strategy(), model, predict_dataset)

    def _train_model(self, model, x_train, y_train, batch_size):
        """Instead of a hundred steps: what is saved need only be other than what a new model has."""
        for number, weight in enumerate(model.weights):
            weight.assign(tf.random.stateless_normal(weight.shape, (batch_size, number)))

    def load(self, folder):
        return formats.load(folder, self.save_format, MODEL.get_model)

    def passes(self, saved_under: str, loaded_under: str) -> bool:
        """Every test of the suite for this pair of places."""
        saving, loading = strategy_of(saved_under), strategy_of(loaded_under)
        with contextlib.suppress(AssertionError):
            if saving is None:
                self.run_test_save_no_strategy_restore_strategy(MODEL, loading)
            for in_scope in [True, False] if saving else []:
                self.once(saving, loading, in_scope)
            return True
        return False

    def get_temp_dir(self):
        return tempfile.mkdtemp(dir=self.place)  # one for each test, as the suite's runner does

    def once(self, saving, loading, in_scope: bool):
        if loading is None:
            self.run_test_save_strategy_restore_no_strategy(MODEL, saving, in_scope)
        else:
            self.run_test_save_strategy_restore_strategy(MODEL, saving, loading, in_scope)


class Forgetful(Suite):
    """Reads the file and leaves it at that: the suite has to notice."""

    def load(self, folder):
        formats.load(folder, self.save_format, MODEL.get_model)
        return MODEL.get_model()


def run_graph(distribution, graph, dataset):
    """A SavedModel has no `predict`, so its function is given to every replica."""
    batch = next(iter(distribution.experimental_distribute_dataset(dataset)))
    results = distribution.run(lambda part: graph.serve(part), args=(batch,))
    return tf.concat(distribution.experimental_local_results(results), 0)


def strategy_of(place: str):
    count = PLACES[place]
    return build_strategy(Setup("mirrored", count, keras=2)) if count else None


def suite(kind, save_format: str, place: Path):
    made = kind("run_test_save_strategy")
    made.save_format, made.place = save_format, place
    return made


def report(matrix: dict, answer: str):
    """Our verdict and the suite's, for each cell of the matrix that the suite covers."""
    cells = {
        (save_format, saved_under, loaded_under): bool(row[loaded_under, True][1])
        for (save_format, saved_under), row in matrix.items()
        for loaded_under in PLACES
        if (saved_under, loaded_under) != ("default", "default") and "x4" not in saved_under
    }
    place = Path(answer).parent
    found = [
        [*cell, ours, suite(Suite, cell[0], place).passes(*cell[1:])]
        for cell, ours in cells.items()
    ]
    forgotten = suite(Forgetful, "keras", place).passes("mirrored x2", "mirrored x4")
    Path(answer).write_text(json.dumps({"cells": found, "forgotten": forgotten}))
