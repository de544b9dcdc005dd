"""The examiner's rule for fm57: a distribution of Keras that TensorFlow does not use."""

import functools

import edited_programs
import pytest
from recorded import LINE, OTHER, modes, run, strategy, variable
from strategy_clinic.observer.events import KerasDistributionSet, Owner, VariableSharedCentrally

WEIGHT = variable(1)
COPIES = variable(3, copies=2, parts=(1, 2)), WEIGHT, variable(2)


def chosen(kind="DataParallel", devices=2, location=LINE):
    return KerasDistributionSet(location, kind, devices)


@pytest.mark.parametrize("kind", ["DataParallel", "ModelParallel"])
def test_a_model_that_is_made_on_one_device(kind):
    assert modes(run(chosen(kind), WEIGHT)) == [("fm57", 7)]


def test_a_strategy_that_is_made_and_not_used():
    assert modes(run(strategy(), chosen(location=OTHER), WEIGHT)) == [("fm57", 20)]


@pytest.mark.parametrize(
    "events",
    [
        (chosen(devices=1), WEIGHT),
        (WEIGHT, chosen()),
        (chosen(),),
        (strategy(), chosen(), *COPIES),
        (strategy(), chosen(), WEIGHT, VariableSharedCentrally(1)),
        (chosen(), variable(1, maker=Owner.OPTIMIZER), variable(2, maker=Owner.USER)),
    ],
    ids=["one device", "a model before", "no model", "mirrored", "central storage", "no layers"],
)
def test_near_misses(events):
    assert modes(run(*events)) == []


# Repairs

HEAD = "import tensorflow as tf\nimport keras\n"


repaired = functools.partial(edited_programs.repaired, "fm57", HEAD)


def test_the_line_becomes_one_of_a_strategy():
    setting = "keras.distribution.set_distribution(keras.distribution.DataParallel())\n"
    mirrored = "tf.distribute.experimental_set_strategy(tf.distribute.MirroredStrategy())\n"
    assert repaired(setting, 3) == [mirrored]
    known = "s = tf.distribute.MirroredStrategy()\n"
    assert repaired(known + setting, 4) == [f"{known}tf.distribute.experimental_set_strategy(s)\n"]
    block = "with keras.distribution.DataParallel().scope():\n    make()\n"
    assert repaired(block, 3) == ["with tf.distribute.MirroredStrategy().scope():\n    make()\n"]


@pytest.mark.parametrize(
    "text", ["choose(distribution)\n", "with tf.name_scope('a'):\n    make()\n", "x = 1\n"]
)
def test_other_lines_are_left_alone(text):
    assert repaired(text, 3) == []
