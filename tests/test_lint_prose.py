"""What `make lint` says about words, of a small project: nothing of one as it should be, and something of each mistake."""

import json

import lint_prose
import pytest

PAGE = "helpers/strategy_clinic/modes/fm99_trial/page.py"
CODE = "helpers/strategy_clinic/trial.py"
RECORD = "notebooks/records/sweep-tensorflow-0.json"
CELL = '\n# %% tags=["open"]\nshall = "anew"\n'


def page(words: int, cells: int = 15, more: str = "") -> str:
    """A page with so many words, none of which stand in a block, in code or in an address."""
    block = "# ```\n# a block of four words\n# ```\n"
    prose = f"# {'word ' * (words - len(more.split()) - 1)}[word](address)\n# {more}\n"
    return f"# %% [markdown]\n{block}{prose}{CELL * (cells - 1)}"


def record(says: str) -> str:
    return json.dumps({"cells": [{"cell": "loss/A", "says": says}]})


RIGHT = {
    "README.md": "word " * 700 + "- [](address) <!-- a comment\nof two lines -->",
    "TEACHING.md": "word " * 1800,
    "book/index.md": "the version of Keras",
    CODE: '"""Words of a module."""\n',
    PAGE: page(300),
    RECORD: record("ValueError: x"),
}
WRONG = [
    ("README.md", "word " * 701, "README.md: 701 words"),
    ("TEACHING.md", "word " * 1801, "TEACHING.md: 1801 words"),
    ("CONTRIBUTING.md", "The Keras version.", "'Keras version'; version of Keras"),
    ("book/index.md", "the generation of keras", "'generation of keras'; version of Keras"),
    (CODE, '"""A healthy program."""', "'healthy'; correct program"),
    (PAGE, page(280), "fm99_trial: 280 words"),
    (PAGE, page(632), "fm99_trial: 632 words"),
    (PAGE, page(300, cells=12), "fm99_trial: 12 cells"),
    (PAGE, page(300, cells=22), "fm99_trial: 22 cells"),
    (PAGE, page(300, more="You believe that."), "'You believe'; say what is the case"),
    (RECORD, record("ValueError: in /home/me/x.py"), "loss/A says /home/"),
]


@pytest.fixture
def project_of_words(tmp_path):
    for name, text in RIGHT.items():
        write(tmp_path / name, text)
    return tmp_path


def write(path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_nothing_is_said_of_what_is_right(project_of_words):
    assert lint_prose.problems(project_of_words) == []


@pytest.mark.parametrize("name, text, says", WRONG, ids=[says for *_, says in WRONG])
def test_a_mistake_is_found(project_of_words, name, text, says):
    write(project_of_words / name, text)
    (problem,) = lint_prose.problems(project_of_words)
    assert says in problem
