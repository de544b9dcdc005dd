"""Rules of the examiner for what a run traces, on facts alone: what each must say, and must not say."""

import pytest
from examine_facts import fact, modes, run
from strategy_clinic.examiner.rules.tracing import by_source, nested_function

# fm43


def retraced(new="a Python number"):
    return fact("retraced", calls=5, new=new, place=0)


def test_a_call_that_traces_anew_each_time():
    assert modes(run(retraced())) == [("fm43", 7)]
    assert modes(run(retraced() | {"at": []})) == []


def test_the_line_that_made_the_number_is_blamed(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("for n in range(9):\n    rate = 1 / (n + 1)\n    train_step(rate)\n")
    here = retraced() | {"at": [[str(program), 3, "<module>"]]}
    assert modes(run(here)) == [("fm43", 2)]
    assert modes(run(here | {"place": 1})) == [("fm43", 3)]


# fm40


NESTED = """
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


def frames(program, *lines):
    return [[str(program), line, "f"] for line in lines]


def test_a_nested_function_is_blamed_where_it_is_traced(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(NESTED)
    assert nested_function(run(), frames(program, 4, 6, 9, 10))[0][1] == 2
    assert nested_function(run(), frames(program, 9, 10))[0][1] == 9
    program.write_text(
        NESTED.replace("@tf.function\ndef learn", "learn = tf.function(other)\ndef it")
    )
    assert nested_function(run(), frames(program, 4, 6, 9, 10))[0][1] == 2


CONDITIONAL = "def step(last):\n    tf.cond(last, learn, skip)\n"


@pytest.mark.parametrize(
    "program, line, mode",
    [(NESTED, 6, "fm40"), (CONDITIONAL, 2, "fm15"), ("if last:\n    learn()\n", 2, "fm15")],
)
def test_one_message_of_two_modes_is_told_apart_by_the_program(tmp_path, program, line, mode):
    path = tmp_path / "train.py"
    path.write_text(program)
    said = {
        "text": "RuntimeError: `merge_call` called while defining a new graph or a tf.function."
    }
    for first in ("fm15", "fm40"):
        assert by_source(first, said, frames(path, line)) == mode
        assert (
            by_source(first, {"text": "must specify an aggregation"}, frames(path, line)) == first
        )
