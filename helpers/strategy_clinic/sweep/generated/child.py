"""The process that runs programs, one after the other: each on one device and on several. A line is a question or an answer."""

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from ...setups import runtime
from ..differences import Outcome, Raised, Result, compare
from ..runs.cells import one_line, split_cpu
from .program import Program

TOLERANCE = 1e-5  # below it nothing is asked
NUDGE = 1e-6  # by which the first weights of a second run differ, to see how much a rounding error grows
GROWS = 30  # times as much as from that nudge a difference must be


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    runtime.choose_keras(3)
    runtime.start_tensorflow()
    split_cpu()
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        question = json.loads(line)
        result = result_of(question["source"], question["replicas"], question["in_turn"])
        print(json.dumps(vars(result)), file=answers, flush=True)


def question(program: Program) -> str:
    """Returns the line that asks for the result of a program."""
    asked = {
        "source": program.source,
        "replicas": program.replicas,
        "in_turn": program.method == Program().method,
    }
    return json.dumps(asked) + "\n"


def result_of(source: str, replicas: int, in_turn: bool) -> Result:
    """Returns how the numbers of a program on so many replicas differ from those of one device."""
    from ..measurements.place import strategy_of
    from ..runs.in_turn import parts_in_turn

    run = function_of(source)
    right, found = values_of(run, strategy_of(0)), values_of(run, strategy_of(replicas))
    result = compare(found, right, TOLERANCE)
    if result.outcome is not Outcome.DIFFERS:
        return result
    with nudged_weights():
        rounding = compare(values_of(run, strategy_of(0)), right, 0.0)
    if result.size and rounding.size and result.size < GROWS * rounding.size:
        return Result(Outcome.SAME)
    if not in_turn:
        return result
    with parts_in_turn(sys.modules["keras"].Model, replicas):
        turns = compare(found, values_of(run, strategy_of(0)), TOLERANCE * GROWS)
    return replace(result, in_turn=turns.outcome is Outcome.SAME)


def function_of(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "program", "exec"), names)
    return names["run"]


def values_of(run: Any, strategy: Any) -> Any:
    """Returns what a program gives under a strategy, or what it raises."""
    try:
        values = run(strategy)
    except Exception as error:
        return Raised(one_line(error))
    return dict(zip(("weights", "reported", "after each batch"), values))


@contextlib.contextmanager
def nudged_weights() -> Iterator[None]:
    """Lets each model that is compiled begin with weights that differ in their last digits."""
    model_class: Any = sys.modules["keras"].Model
    of_keras = model_class.compile

    def compile_nudged(model: Any, *arguments: Any, **named: Any) -> None:
        of_keras(model, *arguments, **named)
        for weight in model.trainable_weights:
            weight.assign(weight * (1 + NUDGE))

    with mock.patch.object(model_class, "compile", compile_nudged):
        yield


if __name__ == "__main__":
    main()
