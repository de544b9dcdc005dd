"""The line that the examiner blames for fm40."""

from importlib import import_module

import pytest
from recorded import run, stack

rule = import_module("strategy_clinic.modes.fm40_merge_call_in_nested_graph.rule")
DECORATED = """
@tf.function
def learn():
    optimizer.apply_gradients(pairs)
def step():
    learn()
@tf.function
def train_step():
    strategy.run(step)
train_step()
"""
OTHERWISE = DECORATED.replace("@tf.function\ndef learn", "@tf.recompute_grad\ndef learn")
BY_NAME = DECORATED.replace("@tf.function\ndef learn", "@function\ndef learn")
ASSIGNED = DECORATED.replace("@tf.function\ndef learn", "learn = tf.function(other)\ndef it")


@pytest.mark.parametrize(
    "program, lines, line",
    [
        (DECORATED, [4, 6, 9, 10], 2),
        (DECORATED, [9, 10], 9),
        (ASSIGNED, [4, 6, 9, 10], 2),
        (OTHERWISE, [4, 6, 9, 10], 4),
        (BY_NAME, [4, 6, 9, 10], 2),
    ],
    ids=["decorated", "not seen", "assigned", "decorated otherwise", "imported by its name"],
)
def test_a_nested_function_is_blamed_where_it_is_traced(tmp_path, program, lines, line):
    path = tmp_path / "train.py"
    path.write_text(program)
    assert rule.nested_function.choose(run(), stack(path, *lines))[0].line == line
