"""What a report's code has that speaks for a mode: the [[code]] entries of `words.toml`."""

import functools
import re
from collections.abc import Iterator

from .wordings import CodePattern, mode_words

DEEPEST = 120  # lines of a block that are read
FUNCTION = re.compile(r"\s*(?:async )?def ")
# A function that every replica runs.
RUN = re.compile(
    r"(?i:strategy)\.(?:run|experimental_run(?:_v2)?)\(\s*(\w+)|call_for_each_replica\(\s*(\w+)"
)


def modes_by_code(code: str) -> dict[str | None, str]:
    """Returns for each mode of which the code has a pattern what fits the first one."""
    found: dict[str | None, str] = {}
    for mode, words in mode_words().items():
        matches = filter(None, (match(pattern, code) for pattern in words.code))
        if first := next(matches, ""):
            found[mode] = first
    return found


def match(pattern: CodePattern, code: str) -> str:
    """Returns what in the code fits a pattern; empty if nothing does."""
    if not any(word in code for word in pattern.words.split("|")):
        return ""
    parts = blocks(pattern.within, code) if pattern.within else (code,)
    found = next(filter(None, map(compiled(pattern.has).search, parts)), None)
    if not found or (pattern.unless and compiled(pattern.unless).search(code)):
        return ""
    if pattern.beside and not compiled(pattern.beside).search(code):
        return ""
    return " ".join(found[0].split())


def blocks(within: str, code: str) -> Iterator[str]:
    """Yields the blocks below the lines that an expression fits."""
    names = "|".join(name for names in RUN.findall(code) for name in names if name)
    if "RUN" in within and not names:
        return
    head = compiled(within.replace("RUN", names))
    lines = code.split("\n")
    for number, line in enumerate(lines):
        if head.search(line):
            yield block(lines[number : number + DEEPEST])


def block(lines: list[str]) -> str:
    """Returns a line and what is indented further, with the head of the function that it decorates."""
    depth, taken = indent(lines[0]), [lines[0]]
    in_head = lines[0].lstrip().startswith("@")
    for line in lines[1:]:
        if line.strip() and indent(line) <= depth and not in_head:
            break
        in_head = in_head and not FUNCTION.match(line)
        taken.append(line)
    return "\n".join(taken)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


compiled = functools.lru_cache(256)(re.compile)
