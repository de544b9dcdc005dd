"""Programs in cells: what is kept of them, where a line is, and what cannot be a program. No TensorFlow."""

import json
import os
import subprocess
import sys
import textwrap
from types import ModuleType

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
from strategy_clinic.observer import notebook
from strategy_clinic.observer.events import Frame

HOME = os.environ.get("HOME", "$HOME")
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


def test_installations_and_questions_are_left_out_and_named():
    made = listing(
        MIXED, "%%bash\npip install -q keras", "%%time\nsum = 1\n", "!apt-get -y install x"
    )
    gone = ["1, line 1 `%pip", "1, line 10 `os?`", "2, line 1 `%%bash`", "4, line 1 `!apt-get"]
    assert [place in told for place, told in zip(gone, made.left_out)] == [True] * 4
    assert "install" not in made.text and len(made.left_out) == 4
    (note,) = made.notes
    assert note.endswith("cell 2, line 1 `%%bash` and 1 more")
    (note,) = listing(MIXED).notes
    assert note.endswith("line 10 `os?`")
    assert listing("x = 1").notes == []


def names_after(*texts, folder=None, monkeypatch=None):
    """Runs cells as a program of this process, and returns its names."""
    main = ModuleType("__main__")
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(compile(listing(*texts).text, "cells", "exec"), vars(main))
    return vars(main)


RUN = {
    "a percent sign in a text": (["x = '''\n%this stays\n'''"], "\n%this stays\n"),
    "lines of a command": (
        ["names = !ls *.txt\nx = len(names), names.s, names.n"],
        (1, "a.txt", "a.txt"),
    ),
    "a command in a loop": (["for x in (1, 2):\n    !echo {x} \\\n  >> $name"], None),
    "a name and an expression": (
        ["word = 'a'\nx = !echo {word + 'b'} $word $HOME"],
        f"ab a {HOME}",
    ),
    "braces of another language": (["x = !echo a b | awk '{print $2}'"], "b"),
    "a folder": (["%cd sub", "x = open('b.txt').read()"], "b"),
    "a folder without a percent sign": (["cd sub", "x = open('b.txt').read()"], "b"),
    "the folder before": (["%cd -q sub\n%cd -\nx = open('a.txt').read()"], "a"),
    "a folder that is not there": (["%cd nowhere", "x = open('a.txt').read()"], "a"),
    "the folder": (["x = %pwd"], None),
    "a variable": (["%env CLINIC_A=b c\nimport os\nx = os.environ['CLINIC_A']"], "b c"),
    "a variable with a space": (["%set_env CLINIC_A b\nx = %env CLINIC_A"], "b"),
    "the time of an expression": (["x = %time 1 + 1"], 2),
    "the time of a statement": (["%time x = 3"], 3),
    "the time of many runs": (["y = [1]\n%timeit -n 10 -r3 y.append(2)\nx = y"], [1, 2]),
    "the time of a cell": (["%%timeit -n 3 y = 1\nx = y + 1"], 2),
    "what a cell prints": (["%%capture out --no-stderr\nprint(1)", "x = out.stdout"], "1\n"),
    "nothing of what a cell prints": (["%%capture\nx = 1"], 1),
    "a script": (["%%bash\necho hello > new.txt", "x = open('new.txt').read()"], "hello\n"),
    "a script for another program": (
        ["%%script python3\nopen('n', 'w').write('1')", "x = open('n').read()"],
        "1",
    ),
    "a cell that is skipped": (["%%script false --no-raise-error\nx = 1", "x = 2"], 2),
    "a file": (
        ["%%writefile mine.py\ny = 4", "%%writefile -a mine.py\ny += 1", "from mine import y as x"],
        5,
    ),
    "another program": (
        ["%%writefile other.py\nimport sys\nx = sys.argv[1:]", "%run other.py a b"],
        ["a", "b"],
    ),
    "another program with these names": (["y = 2\n%run -i plus.py"], 3),
    "a question": (["x = 1\nx?"], 1),
    "a call without parentheses": (["/print 3\nx = 1"], 1),
    "the shell itself": (["x = get_ipython().run_line_magic('pwd', '')"], None),
}


@pytest.mark.parametrize("name", RUN)
def test_magics_and_shell_lines_do_the_same_without_ipython(name, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    for path, code in {"a.txt": "a", "sub/b.txt": "b", "plus.py": "x = y + 1"}.items():
        (tmp_path / path).write_text(code)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("CLINIC_A", "")
    texts, expected = RUN[name]
    names = names_after("name = 'log'", *texts, folder=tmp_path, monkeypatch=monkeypatch)
    sys.modules.pop("mine", None)
    x = names["x"][0] if isinstance(names["x"], notebook.Lines) else names["x"]
    if name == "a command in a loop":
        assert (tmp_path / "log").read_text().split() == ["1", "2"]
    else:
        assert x == (str(tmp_path) if expected is None else expected)


def test_a_script_that_fails_ends_the_program(tmp_path, monkeypatch):
    with pytest.raises(subprocess.CalledProcessError):
        names_after("x = 1", "%%bash\nexit 3", folder=tmp_path, monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    "text, place",
    [
        ("x = 1\n%pylab inline", "train.ipynb, cell 1, line 2 `%pylab inline` cannot be run"),
        ("%%cython\ndef f(): pass", "train.ipynb, cell 1, line 1 `%%cython` cannot be run"),
        ("x = %sql select 1", "cell 1, line 1 `x = %sql select 1` cannot be run"),
        ("x = %timeit -o f()", "cell 1, line 1 `x = %timeit -o f()` cannot be run"),
        ("%run other.ipynb", "cell 1, line 1 `%run other.ipynb` cannot be run"),
    ],
)
def test_what_needs_ipython_is_refused(text, place):
    with pytest.raises(UserError) as refused:
        listing(text)
    assert place in str(refused.value) and str(refused.value).endswith("or take it out.")


def test_a_notebook_may_wait_at_its_top_level():
    made = listing("import asyncio", "await asyncio.sleep(0)\nprint('done')")
    cells.require_python(made)
    assert made.in_loop and made.line(3) == cells.Line(2, 1, "await asyncio.sleep(0)")
    assert listing("import asyncio\ntask = asyncio.create_task(f())").in_loop
    assert not listing("x = 1").in_loop
    assert cells.listing_of("pasted", [Cell(0, "await x")]).in_loop
    assert not cells.listing_of("pasted", [Cell(0, "import asyncio\nasyncio.run(x())")]).in_loop


def test_what_a_process_has_no_need_of_is_left_out_without_a_word():
    assert listing("%load_ext strategy_clinic\n%matplotlib inline\nx = 1").left_out == ()


@pytest.mark.parametrize("code", ["rest", "name in os", "sum"])
def test_a_line_is_known_by_cell_and_line(code):
    texts = [MIXED, "%%bash\nls -l x", "%%time\nsum = 1\n"]
    made = listing(*texts)
    number = next(n for n, line in enumerate(made.text.splitlines(), 1) if code in line)
    line = made.line(number)
    assert code in texts[line.cell - 1].splitlines()[line.number - 1] == line.code


def test_what_must_stand_first_stands_first():
    made = listing("import os", "from __future__ import annotations\nx: nothing = 1")
    exec(compile(made.text, "cells", "exec"), {})
    assert made.line(3) == cells.Line(2, 1, "from __future__ import annotations")


@pytest.mark.parametrize(
    "text",
    [
        "from __future__ import annotations",
        "from __future__ import annotations  # noqa",
        "from __future__ import (annotations)",
        "from __future__ import (  # both\n    annotations,\n    division,\n)  # of them",
        "from __future__ import annotations; x = 1",
        "from __future__ import annotations; from __future__ import division; x = 1",
        "from __future__ import annotations as a",
        "from __future__ import annotations, \\\n    division",
        '"""Träining."""; from __future__ import annotations',
        "\nfrom __future__ import annotations\n%time x = 1",
    ],
)
def test_an_import_that_must_stand_first_in_every_form(text):
    """It keeps the lines of its cell."""
    made = listing("import os", f"{text}\nx: nothing = 1\nprint(x)")
    exec(compile(made.text, "cells", "exec"), {})
    where = next(n for n, line in enumerate(made.text.split("\n"), 1) if line == "print(x)")
    assert made.line(where).code == "print(x)"
    cells.require_python(made)


def test_what_a_text_says_of_an_import_stays():
    made = listing('text = """\nfrom __future__ import annotations\n"""\nassert "import" in text')
    exec(compile(made.text, "cells", "exec"), {})


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
        ("def f():\n    await x", "'await' outside async function"),
        ("x = '\0'", "train.ipynb is not Python"),
    ],
)
def test_what_is_no_python(text, says):
    with pytest.raises(UserError) as refused:
        cells.require_python(listing(text))
    assert says in str(refused.value)


# Notebooks


@pytest.fixture
def notebook_file(tmp_path):
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
def test_a_line_is_found_in_the_file_of_a_notebook(notebook_file, cell, line):
    number = cells.line_in_file(notebook_file, cell, line)
    text = cells.read_cells(notebook_file)[cell - 1].text.splitlines()[line - 1]
    assert (
        text
        in json.loads("[" + notebook_file.read_text().splitlines()[number - 1].strip(" ,") + "]")[0]
    )
    taken = {cells.line_in_file(notebook_file, c, n) for c in (1, 2) for n in (1, 2, 3)}
    assert len(taken) == 6 and cells.line_in_file(notebook_file, 1, 3) == 0


def test_a_line_that_the_file_does_not_have_alone(notebook_file):
    told = json.loads(notebook_file.read_text())
    for each in told["cells"]:
        each["source"] = "".join(each["source"])
    notebook_file.write_text(json.dumps(told))
    assert cells.line_in_file(notebook_file, 2, 1) == 0


SCRIPT = "/tmp/cells.py"


def at(number, path=SCRIPT):
    return Location((Frame(path, number, "f"),))


def examined(listing, code):
    """An examination that has found something at a line, as it is after its lines have been located."""
    number = next(n for n, line in enumerate(listing.lines, 1) if code in line.code)
    message, proof = Text("no <b>checkpoint</b> holds it"), Text(at(number), " saved it")
    finding = Finding("fm05", at(number), Evidence.OBSERVED, message, proof, (2,))
    return Examination(listing.name, [run()], [finding.relocated(listing.locate)])


def test_reports_name_cell_and_line(notebook_file, monkeypatch):
    monkeypatch.chdir(notebook_file.parent)
    result = examined(program_input.notebook_listing(notebook_file, "train.ipynb"), "y = 3")
    assert text.in_words(result).startswith("train.ipynb, cell 2, line 2  fm05  no <b>")
    written = machine_readable.as_json(result)["findings"][0]
    place = [written[name] for name in ("file", "cell", "line", "code")]
    assert place == [str(notebook_file), 2, 2, "y = 3"]
    assert written["proof"] == "cell 2, line 2 saved it"
    (result,) = machine_readable.as_sarif(result, notebook_file.parent)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    line = place["region"]["startLine"]
    assert "y = 3" in notebook_file.read_text().splitlines()[line - 1]
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
    assert "nothing found in a run without a strategy" in page and "It failed here." not in page
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
