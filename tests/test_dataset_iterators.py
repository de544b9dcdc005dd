"""Datasets of programs that are run here are not autotuned, and have the same elements."""

import pytest
from strategy_clinic.programs.run import Job, run_program
from strategy_clinic.setups.parameters import Setup

pytestmark = pytest.mark.slow

PROGRAM = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = tf.data.Dataset.range(8).batch(4)
print([[int(v) for v in batch] for batch in data])
print(iter(data)._dataset.options().autotune.enabled)
chosen = tf.data.Options()
chosen.autotune.enabled = True
print(iter(data.with_options(chosen))._dataset.options().autotune.enabled)
for part in strategy.experimental_distribute_dataset(data):
    print([local.numpy().tolist() for local in strategy.experimental_local_results(part)])
print(int(tf.function(lambda: sum(next(iter(data)) for _ in range(1)))()[1]))
"""


@pytest.mark.parametrize("keras", [3, 2])
def test_a_program_without_autotuning(keras):
    run = run_program(Job(PROGRAM, Setup("mirrored", 2, keras=keras)))
    assert run.error is None
    assert run.printed.splitlines() == [
        "[[0, 1, 2, 3], [4, 5, 6, 7]]",
        "False",
        "True",
        "[[0, 1], [2, 3]]",
        "[[4, 5], [6, 7]]",
        "1",
    ]
