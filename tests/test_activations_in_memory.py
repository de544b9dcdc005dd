"""Counted activations, compared with the memory of tensors when gradients begin."""

import pytest
from activations_in_memory import counted, measured, program

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # what is in memory is TensorFlow's


@pytest.mark.parametrize("name, way, devices", [("attention", "fit", 2), ("LSTM", "loop", 1)])
def test_what_is_counted_is_in_memory(name, way, devices):
    text = program(name, way, devices)
    forward, _ = measured(text, devices)
    assert counted(text, devices) == pytest.approx(forward, rel=0.1)
