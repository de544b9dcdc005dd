"""Whether a program that loads a model answers otherwise in another process, where sets of strings have another order.

Python chooses the hashes of strings anew in each process. A number that a word has by its place in a set, or by `hash`, is
another one in the process that loads, and the loaded weights are those for the first numbers.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ..observer.events import Frame, GradientsApplied, Loaded, MetricsReported, ModelAnswered, Stack
from ..observer.keras_models import MOST_ANSWERS
from .blame import called_name, nodes_of_file
from .divergence import tolerance
from .findings import Answers, FollowUp, OtherHashes, once_more
from .printed import ANY_NUMBER, is_comparable, program_files
from .recording import Recording, Role
from .restarts import loads_at_start

SETS = {"set", "frozenset"}
# What these return of a set has no order, or one of its own: for a program that has no other set, no run is made.
WITHOUT_ORDER = {"sorted", "len", "min", "max", "sum", "any", "all", *SETS}
WORD = re.compile(r"[^\W\d]\w*")
WORDS = "with other hashes of strings, as each process has them"


def answers_otherwise(run: Recording) -> Answers[Stack]:
    """Returns the line of a set or a hash through which a program that only loads answers otherwise; nothing if there is none."""
    lines = lines_of_hashes(run) if run.finished and loads_only(run) else ()
    if not lines:
        return ()
    other = yield FollowUp(run, OtherHashes(), WORDS)
    if other is None or not other.finished or not are_other_answers(run, other):
        return ()
    again = yield once_more(run)
    is_reason = again is not None and not are_other_answers(run, again)
    return lines[:1] if is_reason else ()


def loads_only(run: Recording) -> bool:
    """Tells whether a program loads what another process has saved, and trains nothing: an order changes each training."""
    if run.of(GradientsApplied):
        return False
    if run.role in (Role.RESTARTED, Role.AGAIN):
        return bool(loads_at_start(run))
    return run.role is Role.WATCHED and bool(run.of(Loaded))


def are_other_answers(run: Recording, other: Recording) -> bool:
    """Tells whether two runs answer otherwise, in whatever order they do."""
    mine, theirs = map(answers_in, (run, other))
    is_same = len(mine.numbers) == len(theirs.numbers) and mine.words == theirs.words
    return not is_same or any(
        abs(one - two) > tolerance(run) * max(abs(one), abs(two))
        for one, two in zip(mine.numbers, theirs.numbers)
    )


class Answered(NamedTuple):
    """What does not depend on the order in which a program asks a model."""

    numbers: list[float]
    words: Counter[str]


def answers_in(run: Recording) -> Answered:
    """Returns the sizes of what models answer, the metrics of their evaluations, and the words and numbers that are printed."""
    printed = "\n".join(filter(is_comparable, run.output.splitlines()))
    metrics = [each.value for report in run.of(MetricsReported) for each in report.metrics]
    numbers = [*metrics, *answers_known(run)]
    numbers += map(float, ANY_NUMBER.findall(printed))
    return Answered(
        sorted(filter(math.isfinite, numbers)), Counter(WORD.findall(ANY_NUMBER.sub("#", printed)))
    )


def answers_known(run: Recording) -> Iterator[float]:
    """Yields the sizes of a model's answers to lines of which all are known."""
    by_line: dict[Stack, list[float]] = {}
    for each in run.of(ModelAnswered):
        by_line.setdefault(each.location, []).append(each.output.norm)
    for norms in by_line.values():
        yield from norms if len(norms) < MOST_ANSWERS else ()


def lines_of_hashes(run: Recording) -> Stack:
    """Returns the lines on which a program takes the hash of something, or the order of a set."""
    return tuple(
        Frame(path, node.lineno, "")
        for path in program_files(run)
        for parents in [parents_in(path)]
        for node in nodes_of_file(path, ast.expr)
        if called_in(node) == "hash" or is_set(node) and has_order(parents.get(node))
    )


def parents_in(path: str) -> dict[ast.AST, ast.AST]:
    return {child: node for node in nodes_of_file(path) for child in ast.iter_child_nodes(node)}


def is_set(node: ast.expr) -> bool:
    return called_in(node) in SETS or isinstance(node, ast.Set | ast.SetComp)


def has_order(user: ast.AST | None) -> bool:
    """Tells whether the order of a set may matter to what it is given to."""
    return not isinstance(user, ast.Compare) and called_in(user) not in WITHOUT_ORDER


def called_in(node: ast.AST | None) -> str:
    """Returns the name of the function that an expression calls; nothing if it is no call."""
    return called_name(node) if isinstance(node, ast.Call) else ""
