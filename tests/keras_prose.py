"""Ordinary prose about Keras: the sentences of the docstrings of its installed layers, losses and optimizers."""

import ast
import functools
import importlib.util
import re
from pathlib import Path

from statements import statements

KERAS = Path(importlib.util.find_spec("keras").origin).parent / "src"
ROOMS = ("layers", "losses", "optimizers")
EACH = 3  # of so many sentences one is taken, so that a law takes a second
CODE = re.compile(r"```.*?```|^>>>.*$|^\.\.\. .*$", re.DOTALL | re.MULTILINE)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


@functools.cache
def sentences() -> tuple[str, ...]:
    """Each once, of six words or more, without the code of examples."""
    found = {}
    for room in ROOMS:
        for path in sorted((KERAS / room).rglob("*.py")):
            if "test" not in path.stem.split("_"):
                found |= dict.fromkeys(each for text in docstrings(path) for each in parts(text))
    return tuple(found)[::EACH]


def docstrings(path: Path):
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield CODE.sub("", text)


def parts(text: str):
    for paragraph in re.split(r"\n\s*\n", text):
        for each in SENTENCE.split(" ".join(paragraph.split())):
            if len(each.split()) >= 6:
                yield each
