"""The examiner blames the line that chose the cores of a replica, however it reaches the strategy."""

import pytest
from recorded import run, stack, strategy
from strategy_clinic.examiner.rule import mode_rules

NAMED = """
shape = [1, 1, 1, 2]
cores = DeviceAssignment.build(topology, shape, num_replicas=1)
strategy = tf.distribute.TPUStrategy(
    tpu, experimental_device_assignment=cores
)
"""
WRITTEN = """
cores = DeviceAssignment.build(topology, computation_shape=[1, 1, 1, 2])
strategy = tf.distribute.TPUStrategy(tpu, cores)
"""
WITHOUT = "\nstrategy = tf.distribute.TPUStrategy(tpu)\n"


@pytest.mark.parametrize(
    "program, made, blamed",
    [(NAMED, 4, 2), (WRITTEN, 3, 2), (WITHOUT, 2, 2)],
    ids=["a name", "a list", "no assignment"],
)
def test_the_line_that_chose_the_cores(tmp_path, program, made, blamed):
    path = tmp_path / "train.py"
    path.write_text(program)
    recording = run(strategy(location=stack(path, made)))
    frames = mode_rules().blame["fm18"](recording, stack(path, 99))
    assert frames[0].line == blamed
