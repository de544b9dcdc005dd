"""Programs in cells: what is kept of them, where a line is, and what cannot be a program. No TensorFlow."""

import json
import textwrap

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from recorded import run
from strategy_clinic import cli
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner import cells
from strategy_clinic.examiner.cells import Cell
from strategy_clinic.examiner.findings import Evidence, Examination, Finding, Location, Text
from strategy_clinic.examiner.frontends import program_input
from strategy_clinic.examiner.report import html, machine_readable, text
from strategy_clinic.observer.events import Frame

MIXED = """\
%pip install keras
import os
for name in os.listdir():
    !ls \\
      -l
files = !ls
text = '''
%this stays
'''
os?
rest = 7 % 2
"""


def listing(*texts):
    return cells.listing_of("train.ipynb", [Cell(n, text) for n, text in enumerate(texts, 1)])


def test_magics_and_shell_lines_are_left_out_and_named():
    made = listing(MIXED, "%%bash\nrm -r x", "%%time\nsum = 1\n")
    names = {}
    exec(compile(made.text, "cells", "exec"), names)
    assert (names["text"], names["rest"], names["sum"]) == ("\n%this stays\n", 1, 1)
    assert "rm" not in made.text and "ls" not in made.text.replace("os.listdir", "")
    gone = [
        "1, line 1 `%pip",
        "1, line 4 `!ls",
        "1, line 6 `files",
        "1, line 10 `os?`",
        "2, line 1 `%%bash`",
    ]
    assert [place in told for place, told in zip(gone, made.left_out)] == [True] * 5
    assert len(made.left_out) == 5
    (note,) = made.notes
    assert note.endswith("line 6 `files = !ls` and 2 more")


def test_what_a_process_has_no_need_of_is_left_out_without_a_word():
    assert listing("%load_ext strategy_clinic\n%matplotlib inline\nx = 1").left_out == ()


@pytest.mark.parametrize("code", ["rest", "name in os", "sum"])
def test_a_line_is_known_by_cell_and_line(code):
    texts = [MIXED, "%%bash\nrm -r x", "%%time\nsum = 1\n"]
    made = listing(*texts)
    number = next(n for n, line in enumerate(made.text.splitlines(), 1) if code in line)
    line = made.line(number)
    assert code in texts[line.cell - 1].splitlines()[line.number - 1] == line.code


def test_what_must_stand_first_stands_first():
    made = listing("import os", "from __future__ import annotations\nx: nothing = 1")
    exec(compile(made.text, "cells", "exec"), {})
    assert made.line(3) == cells.Line(2, 1, "from __future__ import annotations")


def test_a_form_feed_ends_no_line():
    made = listing("x = '''\f'''\ny = 1")
    assert made.line(3).code == "y = 1"


@pytest.mark.parametrize(
    "texts, says",
    [
        ([], "is empty"),
        (["", "  \n"], "is empty"),
        (["# later"], "nothing but comments"),
        (["!ls", "%%bash\nls"], "only magics and shell lines (cell 1, line 1 `!ls`, cell 2"),
    ],
)
def test_what_is_no_program(texts, says):
    with pytest.raises(UserError, match="so there is no program to examine") as refused:
        listing(*texts)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "text, says",
    [
        ("x = 1\na b", "train.ipynb, cell 1, line 2 is not Python (invalid syntax): 'a b'"),
        ("def f(:", "cell 1, line 1 is not Python"),
        ("await x", "'await' outside function"),
        ("x = '\0'", "train.ipynb is not Python"),
    ],
)
def test_what_is_no_python(text, says):
    with pytest.raises(UserError) as refused:
        cells.require_python(listing(text))
    assert says in str(refused.value)


# Notebooks


@pytest.fixture
def notebook(tmp_path):
    made = new_notebook(
        cells=[
            new_markdown_cell("# A training\n\nx = 1"),
            new_code_cell(
                "x = 1\nüber = 2", outputs=[nbformat.v4.new_output("stream", text="y = 3")]
            ),
            new_code_cell("x = 1\ny = 3\ny = 3\n"),
        ]
    )
    path = tmp_path / "train.ipynb"
    nbformat.write(made, path)
    return path


@pytest.mark.parametrize("cell, line", [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)])
def test_a_line_is_found_in_the_file_of_a_notebook(notebook, cell, line):
    number = cells.line_in_file(notebook, cell, line)
    text = cells.read_cells(notebook)[cell - 1].text.splitlines()[line - 1]
    assert (
        text in json.loads("[" + notebook.read_text().splitlines()[number - 1].strip(" ,") + "]")[0]
    )
    taken = {cells.line_in_file(notebook, c, n) for c in (1, 2) for n in (1, 2, 3)}
    assert len(taken) == 6 and cells.line_in_file(notebook, 1, 3) == 0


def test_a_line_that_the_file_does_not_have_alone(notebook):
    told = json.loads(notebook.read_text())
    for each in told["cells"]:
        each["source"] = "".join(each["source"])
    notebook.write_text(json.dumps(told))
    assert cells.line_in_file(notebook, 2, 1) == 0


SCRIPT = "/tmp/cells.py"


def at(number, path=SCRIPT):
    return Location((Frame(path, number, "f"),))


def examined(listing, code):
    """An examination that has found something at a line, as it is after its lines have been located."""
    number = next(n for n, line in enumerate(listing.lines, 1) if code in line.code)
    message, proof = Text("no <b>checkpoint</b> holds it"), Text(at(number), " saved it")
    finding = Finding("fm05", at(number), Evidence.OBSERVED, message, proof, (2,))
    return Examination(listing.name, [run()], [finding.relocated(listing.locate)])


def test_reports_name_cell_and_line(notebook, monkeypatch):
    monkeypatch.chdir(notebook.parent)
    result = examined(program_input.notebook_listing(notebook, "train.ipynb"), "y = 3")
    assert text.in_words(result).startswith("train.ipynb, cell 2, line 2  fm05  no <b>")
    written = machine_readable.as_json(result)["findings"][0]
    place = [written[name] for name in ("file", "cell", "line", "code")]
    assert place == [str(notebook), 2, 2, "y = 3"]
    assert written["proof"] == "cell 2, line 2 saved it"
    (result,) = machine_readable.as_sarif(result, notebook.parent)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    line = place["region"]["startLine"]
    assert "y = 3" in notebook.read_text().splitlines()[line - 1]
    assert place["artifactLocation"] == {"uri": "train.ipynb"}


@pytest.mark.parametrize(
    "text, says",
    [
        ("no json", "is not a notebook"),
        ('{"cells": []}', "is empty"),
        ("[]", "is not a notebook"),
        (
            nbformat.writes(
                new_notebook(
                    metadata={"kernelspec": {"language": "R", "name": "ir", "display_name": "R"}}
                )
            ),
            "written in R",
        ),
        (nbformat.writes(new_notebook()), "is empty"),
        (nbformat.writes(new_notebook(cells=[new_code_cell("a b")])), "is not Python"),
        (None, "There is no file"),
    ],
)
def test_a_notebook_that_cannot_be_examined_is_one_sentence(
    tmp_path, monkeypatch, capsys, text, says
):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "train.ipynb").write_text(text)
    assert cli.main(["examine", "train.ipynb"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and says in said


# The card


def test_a_card_marks_the_line_and_escapes_everything():
    program = (
        "x = '<script>alert(1)</script>'\n" + "y = 1\n" * 40 + "guilty = '<i>'\n" + "z = 1\n" * 40
    )
    made = program_input.pasted_listing(program)
    result = examined(made, "guilty")
    result.notes.append("<img src=x>")
    page = html.card_of_program(result, made, "").split("</style>")[1]
    assert "<script" not in page and "<img" not in page and "<i>&#39;" not in page
    assert "data-clinic-marked='42'" in page and page.count("data-clinic-marked") == 1
    marked = page.index("data-clinic-marked")
    assert marked < page.index("fm05 untracked_variable") < page.index("z = 1")
    assert (
        "<summary>lines 1 to 37</summary>" in page and "<summary>lines 47 to 82</summary>" in page
    )
    assert "href='fm05_untracked_variable.ipynb'" in page
    unpublished = html.card_of_program(result, made, None).split("</style>")[1]
    assert "<code>fm05_untracked_variable.ipynb</code>" in unpublished and "href" not in unpublished


def test_a_card_says_where_a_program_failed_and_that_nothing_was_found():
    made = listing("x = 1", "y = 2")
    failed = Examination("train.ipynb", [run()], failure="KeyError: 'x'")
    failed.failed_at = made.locate(at(3))
    page = html.card_of_program(failed, made, "")
    assert "in a way that is none of the modes" in page and "It failed here." in page
    assert "KeyError: &#39;x&#39; (cell 2, line 1)" in page
    assert page.index("y = 2") < page.index("It failed here.")
    quiet = Examination("train.ipynb", [run()])
    page = html.card_of_program(quiet, made, "")
    assert "nothing found in 1 run" in page and "It failed here." not in page
    assert "data-clinic-outcome='works'" in page
    stopped = Examination("train.ipynb", [run()], stopped=True)
    assert "stopped before all runs" in html.card_of_program(stopped, made, "")


def test_a_finding_without_a_line_stands_above_the_program():
    made = listing("x = 1")
    compared = Text("compared 1 and 2 devices")
    finding = Finding("fm37", Location(), Evidence.COMPARED, Text("too large"), compared)
    page = html.card_of_program(Examination("train.ipynb", [], [finding]), made, "")
    assert page.index("too large") < page.index("x = 1")


def test_text_that_was_copied_with_its_margin():
    assert program_input.pasted_listing(textwrap.indent("if x:\n    y = 1", "    ")).text.endswith(
        "if x:\n    y = 1\n"
    )
