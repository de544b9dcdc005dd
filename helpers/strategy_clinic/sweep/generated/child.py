"""The process that runs programs, one after the other: each on one device and on several. A line is a question or an answer."""

import contextlib
import json
import os
import sys
import tempfile
import warnings
from dataclasses import replace
from typing import Any

from ...base import dataset_iterators
from ...setups import runtime
from ..devices import split_cpu
from ..differences import DIFFERENT, Outcome, Raised, Result, compare
from ..runs.measured import one_line
from ..runs.rounding import GROWS, nudged_weights
from .program import Program

TOLERANCE = 1e-5  # below it nothing is asked
Values = dict[str, Any] | Raised


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    runtime.choose_keras(3)
    runtime.start_tensorflow()
    split_cpu()
    dataset_iterators.turn_off_autotuning(setattr)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(vars(result_of(**json.loads(line)))), file=answers, flush=True)


def question(program: Program) -> str:
    """Returns the line that asks for the result of a program."""
    asked = {
        "source": program.source,
        "twins": program.twins,
        "replicas": program.replicas,
        "in_turn": program.method == Program().method and not program.interrupted,
        "nudge": program.nudge,
    }
    return json.dumps(asked) + "\n"


def result_of(
    source: str, twins: dict[str, str], replicas: int, in_turn: bool, nudge: float
) -> Result:
    """Returns how the numbers of a program differ on so many replicas, from those of its twins, or in themselves."""
    run = function_of(source)
    (right, pairs), (found, more) = values_of(run, 0), values_of(run, replicas)
    result = significant(compare(found, right, TOLERANCE), run, right, nudge)
    if result.outcome is Outcome.DIFFERS and in_turn:
        return replace(result, in_turn=is_same_in_turn(run, found, replicas))
    if result.outcome in DIFFERENT:
        return result
    for name, twin in twins.items():
        other = weights_of(values_of(function_of(twin), 0)[0])
        result_of_twin = compare(weights_of(right), other, TOLERANCE)
        result_of_twin = significant(result_of_twin, run, right, nudge)
        if result_of_twin.outcome in DIFFERENT:
            return replace(result_of_twin, says=f"than {name}: {result_of_twin.says}")
    return contradiction(pairs) or contradiction(more) or result


def significant(result: Result, run: Any, right: Values, nudge: float) -> Result:
    """Returns a result, or that nothing differs where a rounding error grows as much."""
    if result.outcome is not Outcome.DIFFERS or not result.size:
        return result
    with nudged_weights(sys.modules["keras"].Model, nudge):
        rounding = compare(values_of(run, 0)[0], right, 0.0)
    if rounding.size and result.size < GROWS * rounding.size:
        return Result(Outcome.SAME)
    return result


def is_same_in_turn(run: Any, found: Values, replicas: int) -> bool:
    from ..runs.in_turn import parts_in_turn

    with parts_in_turn(sys.modules["keras"].Model, replicas):
        turns = compare(found, values_of(run, 0)[0], TOLERANCE * GROWS)
    return turns.outcome is Outcome.SAME


def weights_of(values: Values) -> Values:
    return values if isinstance(values, Raised) else {"weights": values["weights"]}


def contradiction(pairs: dict[str, tuple[Any, Any]]) -> Result | None:
    """Returns how what a program says of itself differs from what is so."""
    said = {name: one for name, (one, _) in pairs.items()}
    result = compare(said, {name: other for name, (_, other) in pairs.items()}, TOLERANCE * GROWS)
    return result if result.outcome in DIFFERENT else None


def function_of(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "program", "exec"), names)
    return names["run"]


def values_of(run: Any, replicas: int) -> tuple[Values, dict[str, tuple[Any, Any]]]:
    """Returns what a program gives on so many replicas, or what it raises, and the pairs that must be equal."""
    from ..measurements.place import strategy_of

    keras: Any = sys.modules["keras"]
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            values, pairs = run(strategy_of(replicas))
    except Exception as error:
        return Raised(one_line(error)), {}
    finally:
        keras.config.set_dtype_policy("float32")
        keras.distribution.set_distribution(None)
    return values, pairs


if __name__ == "__main__":
    main()
