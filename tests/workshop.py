"""What the tests of handouts and grades share."""

import json
import re
from pathlib import Path

import nbformat
from conftest import ROOT
from strategy_clinic import cli
from strategy_clinic.rendering import sources
from strategy_clinic.workshop import scores

SMALL = "fm17_tpu_not_initialised.ipynb"
FM37 = "fm37_loss_scaled_per_replica.ipynb"


def notebook(name: str):
    return nbformat.read(ROOT / "notebooks" / name, as_version=4)


def cell(book, tag: str):
    return next(each for each in book.cells if tag in sources.tags(each))


# Grading


WRONG = cell(notebook(FM37), "exercise").source
PENALTY = "tf.nn.l2_loss(layers[1].bias + 1.0)"
RIGHT = WRONG.replace(PENALTY, f"tf.nn.scale_regularization_loss({PENALTY})")
START = "strategy = tf.distribute."


def first(line: str, text: str = WRONG) -> str:
    """The exercise with one more line at its beginning."""
    assert START in text
    return text.replace(START, f"{line}\n{START}", 1)


def hand_in(folder: Path, texts: dict[str, str]) -> Path:
    """A participant's folder: fm37 once for each text, which stands where its exercise was."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        book = notebook(FM37)
        cell(book, "exercise").source = text
        nbformat.write(book, folder / f"fm37_{name}.ipynb")
    return folder


def graded(folder: Path, *options: str) -> dict[str, scores.Grade]:
    """The grades as the command writes them, by the name of the notebook; its exit status agrees with them."""
    report = folder.parent / "grades.json"
    status = cli.main(["grade", str(folder), "--json", str(report), *options])
    found = [scores.Grade(**each) for each in json.loads(report.read_text())]
    assert status == (0 if all(each.result == "green" for each in found) else 1)
    return {re.sub(r"^fm37_|\.ipynb$", "", each.notebook): each for each in found}
