"""Whether the examiner's findings follow from the names in a program."""

import ast

import pytest
import renamed
import score_folder
from conftest import ROOT

PROGRAM = """
import numpy as np
import keras

BATCH = 8

class Scale(keras.layers.Layer):
    def call(self, rows):
        half = rows / 2
        return half

def rows_of(count, *, seed):
    drawn = np.ones(count)
    def total():
        nonlocal drawn
        return [each for each in drawn]
    return total()

with open(__file__) as text:
    first, *rest = rows_of(BATCH, seed=1)
print("rest", [*map(lambda each: each + 1, rest)])
"""


def names_in(text):
    return {each.id for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name)}


def test_names_of_the_program_mean_nothing_then():
    (text,) = renamed.renamed([PROGRAM])
    kept = {"np", "keras", "rows", "open", "__file__", "print", "map", "rest", "self"}
    assert {name for name in names_in(text) if not name.startswith("q")} <= kept
    assert "def call(self, rows)" in text and "seed=1" in text and "class Scale" in text
    assert "half" not in text and "drawn" not in text and "BATCH" not in text


def test_a_program_computes_the_same_with_other_names(capsys):
    text = "def add(one, two=2):\n    both = one + two\n    return both\n\nfor i in range(3):\n    print(add(i, two=i))\n"
    for each in (text, *renamed.renamed([text])):
        exec(compile(each, "program", "exec"), {})
    assert capsys.readouterr().out == "0\n2\n4\n" * 2


def test_files_of_a_program_find_the_names_of_each_other():
    texts = renamed.renamed(
        ["LIMIT = 3\ndef most():\n    top = LIMIT\n    return top", "from a import LIMIT, most"]
    )
    assert "LIMIT = 3" in texts[0] and "def most" in texts[0] and "top" not in texts[0]


@pytest.mark.replayed
@pytest.mark.parametrize(
    "program, fault",
    [
        ("char_gru", "loss_read_in_replica"),
        ("bearing_life", "state_without_swa"),
        ("mirrorbot", "follow_is_a_number"),
        ("pump", "mean_of_means"),
    ],
)
def test_findings_follow_from_no_name(program, fault):
    chosen = score_folder.variants(ROOT / "tests" / "programs" / "read")
    (variant,) = [each for each in chosen if each.name == f"{program} {fault}"]
    before, after = renamed.changed(variant)
    assert before == after != set()
