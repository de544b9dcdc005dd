"""The examiner's rule for fm64: a Python generator under a strategy."""

import edited_programs
import pytest
from recorded import LINE, found, modes, run, strategy
from strategy_clinic.observer.events import DataRanOut


def examined(generator=True, location=LINE, steps=0, keras=3, replicas=2):
    made = [strategy(replicas)] if replicas else []
    return run(*made, DataRanOut(location, steps, generator), keras=keras)


@pytest.mark.parametrize("keras", [3, None], ids=["Keras 3", "the installed one"])
def test_a_generator_that_has_ended(keras):
    (finding,) = found(examined(keras=keras))
    assert (finding.mode, finding.line) == ("fm64", LINE[0].line)
    assert "cannot give back" in str(finding.message)


@pytest.mark.parametrize(
    "changes",
    [{"generator": False}, {"keras": 2}, {"replicas": 0}, {"steps": 4}, {"location": ()}],
    ids=["other data", "Keras 2", "no strategy", "steps were asked for", "nobody can place it"],
)
def test_where_nothing_is_lost(changes):
    assert "fm64" not in dict(modes(examined(**changes)))


AFTER_A_DATASET = """
import tensorflow as tf


def batches():
    for i in range(12):
        yield tf.fill((8, 1), float(i)), tf.zeros((8, 1))


signature = (tf.TensorSpec((None, 1)), tf.TensorSpec((None, 1)))
data = tf.data.Dataset.from_generator(batches, output_signature=signature)
strategy = tf.distribute.MirroredStrategy()
with {scope}:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(data, verbose=0)
model.evaluate({given}, verbose=0)
"""
SCOPE = "strategy.scope()"


@pytest.mark.replayed
@pytest.mark.parametrize(
    "scope, given, lines",
    [(SCOPE, "batches()", [17]), (SCOPE, "data", []), ("tf.device('CPU:0')", "batches()", [])],
)
def test_an_evaluation_after_a_training_with_data_of_unknown_length(tmp_path, scope, given, lines):
    text = AFTER_A_DATASET.format(scope=scope, given=given)
    examination = edited_programs.examined(tmp_path, text)
    assert [each.line for each in examination.findings if each.mode == "fm64"] == lines
