"""Counts words and finds those that are not to be used, in documents, pages, code and the records: python tools/lint_prose.py

`make lint` runs it. It prints a line for each problem, and its exit status is 1 if there is one.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "helpers/strategy_clinic"
# The README can be read in three minutes, and what a teacher needs in nine.
MOST_WORDS = {"README.md": 700, "TEACHING.md": 1800}
# Of the page of a mode.
WORDS, CELLS = range(281, 632), range(13, 22)
# One word for one thing, of those in CONTRIBUTING.md. Descriptions in words.toml are in the words of others.
OTHER_WORDS = {
    r"(?i)\bKeras[\s-](generation|version)|generations? of Keras": "version of Keras",
    r"(?i)(?<!-)\b(patients?|healthy)\b": "correct program, program with a mode",
}
# Words that a newcomer reads twice, each with what to write.
AVOIDED = {
    r"\bYou believe\b": "say what is the case",
    r"\banew\b": "again",
    r"\bshall\b": "must, or should",
    r"\btakes in\b": "processes",
    r"\banother training\b": "other weights",
    r"\bKeras (generation|version)s?\b": "version of Keras",
    r"\bnot so:": "say what differs",
    r"\bOn paper\b": "say what is computed",
}
OF_ONE_MACHINE = re.compile("/home/|/work/|/usr/|site-packages|0x")
WITH_PROSE = (".py", ".md", ".js", ".html", ".txt", ".ipy")


def problems(root: Path) -> list[str]:
    """Returns a sentence for each problem in a project."""
    pages = sorted((root / PACKAGE / "modes").glob("fm*/page.py"))
    documents = [root / name for name in MOST_WORDS]
    found = [
        *map(too_long, documents),
        *itertools.chain.from_iterable(found_in(path, OTHER_WORDS) for path in texts(root)),
        *itertools.chain.from_iterable(map(of_page, pages)),
        *itertools.chain.from_iterable(map(of_record, records(root))),
    ]
    return list(filter(None, found))


def too_long(path: Path) -> str:
    """Returns what is wrong with the length of a document, as a reader sees it: without comments, addresses and signs alone."""
    text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    count = sum(bool(re.search(r"\w", word)) for word in without_addresses(text).split())
    return f"{path.name}: {count} words" if count > MOST_WORDS[path.name] else ""


def without_addresses(text: str) -> str:
    return re.sub(r"\]\([^)]*\)", "]", text)


def texts(root: Path) -> list[Path]:
    """Returns the files with words of ours: code, its docstrings and messages, pages and documents."""
    below = [path for name in (PACKAGE, "book") for path in (root / name).rglob("*")]
    return sorted(path for path in [*below, *root.glob("*.md")] if path.suffix in WITH_PROSE)


def found_in(path: Path, unwanted: Mapping[str, str], text: str = "") -> Iterator[str]:
    for pattern, better in unwanted.items():
        if found := re.search(pattern, text or path.read_text()):
            yield f"{path.parent.name}/{path.name}: {found.group()!r}; {better}"


def of_page(path: Path) -> Iterator[str]:
    """Yields what is wrong with a page: it has some hundred words, and none that a reader has to translate."""
    cells = re.split(r"^# %%", path.read_text(), flags=re.MULTILINE)[1:]
    if len(cells) not in CELLS:
        yield f"{path.parent.name}: {len(cells)} cells"
    prose = "\n".join(map(prose_of, cells))
    count = len(without_addresses(re.sub(r"```.*?```", "", prose, flags=re.DOTALL)).split())
    if count not in WORDS:
        yield f"{path.parent.name}: {count} words"
    yield from found_in(path, AVOIDED, prose)


def prose_of(cell: str) -> str:
    """Returns the text of a cell in jupytext's percent format without the table of messages, "" if it is code."""
    head, _, text = cell.partition("\n")
    prose = re.sub("^# ?", "", text, flags=re.MULTILINE) if "[markdown]" in head else ""
    return re.sub(r"^\| Message \|.*\n(?:\|.*\n)+", "", prose, flags=re.MULTILINE)


def records(root: Path) -> list[Path]:
    return sorted((root / "notebooks" / "records").glob("sweep-*.json"))


def of_record(path: Path) -> Iterator[str]:
    """Yields what the record of a sweep says that belongs to one machine."""
    for cell in json.loads(path.read_text())["cells"]:
        if found := OF_ONE_MACHINE.search(cell["says"]):
            yield f"{path.name}: {cell['cell']} says {found.group()}"


if __name__ == "__main__":
    found = problems(ROOT)
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
