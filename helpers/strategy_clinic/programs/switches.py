"""The lines of a program that a setup decides: those that make the strategy, save a model and load it.

Every other line of a program, comments included, is the same under all setups.
"""

import functools
import re

from ..setups import formats, runtime, strategies
from ..setups.parameters import Setup

# How a statement begins that belongs to the lines that make the strategy.
STRATEGY_STATEMENT = re.compile(
    r"(?:[cg]pu = tf\.config\.list_physical_devices\(|tf\.config\.set_logical_device_configuration\([cg]pu,"
    r"|resolver = tf\.distribute\.cluster_resolver\.|tf\.config\.experimental_connect_to_cluster\("
    r"|tf\.tpu\.experimental\.initialize_tpu_system\(|strategy = tf\.distribute\.)"
)


def for_setup(text: str, setup: Setup, kind: str = "") -> str:
    """Returns the program with the lines of this setup, on the kind of device that this machine has, or on another."""
    kind = kind or ("GPU" if runtime.kind() == "gpu" else "CPU")
    strategy = strategies.TABLE[setup.strategy].lines(setup.devices, kind)
    lines = with_strategy(with_format(text, setup.save_format), strategy)
    return "\n".join(lines) + "\n"


@functools.cache
def with_format(text: str, save_format: str) -> list[str]:
    """Returns the lines of a program that saves in this format; a strategy changes none of them, and a program has many."""
    lines, wanted = text.splitlines(), formats.TABLE[save_format]
    for known in formats.ROWS:
        lines = with_lines(lines, known.saving, wanted.saving)
        lines = with_lines(lines, known.loading, wanted.loading)
        lines = with_lines(lines, known.opening, wanted.opening)
    if uses_numpy(lines) and "import numpy as np" not in lines:
        lines.insert(lines.index("import tensorflow as tf"), "import numpy as np")
    return lines


def uses_numpy(lines: list[str]) -> bool:
    return any(re.search(r"\bnp\.", line.split("#")[0]) for line in lines)


def with_strategy(lines: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Returns the lines with others in place of those, one after the other, that make the strategy first.

    A single line that makes the wanted one already stays, with the arguments that it has.
    """
    numbers = [n for n, line in enumerate(lines) if STRATEGY_STATEMENT.match(line.strip())]
    if not numbers:
        return lines
    first = last = numbers[0]
    while last + 1 in numbers and not lines[last].strip().startswith("strategy ="):
        last += 1
    made = lines[last].strip()
    if first == last and len(wanted) == 1 and made.startswith(wanted[0].removesuffix(")")):
        return lines
    block = [indent_of(lines[first]) + line for line in wanted]
    block[-1] += comment_of(lines[last])
    return lines[:first] + block + lines[last + 1 :]


def with_lines(lines: list[str], known: tuple[str, ...], wanted: tuple[str, ...]) -> list[str]:
    """Returns the lines with those of one format replaced by those of another, wherever they stand."""
    if known == wanted:
        return lines
    changed: list[str] = []
    rest = list(lines)
    while rest:
        found = match(rest[: len(known)], known)
        if found is None:
            changed.append(rest.pop(0))
            continue
        block = [indent_of(rest[0]) + line.format(**found) for line in wanted]
        block[-1] += comment_of(rest[len(known) - 1])
        changed += block
        rest = rest[len(known) :]
    return changed


def match(lines: list[str], templates: tuple[str, ...]) -> dict[str, str] | None:
    """Returns the names that stand for `{model}` or `{loaded}` if these lines are those of the templates."""
    found: dict[str, str] = {}
    if len(lines) < len(templates):
        return None
    for line, template in zip(lines, templates):
        matched = pattern_of(template).fullmatch(without_comment(line).strip())
        if not matched or any(
            found.get(name, value) != value for name, value in matched.groupdict().items()
        ):
            return None
        found |= matched.groupdict()
    return found


@functools.cache
def pattern_of(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\w+)", re.escape(template)))


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def without_comment(line: str) -> str:
    return line.split("  #")[0]


def comment_of(line: str) -> str:
    """Returns the comment at the end of a line with the two blanks before it, or ""."""
    before, mark, comment = line.partition("  #")
    return f"{mark}{comment}" if before.strip() else ""
