"""The examiner's rule for fm58: more steps than were asked for, and the line that compiled what raises."""

import functools

import edited_programs
import pytest
from recorded import LINE, OTHER, found, modes, run, stack
from strategy_clinic.observer.events import ExceptionRaised, FitOverran, ModelCompiled

MESSAGE = """\
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node while/cond/Placeholder defined at (most recent call last):

You must feed a value for placeholder tensor 'while/body/_10/while/cond/then/_1/while/cond/Placeholder' with dtype int32
"""
RAISED = ExceptionRaised(OTHER, "InvalidArgumentError", MESSAGE, ())


def compiled(steps=4, location=LINE):
    return ModelCompiled(location, steps)


def test_the_line_that_compiled_is_blamed():
    assert modes(run(compiled(), RAISED)) == [("fm58", 7)]
    assert modes(run(compiled(0), RAISED)) == [("fm58", 20)]
    assert modes(run(compiled(), compiled(1, OTHER), RAISED)) == [("fm58", 7)]


def test_an_optimizer_that_a_replica_builds_raises_the_same_with_one_step():
    assert modes(run(compiled(1), RAISED)) == [("fm32", 20)]


def test_the_argument_of_several_lines_is_blamed(tmp_path):
    text = "model.compile(\n    'sgd',\n    steps_per_execution=4,\n)\n"
    (tmp_path / "train.py").write_text(text)
    at_call = compiled(location=stack(tmp_path / "train.py", 1, 9))
    (finding,) = found(run(at_call, RAISED))
    assert (finding.mode, [frame.line for frame in finding.location.frames]) == ("fm58", [3, 9])


def test_more_steps_than_were_asked_for():
    (finding,) = found(run(compiled(), FitOverran(OTHER, 20, 24, 4)))
    assert (finding.mode, finding.line) == ("fm58", 20)
    assert "20 steps were asked for, and 24 were taken" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        (compiled(),),
        (compiled(1), FitOverran(OTHER, 20, 24, 1)),
        (compiled(), ExceptionRaised(OTHER, "ValueError", "ValueError: no data", ())),
    ],
    ids=["as many as were asked for", "steps of its own in a callback", "another exception"],
)
def test_near_misses(events):
    assert modes(run(*events)) == []


# Repairs

HEAD = "import tensorflow as tf\n"


repaired = functools.partial(edited_programs.repaired, "fm58", HEAD)


def test_one_step_in_each_call():
    assert repaired("m.compile('sgd', steps_per_execution=8)\n", 2) == [
        "m.compile('sgd', steps_per_execution=1)\n"
    ]
    assert repaired("m.compile('sgd', steps_per_execution=n)\n", 2) == []
    assert repaired("m.compile('sgd')\n", 2) == []
