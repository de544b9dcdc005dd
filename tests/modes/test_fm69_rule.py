"""The examiner's rule for fm69: `fit` that begins with the epoch of a backup which an earlier call has restored."""

import edited_programs
import pytest
from recorded import LINE, found, modes, run
from strategy_clinic.observer.events import EpochsLeftOut


def left_out(location=LINE, asked=3, made=1, first=2, of_backup=True):
    return EpochsLeftOut(location, asked, made, first, of_backup)


def test_a_fit_that_begins_with_the_epoch_of_a_backup():
    (finding,) = found(run(left_out(), left_out()))
    assert (finding.mode, finding.line) == ("fm69", LINE[0].line)
    assert str(finding.message).startswith("fit makes 1 of 3 epochs")


@pytest.mark.parametrize(
    "changes, expected",
    [({"of_backup": False, "first": 0}, [("fm42", 7)]), ({"location": ()}, [])],
    ids=["data that ended", "nobody can place it"],
)
def test_what_is_no_backup(changes, expected):
    assert modes(run(left_out(**changes))) == expected


TUNED = """
import numpy as np
import tensorflow as tf

x = np.ones((8, 1), "float32")
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
kept = tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
model.fit(x, 2 * x, epochs=3, verbose=0, callbacks=[kept])
{again}
model.fit(x, 3 * x, epochs=2, verbose=0)
"""
LOADED = """
model.save("model.keras")
with strategy.scope():
    model = tf.keras.models.load_model("model.keras")
"""


@pytest.mark.replayed
@pytest.mark.parametrize("again, expected", [("", ["fm69"]), (LOADED, [])], ids=["same", "loaded"])
def test_a_second_fit_after_a_restart(tmp_path, again, expected):
    examination = edited_programs.examined(tmp_path, TUNED.format(again=again))
    assert [each.mode for each in examination.findings] == expected
