"""The examiner's rule for fm59: one of several workers has ended, and the others wait in a step, or give up."""

import functools
import textwrap

import edited_programs
import pytest
from recorded import modes, run, stack
from strategy_clinic.examiner.recording import ProcessStacks, Role, ThreadStack
from strategy_clinic.observer.events import ExceptionRaised, Frame, Outcome

LIBRARY = Frame("/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
SAVING = Frame("/site-packages/tensorflow/python/checkpoint/checkpoint.py", 9, "save")
READING = Frame("/tensorflow/python/distribute/values.py", 9, "_get_cross_replica")
TIMED_OUT = (
    "DeadlineExceededError: Graph execution error:\n\nCollective has timed out during execution."
)

task = functools.partial(run, role=Role.TASK)
ENDED = task(task="worker 0", steps=4)


def waiting(*inner, path="/program/train.py", line=7, name="worker 1", busy=False):
    own = (Frame(path, line, "<module>"),)
    threads = (ThreadStack((*inner, LIBRARY, *own), own),)
    stacks = (ProcessStacks(1, "python", threads, busy),)
    return task(task=name, steps=4, outcome=Outcome.HANGS, stacks=stacks)


def raised(traceback=TIMED_OUT, path="/program/train.py", line=7, name="worker 1"):
    error = ExceptionRaised(stack(path, line), "DeadlineExceededError", traceback, ())
    return task(error, task=name, steps=4, outcome=Outcome.RAISED)


@pytest.mark.parametrize("other", [waiting(), raised()], ids=["waits", "gives up"])
def test_a_worker_that_waits_for_one_that_has_ended(other):
    assert modes(ENDED, other) == [("fm59", 7)]
    assert modes(other, ENDED) == [("fm59", 7)]


@pytest.mark.parametrize(
    "recordings, found",
    [
        ([ENDED, waiting(SAVING)], [("fm47", 7)]),
        ([ENDED, waiting(READING)], [("fm47", 7)]),
        ([waiting(name="worker 0"), waiting()], [("hangs", 7)]),
        ([ENDED, waiting(busy=True)], []),
        ([ENDED, raised("ValueError: no data")], []),
        ([ENDED, raised(f"/tensorflow/python/checkpoint/checkpoint.py\n{TIMED_OUT}")], []),
        ([raised(name="worker 0"), raised()], []),
        ([waiting(name="")], [("hangs", 7)]),
    ],
    ids=[
        "in a save",
        "for a value",
        "both wait",
        "computes",
        "another exception",
        "gives up in a save",
        "both give up",
        "one process",
    ],
)
def test_near_misses(recordings, found):
    assert modes(*recordings) == found


# The line that ends the loop

LOOPS = [
    ("for batch in data:\n    step(batch)  # waits\n", 1),
    ("for number in range(9):\n    step()  # waits\n    if loss() < 1:\n        break\n", 3),
    ("while True:\n    step()  # waits\n    with log:\n        if late():\n            break\n", 4),
    ("while loss > 1:\n    loss = step()  # waits\n", 1),
    (
        "while True:\n    try:\n        step()  # waits\n    except StopIteration:\n        break\n",
        5,
    ),
    ("for batch in data:\n    step(batch)  # waits\n    if late():\n        break\n", 2),
    ("while True:\n    step()  # waits\n    for x in y:\n        break\n", 2),
    ("for epoch in range(2):\n    for batch in data:\n        step(batch)  # waits\n", 2),
    ("step()  # waits\n", 1),
]


@pytest.mark.parametrize("text, line", LOOPS)
def test_the_only_line_that_can_end_the_loop_is_blamed(tmp_path, text, line):
    (tmp_path / "train.py").write_text(text)
    place = {
        "path": str(tmp_path / "train.py"),
        "line": text[: text.index("# waits")].count("\n") + 1,
    }
    assert modes(ENDED, waiting(**place)) == [("fm59", line)]
    assert modes(ENDED, raised(**place)) == [("fm59", line)]


# Repairs

repaired = functools.partial(edited_programs.repaired, "fm59", "import tensorflow as tf\n")
TOGETHER = 's.reduce("MEAN", losses, axis=None)'


def test_the_mean_of_all_workers_decides():
    text = "if s.experimental_local_results(losses)[0] < 1.0:\n    stop()\n"
    assert repaired(text, 2) == [f"if {TOGETHER} < 1.0:\n    stop()\n"]
    text = "loss = s.experimental_local_results(losses)[0]\nif loss < 1.0:\n    stop()\n"
    assert repaired(text, 3) == [f"loss = {TOGETHER}\nif loss < 1.0:\n    stop()\n"]


@pytest.mark.parametrize(
    "text", ["if late():\n    stop()\n", "for batch in data:\n    step(batch)\n", "step()\n"]
)
def test_another_form_is_left_alone(text):
    assert repaired(textwrap.dedent(text), 2) == []
