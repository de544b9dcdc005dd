"""The examiner tells fm15 from fm40, which have one message, by the program."""

from dataclasses import replace

import pytest
from recorded import LINE, modes, run, stack, updated
from strategy_clinic.observer.events import ExceptionRaised, Outcome

CONDITIONAL = "def step(last):\n    tf.cond(last, learn, skip)\n"
NESTED = """
@tf.function
def learn():
    optimizer.apply_gradients(pairs)
def step():
    learn()
"""
MESSAGE = "RuntimeError: `merge_call` called while defining a new graph or a tf.function."


@pytest.mark.parametrize(
    "program, line, mode",
    [(NESTED, 6, "fm40"), (CONDITIONAL, 2, "fm15"), ("if last:\n    learn()\n", 2, "fm15")],
    ids=["nested function", "tf.cond", "if"],
)
@pytest.mark.parametrize("more", ["", "\ngradient_accumulation_steps"], ids=["fm15", "fm40"])
def test_one_message_of_two_modes_is_told_apart_by_the_program(tmp_path, program, line, mode, more):
    """Triage by itself names fm15 for the one text, and fm40 for the other."""
    path = tmp_path / "train.py"
    path.write_text(program)
    raised = ExceptionRaised(stack(path, line), "RuntimeError", f"Traceback{more}\n{MESSAGE}", ())
    assert [name for name, _ in modes(run(raised, outcome=Outcome.RAISED))] == [mode]


def test_the_condition_in_the_step_is_blamed(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def learn():\n"
        "    optimizer.apply_gradients(pairs)\n"
        "def step():\n"
        "    if last:\n"
        "        learn()\n"
        "if True:\n"
        "    strategy.run(step)\n"
    )
    raised = ExceptionRaised(stack(path, 2, 5, 7), "RuntimeError", f"Traceback\n{MESSAGE}", ())
    assert modes(run(raised, outcome=Outcome.RAISED)) == [("fm15", 4)]


def test_a_condition_around_the_strategy_is_none_in_the_step(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("def step():\n    learn()\nif True:\n    strategy.run(step)\n")
    raised = ExceptionRaised(stack(path, 2, 4), "RuntimeError", f"Traceback\n{MESSAGE}", ())
    assert modes(run(raised, outcome=Outcome.RAISED)) == [("fm15", 2)]


def test_an_optimizer_of_keras_that_accumulates_is_blamed_where_it_is_made(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "optimizer = Adam(\n    gradient_accumulation_steps=2)\nif True:\n    model.fit(data)\n"
    )
    raised = ExceptionRaised(stack(path, 4), "RuntimeError", f"Traceback\n{MESSAGE}", ())
    update = replace(updated(), made_at=stack(path, 1), accumulated=2)
    assert modes(run(update, raised, outcome=Outcome.RAISED)) == [("fm40", 2)]
    once = replace(update, accumulated=1)
    assert modes(run(once, raised, outcome=Outcome.RAISED)) == [("fm15", 3)]


@pytest.mark.parametrize("in_branch, mode", [(True, "fm15"), (False, "fm40")])
def test_an_update_in_the_graph_of_a_condition(in_branch, mode):
    """AutoGraph leaves the line out that calls `tf.cond`."""
    raised = ExceptionRaised(LINE, "RuntimeError", f"Traceback\n{MESSAGE}", ())
    update = replace(updated(), in_branch=in_branch)
    assert modes(run(update, raised, outcome=Outcome.RAISED)) == [(mode, 7)]


def test_the_question_whether_a_file_is_the_program_is_no_condition_in_a_step(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("if __name__ == '__main__':\n    learn()\n")
    raised = ExceptionRaised(stack(path, 2), "RuntimeError", f"Traceback\n{MESSAGE}", ())
    assert modes(run(raised, outcome=Outcome.RAISED)) == [("fm40", 2)]
