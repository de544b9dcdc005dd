"""Compares what runs print: numbers that depend on the number of devices, although the same weights are trained."""

from __future__ import annotations

import ast
import builtins
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ..observer.events import Frame, LocatedEvent, MetricsReported, Stack
from ..observer.replacements import Replacement
from .blame import (
    MEANS,
    Function,
    called_name,
    calls_in,
    calls_in_file,
    given_in,
    is_over_replicas,
    keyword,
    nodes_of_file,
    nodes_under,
    returns_in,
    statement_at,
)
from .divergence import (
    SENSITIVE,
    Point,
    both_replaced,
    divergent_points,
    first_divergence,
    nudged_run,
    sensitive_points,
)
from .findings import Answers, Replace
from .recording import Recording
from .rule import Runs, least_and_most
from .suspects import replaced_as_expected

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?|\bnan\b|\binf\b")
ANY_NUMBER = re.compile(rf"{NUMBER.pattern}|\d+")
FEWEST_DIGITS = 3  # of a number that is compared
# How messages of TensorFlow's own log begin.
LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:|WARNING: All log messages before absl")
# Words beside a number that is a time or a speed, which depends on the machine.
TIME = re.compile(
    r"\b(time|took|takes|elapsed|duration|speed|throughput|seconds?|secs?|ms|s|per)\b|/s",
    re.IGNORECASE,
)
REWRITTEN = "\r", "\b"  # in lines of progress bars
PART_OF_TOLERANCE = 0.02  # up to which the weights of two runs are the same
SAME, SAME_OF_OTHER_WEIGHTS = 1e-3, 1e-2  # relative
NEAR = 0.05  # of a factor: a smaller last batch changes it a little
PRINTS = {"print", "info", "warning", "error", "debug", "write", "log", "append"}
GATHERS = {"reduce", "experimental_local_results", "gather", "all_reduce"}
PERCENT, BRACES = re.compile(r"%[-+.\d]*[a-zA-Z]"), re.compile(r"\{[^}]*\}")
BETWEEN = re.compile(rf"{BRACES.pattern}|{PERCENT.pattern}|#")
FILLS = {"update_state", "append", "assign", "assign_add", "add"}
MOST_LINES = 40  # that are followed from a number back to where it comes from
WORDS = "with what it prints compared"
# The text around numbers, which line of those with this text, and which number in it.
Place = tuple[str, int, int]


@dataclass(frozen=True)
class PrintedDifference:
    """A number that is printed as another one on more devices, for the first time."""

    few: Recording
    many: Recording
    text: str  # the line on few devices
    label: str  # what it has between the number before and this one
    number: str
    other: str  # in its place on many devices
    factor: float  # by which all numbers differ that do; NaN if these factors are several
    place: Place = ("", 0, 0)

    @property
    def is_by_replicas(self) -> bool:
        """Tells whether the number is multiplied or divided by the number of replicas."""
        wanted = self.many.replicas / self.few.replicas
        return any(abs(self.factor - each) <= NEAR * each for each in (wanted, 1 / wanted))

    @property
    def is_loss(self) -> bool:
        """Tells whether the words before the number say so."""
        return "loss" in self.label.lower()

    @property
    def counts(self) -> tuple[int, int]:
        return self.few.devices, self.many.devices

    def in_place_of(self, run: Recording) -> str:
        """Returns what another run prints in the place of the number; nothing if it prints other lines."""
        text, line, i = self.place
        lines = lines_by_text(run.output).get(text, [])
        return str(NUMBER.findall(lines[line])[i]) if line < len(lines) else ""

    def __str__(self) -> str:
        few, many = self.counts
        return f"{self.number} is printed on {few} and {self.other} on {many} devices, with the same weights"


@dataclass(frozen=True)
class Pair:
    """The runs on the least and the largest number of devices, which train the same weights."""

    few: Recording
    many: Recording
    originals: tuple[Recording, ...] = ()  # the same, of the program as it is
    replaced: frozenset[Replacement] = frozenset()  # so that they do
    ignored: frozenset[Point] = frozenset()  # what changes with the last digits of the weights


def printed_difference(runs: Runs) -> Answers[PrintedDifference | None]:
    """Returns the first number that depends on the number of devices, in runs that train the same weights.

    Numbers that change with the last digits of the weights are not compared. Keras reports its own in `fit`.
    """
    pair = yield from comparable(runs)
    if pair is None or first_other(pair) is None:
        return None
    few, many = pair.originals
    nudge = nudged_run(many, pair.replaced)
    nudged = yield from both_replaced(few, many, nudge.change, nudge.words)
    return first_other(pair, [*zip((pair.few, pair.many), nudged)]) if nudged else None


def is_of_one_replica(stack: Stack) -> bool:
    """Tells whether a line takes the value of one replica, as by `experimental_local_results(x)[0]` or `x.values[0]`."""
    parts = [
        node for node in nodes_under(statement_at(stack[0])) if isinstance(node, ast.Subscript)
    ]
    return any(has_values_of_replicas(part.value) for part in parts if is_number(part.slice))


def has_values_of_replicas(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) == "experimental_local_results"
    return isinstance(node, ast.Attribute) and node.attr == "values"


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def is_through_last_batch(runs: Runs) -> Answers[bool]:
    """Tells whether such a number is the same on all numbers of devices if there is no smaller last batch."""
    pair = yield from comparable(runs, Replacement.FULL_BATCHES)
    return pair is not None and first_other(pair) is None


def comparable(runs: Runs, *also: Replacement) -> Answers[Pair | None]:
    """Returns the runs on the least and the largest number of devices, None if their trainings differ."""
    ends = least_and_most(runs.matched, lambda each: each.finished and not each.task)
    if ends is None:
        return None
    few, many = ends
    if few.of(MetricsReported) or few.examples != many.examples:
        return None
    if not any(differing(few, many, SAME)):
        return None  # without a further run
    replaced = frozenset(also)
    for divergence in runs.divergences[:1]:
        replaced |= replaced_as_expected(divergence)
    originals = few, many
    if replaced:
        changed = yield from both_replaced(few, many, Replace(replaced), WORDS)
        if changed is None:
            return None
        few, many = changed
    ignored: frozenset[Point] = frozenset()
    if first_divergence(few, many):
        nudged = yield nudged_run(originals[1], replaced)
        ignored = sensitive_points(many, nudged) if nudged else ignored
        if first_divergence(few, many, ignored):
            return None
    return Pair(few, many, originals, replaced, ignored)


def first_other(
    pair: Pair, nudged: Sequence[tuple[Recording, Recording]] = ()
) -> PrintedDifference | None:
    """Returns the first number that differs, without those that differ between a run and the same one in `nudged`."""
    few, many = pair.few, pair.many
    tolerance = SAME if is_same_training(pair) else SAME_OF_OTHER_WEIGHTS
    unstable = {place for runs in nudged for place, _ in differing(*runs, SENSITIVE * tolerance)}
    found = [each for each in differing(few, many, tolerance) if each[0] not in unstable]
    if not found:
        return None
    (place, (number, other)), *_ = found
    factors = [float(b) / float(a) for _, (a, b) in found if float(a)]
    near = [each for each in factors if abs(each - factors[0]) <= NEAR * abs(factors[0])]
    factor = factors[0] if len(near) == len(found) else math.nan
    text, line, i = place
    words = lines_by_text(few.output)[text][line]
    label = NUMBER.split(words)[i]
    return PrintedDifference(few, many, words, label, number, other, factor, place)


def is_same_training(pair: Pair) -> bool:
    return not divergent_points(pair.few, pair.many, PART_OF_TOLERANCE) - pair.ignored


def differing(
    one: Recording, other: Recording, tolerance: float
) -> Iterator[tuple[Place, tuple[str, str]]]:
    """Yields the numbers that differ where both runs print the same text as often, in the order in which they are printed."""
    others = lines_by_text(other.output)
    for text, lines in lines_by_text(one.output).items():
        other_lines = others.get(text, [])
        if len(lines) != len(other_lines):
            continue
        for line, both in enumerate(zip(lines, other_lines)):
            for i, (value, other_value) in enumerate(zip(*map(NUMBER.findall, both))):
                if differs(value, other_value, tolerance):
                    yield (text, line, i), (value, other_value)


def differs(one: str, other: str, tolerance: float) -> bool:
    """Tells whether two printed numbers differ by more than a part of them, and by more than their last digit."""
    a, b = float(one), float(other)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) != math.isnan(b)
    if min(significant_digits(one), significant_digits(other)) < FEWEST_DIGITS:
        return False
    return abs(a - b) > max(tolerance * max(abs(a), abs(b)), 1.5 * max(unit(one), unit(other)))


def significant_digits(number: str) -> int:
    return len(re.sub(r"\D", "", number.lower().partition("e")[0]).lstrip("0")) or FEWEST_DIGITS


def unit(number: str) -> float:
    """Returns what the last digit of a printed number counts; 0 for what no float is near, such as 123e4567 in a UUID."""
    digits, _, exponent = number.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    value = float(f"1e{int(exponent or 0) - decimals}")
    return value if math.isfinite(value) else 0.0


def lines_by_text(output: str) -> dict[str, list[str]]:
    """Returns the lines with numbers to compare, by the text around these."""
    found: dict[str, list[str]] = {}
    for line in filter(is_comparable, output.replace("\r\n", "\n").split("\n")):
        if NUMBER.search(line):
            found.setdefault(ANY_NUMBER.sub("#", line), []).append(line)
    return found


def is_comparable(line: str) -> bool:
    """Tells whether a line has no times, which depend on the machine, and is no progress bar or message of TensorFlow's log."""
    is_logged = LOGGED.match(line) is not None
    return not (is_logged or TIME.search(line) or any(each in line for each in REWRITTEN))


# Where a printed number comes from


def source_of(difference: PrintedDifference) -> Stack:
    """Returns the line that joins the values of replicas to the number that is printed; else the line that prints it.

    Where no call prints the words that are written, it is the only line that reduces over replicas.
    """
    paths = program_files(difference.many)
    printed = [
        (sum(map(len, pieces)), path, call)
        for path in paths
        for call in calls_in_file(path)
        if called_name(call) in PRINTS
        if (pieces := constants_in(call)) and are_in_order(pieces, difference.text)
    ]
    if not printed:
        reduced = {
            Frame(path, call.lineno, "")
            for path in paths
            for call in calls_in_file(path)
            if called_name(call) == "reduce" and keyword(call, "axis")
        }
        return tuple(reduced) if len(reduced) == 1 else ()
    _, path, call = max(printed, key=lambda each: each[0])
    joined = joining_line(path, printed_value(call, difference.label))
    return (Frame(path, joined or call.lineno, ""),)


def program_files(run: Recording) -> list[str]:
    """Returns the files of the program that have caused an event."""
    located = [each for each in run.events if isinstance(each, LocatedEvent)]
    return list(dict.fromkeys(frame.path for each in located for frame in each.location))


def constants_in(call: ast.Call) -> list[str]:
    """Returns the parts of text that a call prints as they are written."""
    texts = [
        node.value
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    parts = [part for text in texts for part in BETWEEN.split(text)]
    return [part.strip() for part in parts if re.search(r"[A-Za-z]{2}", part)]


def are_in_order(pieces: list[str], text: str) -> bool:
    for piece in pieces:
        _, found, text = text.partition(piece)
        if not found:
            return False
    return True


def printed_value(call: ast.Call, label: str) -> ast.expr:
    """Returns what a call prints behind these words; the whole call if that is not plain."""
    loops = [each for each in ast.walk(call) if isinstance(each, ast.GeneratorExp | ast.ListComp)]
    parts = [part for given in call.args for part in parts_of(given)]
    for words, value in itertools.pairwise(parts):
        text = words.strip() if isinstance(words, str) else ""
        if text and isinstance(value, ast.expr) and label.strip().endswith(text):
            around = [loop for loop in loops if any(each is value for each in ast.walk(loop))]
            return around[-1] if around else value
    return call


def parts_of(given: ast.expr) -> list[str | ast.expr]:
    """Returns the texts and the values that an argument of a call prints, in their order."""
    texts = [each for each in ast.walk(given) if isinstance(each, ast.JoinedStr)]
    texts.sort(key=lambda each: (each.lineno, each.col_offset))
    pieces = [piece for each in texts for piece in each.values]
    return [
        str(each.value) if isinstance(each, ast.Constant) else each for each in pieces or [given]
    ]


def joining_line(path: str, value: ast.expr) -> int:
    """Follows names in a value back through assignments, fills and returned values; 0 if no line joins values of replicas."""
    every = Sources(nodes_of_file(path))
    waiting: list[ast.AST] = [value]
    seen: set[str] = set()
    fallback = 0
    for _ in range(MOST_LINES):
        if not waiting:
            break
        node = waiting.pop(0)
        joins = [each.lineno for each in ast.walk(node) if is_join(each)]
        if joins:
            return joins[0]
        for name in dict.fromkeys(dotted_names(node)):
            if name in seen:
                continue
            seen.add(name)
            sources = every.of(name)
            calls = [each for each in sources if isinstance(each, ast.Call)]
            filled = [each for each in calls if name in filled_by(each)]
            filled.sort(key=lambda each: set(map(called_name, calls_in(each))).isdisjoint(MEANS))
            fallback = fallback or next((each.lineno for each in filled), 0)
            waiting += sources
    return fallback


def is_join(node: ast.AST) -> TypeGuard[ast.expr]:
    """Tells whether an expression makes one value of those of replicas: a call such as `strategy.reduce`, or `x.values[0]`."""
    if isinstance(node, ast.Subscript):
        return has_values_of_replicas(node.value)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and is_over_replicas(node, GATHERS)
    )


def dotted_names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        name = ast.unparse(each) if isinstance(each, ast.Name | ast.Attribute) else ""
        if name.replace(".", "").isidentifier():
            yield name


class Sources:
    """Where the values of names come from in a file, whose nodes are read once for all names."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.assigned: dict[str, list[ast.AST]] = {}
        self.functions: dict[str, list[Function]] = {}
        for node in nodes:
            if isinstance(node, Function):
                self.functions.setdefault(node.name, []).append(node)
        for node in nodes:
            for name, value in self.given(node):
                self.assigned.setdefault(name, []).append(value)

    def given(self, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
        """Yields the names that a node gives a value, or adds one to, each with this value."""
        yield from ((ast.unparse(target), value) for target, value in given_in(node))
        if isinstance(node, ast.Call):
            names = dict.fromkeys(filled_by(node))
            yield from ((name, node) for name in names if last_part(name) not in self.functions)

    def of(self, name: str) -> list[ast.AST]:
        """Returns what is assigned to a name, added to it, or returned by the function of this name."""
        if name in dir(builtins):
            return []
        functions = self.functions.get(last_part(name), [])
        returned = [each for function in functions for each in returns_in(function)]
        return [*self.assigned.get(name, []), *returned]


def last_part(name: str) -> str:
    return name.rpartition(".")[2]


def filled_by(call: ast.Call) -> list[str]:
    """Returns the object to which a call may add a value: `total.append(x)`, or `mean(x)` for a metric."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in FILLS:
        filled = function.value
        return [ast.unparse(filled.value if isinstance(filled, ast.Subscript) else filled)]
    return [ast.unparse(function)] if call.args else []
