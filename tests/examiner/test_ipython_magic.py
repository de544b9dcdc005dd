"""How the examiner is asked in a notebook, without the runs: a cell with its magic, and the field. No TensorFlow."""

from types import SimpleNamespace

import pytest
import strategy_clinic
from recorded import run
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.findings import Evidence, Examination, Finding, Location, Text
from strategy_clinic.examiner.frontends import ipython_magic, widget
from strategy_clinic.examiner.runs import mend, plan
from strategy_clinic.examiner.runs.progress import RunStarted
from strategy_clinic.observer.events import Frame
from test_inside import seen, tables

# A cell


def cells_of(shell, text: str, **options) -> list[int]:
    """The numbers of the cells that are included."""
    asked = SimpleNamespace(**{"alone": False, "with_history": False} | options)
    earlier = ipython_magic.earlier_cells(shell, shell.execution_count)
    return [each.number for each in ipython_magic.chosen_cells(text, earlier, asked)]


def test_cells_that_ran_before_come_along_where_they_are_needed(magic_shell, capsys):
    ran = [
        "%load_ext strategy_clinic",
        "import os",
        "x = 1 / 0",
        "y = 3",
        "import os",
        "%%time\nz = y",
        "!true",
    ]
    for text in ran:
        magic_shell.run_cell(text, store_history=True)
    assert cells_of(magic_shell, "print(z)") == [2, 4, 6]
    assert cells_of(magic_shell, "def f():\n    return os.name") == [2, 4, 6]
    assert cells_of(magic_shell, "import os\nprint(os.name)") == []
    assert cells_of(magic_shell, "import os", with_history=True) == [2, 4, 6]
    assert cells_of(magic_shell, "print(z)", alone=True) == []


@pytest.mark.parametrize(
    "text, says",
    [
        ("%%examine\n", "the cell body is empty"),
        ("%%examine\n# nothing", "nothing but comments, so there is no program"),
        ("%%examine\n!ls", "only magics and shell lines (cell 1, line 2 `!ls`)"),
        ("%%examine\nx = 1\na b", "cell 1, line 3 is not Python (invalid syntax): 'a b'"),
        ("%%examine --devices 0\nx = 1", "whole numbers from 1 to 8"),
        ("%%examine --devices two\nx = 1", "whole numbers from 1 to 8"),
        ("%%examine --keras 4\nx = 1", "valid: 2, 3"),
        ("%%examine --limit 0\nx = 1", "--limit"),
        ("%%examine --nothing\nx = 1", "--nothing"),
    ],
)
def test_a_cell_that_cannot_be_examined_is_one_sentence(magic_shell, capsys, text, says):
    magic_shell.run_cell(text, store_history=True)
    said = capsys.readouterr()
    assert says in said.out + said.err and (said.out + said.err).strip().count("\n") == 0


def test_unloaded_it_is_gone(magic_shell):
    assert "examine" in magic_shell.magics_manager.magics["cell"]
    strategy_clinic.unload_ipython_extension(magic_shell)
    assert "examine" not in magic_shell.magics_manager.magics["cell"]
    strategy_clinic.load_ipython_extension(magic_shell)


# The field


@pytest.fixture
def box(monkeypatch):
    made = widget.program_box()

    def fill(text, **also):
        made.controls["program"].value = text
        for name in ("show", "repair"):
            made.controls[name].value = also.get(name, False)
        made.button.click()
        return made.status.value, made.answer.value

    return fill


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "the program is empty"),
        ("a b", "the program, line 1 is not Python"),
        ("none.py", "There is no file"),
        ("none.ipynb", "There is no file"),
    ],
)
def test_a_field_without_a_program_is_told_in_one_sentence(box, text, says):
    status, answer = box(text)
    assert says in status and "data-clinic-state='refused'" in status and "<div" not in answer


def test_the_field_shows_the_marked_up_program(box, monkeypatch):
    def examine(program, counts, report, show):
        report(RunStarted("on 2 devices"))
        line = Location((Frame(program.listing.file, 2, "f"),), code="y = 2")
        finding = Finding("fm05", line, Evidence.OBSERVED, Text("<b>"), Text("observed"), (2,))
        held = tables(seen("loss", 1.0, 1.0), seen("loss", 2.0)) if show else None
        return Examination("the program", [run()], [finding], tables=held)

    monkeypatch.setattr(plan, "examine", examine)
    status, answer = box("x = 1\ny = 2")
    assert "data-clinic-state='done'" in status
    assert "data-clinic-marked='2'" in answer and "&lt;b&gt;" in answer
    assert "replica 1" not in answer and "replica 1" in box("x = 1\ny = 2", show=True)[1]


TRAINS = "import tensorflow as tf\ng = tape.gradient(loss, weights)\n"


@pytest.fixture
def without_gradient(monkeypatch):
    """Instead of runs: fm13 is found on the second line of a program, and not after a repair of that line."""

    def examine(program, counts, restart=None, report=None, show=False):
        line = Location((Frame(program.listing.file, 2, "step"),))
        finding = Finding("fm13", line, Evidence.OBSERVED, Text("none"), Text("observed"), (2,))
        is_wrong = TRAINS in program.listing.text
        return Examination("the program", [run()], [finding] if is_wrong else [])

    monkeypatch.setattr(plan, "examine", examine)
    monkeypatch.setattr(mend, "examine", examine)


def test_the_field_shows_a_proven_repair_if_asked_to(box, without_gradient):
    _, answer = box(TRAINS)
    assert (
        f"*{widget.MEND}* tries repairs of fm13" in answer and "+g = tape.gradient(" not in answer
    )
    _, answer = box(TRAINS, repair=True)
    assert "+g = tape.gradient(" in answer and "tries repairs" not in answer


def test_a_refusal_of_the_page_is_one():
    with pytest.raises(UserError, match="the program is empty"):
        widget.marked_up("", "1, 2", 3)


def test_what_is_no_number_of_devices_stays_a_word():
    assert ipython_magic.device_counts("1, 4,²,x") == [1, 4, "²", "x"]
