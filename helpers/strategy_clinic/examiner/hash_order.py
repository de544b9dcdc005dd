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
from .findings import FollowUp, OtherHashes
from .printed import ANY_NUMBER, is_comparable, program_files
from .recording import Recording, Role
from .restarts import loads_at_start
from .rule import Answers as Asked

HASHES, SETS = {"hash"}, {"set", "frozenset"}
# What these return of a set has no order, or one of its own.
WITHOUT_ORDER = {"sorted", "len", "min", "max", "sum", "any", "all", "set", "frozenset"}
WORD = re.compile(r"[^\W\d]\w*")
WORDS = "with other hashes of strings, as each process has them"


def answers_otherwise(run: Recording) -> Asked[Stack]:
    """Returns the line of a set or a hash through which a program that only loads answers otherwise; nothing if there is none."""
    lines = lines_of_hashes(run)
    if not lines or not run.finished or not loads_only(run):
        return ()
    other = yield FollowUp(run, OtherHashes(), WORDS)
    if other is None or not other.finished or not are_other_answers(run, other):
        return ()
    again = yield FollowUp(run, None, "once more, as it was")
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


class Answers(NamedTuple):
    """What does not depend on the order in which a program asks a model."""

    numbers: list[float]
    words: Counter[str]


def answers_in(run: Recording) -> Answers:
    """Returns the sizes of what models answer, the metrics of their evaluations, and the words and numbers that are printed."""
    printed = "\n".join(filter(is_comparable, run.output.splitlines()))
    metrics = [each.value for report in run.of(MetricsReported) for each in report.metrics]
    numbers = [*metrics, *answers_known(run)]
    numbers += map(float, ANY_NUMBER.findall(printed))
    return Answers(
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
    found = []
    for path in program_files(run):
        parents = {
            child: node for node in nodes_of_file(path) for child in ast.iter_child_nodes(node)
        }
        for node in nodes_of_file(path, ast.expr):
            if is_hash(node) or is_set(node) and has_order(parents.get(node)):
                found.append(Frame(path, node.lineno, ""))
    return tuple(found)


def is_hash(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called_name(node) in HASHES


def is_set(node: ast.expr) -> bool:
    is_made = isinstance(node, ast.Call) and called_name(node) in SETS
    return is_made or isinstance(node, ast.Set | ast.SetComp)


def has_order(user: ast.AST | None) -> bool:
    """Tells whether the order of a set may matter to what it is given to."""
    if isinstance(user, ast.Compare):
        return False
    return not (isinstance(user, ast.Call) and called_name(user) in WITHOUT_ORDER)
