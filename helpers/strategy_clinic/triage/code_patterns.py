"""What a report's code has that speaks for a mode: code.toml, which says what an entry holds."""

import functools
import re

from . import phrases, wordings

BEGINNING = 5000  # signs that are read of the beginning of a text
DEEPEST = 120  # lines of a block that are read
BLANK = re.compile(r"\n\s*\n")
FUNCTION = re.compile(r"\s*(?:async )?def ")
# A function that every replica runs.
RUN = re.compile(
    r"(?i:strategy)\.(?:run|experimental_run(?:_v2)?)\(\s*(\w+)|call_for_each_replica\(\s*(\w+)"
)


def code_in(text: str) -> str:
    """The beginning of a text with its indentation, up to the first frame of a traceback."""
    begun = BLANK.sub("\n", phrases.ANSI.sub("", text[:BEGINNING]).replace("\r", ""))
    frame = phrases.FRAME.search(begun)
    return begun[: frame.start()] if frame else begun


def spoken_by(text: str) -> dict[str, str]:
    """For each mode of which the code has something, what it has."""
    code, found = code_in(text), {}
    for each in entries():
        if each["mode"] not in found and (said := had_by(each, code)):
            found[each["mode"]] = said
    return found


def had_by(each: dict, code: str) -> str:
    if not any(word in code for word in each["words"].split("|")):
        return ""
    places = blocks(each["within"], code) if "within" in each else (code,)
    match = next(filter(None, map(pattern(each["has"]).search, places)), None)
    if not match or "unless" in each and pattern(each["unless"]).search(code):
        return ""
    if "beside" in each and not pattern(each["beside"]).search(code):
        return ""
    return " ".join(match[0].split())


def blocks(within: str, code: str):
    """The blocks below the lines that an expression fits."""
    names = "|".join(name for names in RUN.findall(code) for name in names if name)
    if "RUN" in within and not names:
        return
    head = pattern(within.replace("RUN", names))
    lines = code.split("\n")
    for number, line in enumerate(lines):
        if head.search(line):
            yield block(lines[number : number + DEEPEST])


def block(lines: list[str]) -> str:
    """A line and what is indented further, with the head of the function that it decorates."""
    depth, taken = indent(lines[0]), [lines[0]]
    head = lines[0].lstrip().startswith("@")
    for line in lines[1:]:
        if line.strip() and indent(line) <= depth and not head:
            break
        head = head and not FUNCTION.match(line)
        taken.append(line)
    return "\n".join(taken)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@functools.lru_cache(256)
def pattern(words: str):
    return re.compile(words)


@functools.cache
def entries() -> list[dict]:
    return wordings.read_toml("code.toml")["code"]
