"""The line that the examiner blames for fm40."""

from dataclasses import replace
from importlib import import_module

import pytest
from recorded import run, stack, updated
from strategy_clinic.observer.events import ExceptionRaised

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
        (ASSIGNED.replace("learn =", "learn: Step ="), [4, 6, 9, 10], 2),
        (OTHERWISE, [4, 6, 9, 10], 4),
        (BY_NAME, [4, 6, 9, 10], 2),
    ],
    ids=[
        "decorated",
        "not seen",
        "assigned",
        "with its type",
        "decorated otherwise",
        "imported by its name",
    ],
)
def test_a_nested_function_is_blamed_where_it_is_traced(tmp_path, program, lines, line):
    path = tmp_path / "train.py"
    path.write_text(program)
    assert rule.nested_function.choose(run(), stack(path, *lines))[0].line == line


@pytest.mark.parametrize(
    "accumulated, in_branch, mode", [(2, True, "fm40"), (2, False, "fm40"), (1, True, "fm15")]
)
def test_a_branch_of_an_optimizer_that_accumulates(tmp_path, accumulated, in_branch, mode):
    path = tmp_path / "train.py"
    path.write_text("model.fit(data)\n")
    place = stack(path, 1)
    applied = replace(updated(), made_at=place, accumulated=accumulated, in_branch=in_branch)
    raised = ExceptionRaised(
        stack(path, 1), "RuntimeError", "`merge_call` called while defining", ()
    )
    named = rule.condition_or_nested_graph.mode_of(run(applied), "fm15", raised, place)
    assert named == mode
