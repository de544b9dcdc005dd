"""Judges one attempt at an exercise by what it prints: as in the notebook, on other numbers of devices, and with other data."""

import ast
import math
import re
from dataclasses import dataclass

from ..base.errors import Unavailable
from ..modes.failure_mode import FailureMode
from ..programs.checks import SilentFailure
from ..programs.error_text import last_line
from ..programs.run import Job, Run, judged, run_program
from . import doubts, hints
from .exercises import Attempt
from .expected import ExpectedRun, ExpectedRuns, text_for
from .variations import OtherData, require_data

NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
ROUNDING = 1e-3  # of numbers that were computed in another order


@dataclass(frozen=True)
class Judgement:
    """`result` is green, red, not run, or to read: it prints what is right, and a person has to judge the rest."""

    result: str
    says: str
    network: str = ""
    files: str = ""


def judge(mode: FailureMode, attempt: Attempt, expected: ExpectedRuns, seconds: float) -> Judgement:
    """Runs an attempt as often as it takes to know, and returns the judgement."""
    own = expected.runs[0]
    run = run_with(attempt.program, own, expected, seconds)
    if run.error:
        return wrong_as_shown(mode, run, seconds)
    unsure = doubts_of(attempt, expected)
    for right in other_runs(attempt, expected):
        text = text_for(attempt.program, right, expected.data)
        other = run_with(text, right, expected, seconds)
        if not other.ended:  # on a busy machine, TensorFlow sometimes waits for ever
            other = run_with(text, right, expected, seconds)
        if other.error:
            where = place(attempt, right, expected, seconds)
            return Judgement("red", elsewhere(where, other), run.network, run.files)
    words = "; ".join([" ".join(run.printed.split()), *unsure])
    return Judgement("to read" if unsure else "green", words, run.network, run.files)


def other_runs(attempt: Attempt, expected: ExpectedRuns) -> list[ExpectedRun]:
    """Returns one run with other data, if the attempt has the data of its exercise, and one for each other number of devices."""
    varied = [right for right in expected.runs if right.variation][:1]
    found = [] if other_data(attempt, expected) else varied
    seen = {right.devices for right in found}
    plain = [right for right in expected.runs[1:] if not right.variation]
    return [*found, *(right for right in plain if right.devices not in seen)]


def other_data(attempt: Attempt, expected: ExpectedRuns) -> str:
    """Returns a sentence if an attempt has not the data of its exercise."""
    try:
        require_data(attempt.program, expected.data)
        return ""
    except OtherData as reason:
        return str(reason)


def run_with(text: str, right: ExpectedRun, expected: ExpectedRuns, seconds: float) -> Run:
    """Runs a program as a right result was recorded; the run has an error if it is not that one, but for rounding."""
    setup = expected.setup.but(devices=right.devices)
    run = run_program(Job(text, setup, isolated=True, seconds=seconds))
    if run.error is None and right is not expected.runs[0] and alike(run.printed, right.prints):
        return run
    return judged(run, right.prints)


def alike(printed: str, right: str) -> bool:
    """Returns whether two texts differ in blanks and in the last digits of their numbers only."""
    (words, numbers), (other_words, others) = map(parts_of, (printed, right))
    near = [
        math.isclose(*pair, rel_tol=ROUNDING, abs_tol=ROUNDING) for pair in zip(numbers, others)
    ]
    return words == other_words and len(numbers) == len(others) and all(near)


def parts_of(text: str) -> tuple[str, list[float]]:
    """Returns a text without its numbers and blanks, and its numbers."""
    return "".join(NUMBER.sub(" # ", text).split()), [float(each) for each in NUMBER.findall(text)]


def doubts_of(attempt: Attempt, expected: ExpectedRuns) -> list[str]:
    task = ast.parse(attempt.task)
    names = doubts.printed_names(task)
    of_task, of_attempt = (doubts.facts_of(each, names) for each in (task, attempt.tree))
    found = doubts.doubts(of_attempt, of_task, expected.solution, expected.constant)
    return [*filter(None, [other_data(attempt, expected)]), *found]


# In words


def wrong_as_shown(mode: FailureMode, run: Run, seconds: float) -> Judgement:
    """Returns the judgement on an attempt that is wrong under the notebook's own setup, with a hint if there is one."""
    result = "not run" if isinstance(run.error, Unavailable) else "red"
    words = why(run, seconds)
    is_wrong = isinstance(run.error, SilentFailure)
    raised = "" if is_wrong else f"{type(run.error).__name__}: {run.error}"
    hint = hints.hint_for(mode.id, run.printed + raised)
    return Judgement(result, f"{words}. Hint: {hint}" if hint else words, run.network, run.files)


def why(run: Run, seconds: float) -> str:
    """Returns in words why a run is not right."""
    if not run.ended and isinstance(run.error, TimeoutError):
        return f"it did not end within {seconds:g} seconds"
    if not run.ended:
        return "its process ended before the last line of the program, as by exit() or for lack of memory"
    assert run.error
    if isinstance(run.error, SilentFailure | Unavailable):
        return last_line(run.error)
    return f"{type(run.error).__name__}: {last_line(run.error)}"


def place(attempt: Attempt, right: ExpectedRun, expected: ExpectedRuns, seconds: float) -> str:
    """Returns in words where an attempt is wrong: on another number of devices, or else with other data."""
    plain = [
        each for each in expected.runs[1:] if (each.devices, each.variation) == (right.devices, "")
    ]
    if right.variation and not (
        plain and run_with(attempt.program, plain[0], expected, seconds).error
    ):
        return "with other data"
    return f"on {right.devices} device{'s' * (right.devices > 1)}"


def elsewhere(where: str, run: Run) -> str:
    """Returns in words that an attempt is right in the notebook only; what is right with other data stays unsaid."""
    what = "it does not end, or ends too early"
    if run.ended:
        raises = not isinstance(run.error, SilentFailure)
        what = f"it raises {type(run.error).__name__}" if raises else "it prints something wrong"
    return f"right as in the notebook, but {where} {what}"
