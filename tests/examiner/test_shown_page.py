"""The page of `clinic examine --show`: what it says of an examination that is written here, and where it is written."""

from dataclasses import replace

from recorded import run
from strategy_clinic import cli
from strategy_clinic.examiner.findings import Evidence, Examination, Finding, Location, Text
from strategy_clinic.examiner.report import html
from strategy_clinic.inside.html import is_page, page
from strategy_clinic.observer.events import Frame
from test_inside import LINE, A, seen, tables

FRAME = LINE[0]


def held():
    """A gradient differs, which line 17 makes."""
    shown = tables(seen("gradient", A, A), seen("gradient", A))
    return replace(shown, path=FRAME.path, source=("x = 1",) * 20)


def examination(location, **more):
    finding = Finding(
        "fm37", location, Evidence.COMPARED, Text("<i>twice</i>"), Text("compared 1 and 2 devices")
    )
    return Examination("train.py", [run()], [finding], **more)


def test_a_finding_leads_to_its_line():
    shown = html.page_of(examination(Location((FRAME,))), held())
    assert "<a href='#line-17'>/program/train.py:17</a>: <b>fm37</b> &lt;i&gt;twice" in shown
    assert "<span id='line-17' class='part'>" in shown
    assert "<i>Proof</i>: compared 1 and 2 devices" in shown and "<i>Fix</i>: " in shown
    assert "http" not in shown


def test_a_finding_in_a_cell_leads_to_its_line():
    cells = replace(held(), places=tuple(f"cell 3, line {each}" for each in range(1, 21)))
    place = Location((Frame("train.ipynb", 5, ""),), cell=3, code="x = 1")
    assert "<a href='#line-5'>train.ipynb, cell 3, line 5</a>" in html.page_of(
        examination(place), cells
    )


def test_a_finding_in_another_file_has_no_link():
    shown = html.page_of(examination(Location((Frame("/program/other.py", 3, ""),))), held())
    assert "<li><p>/program/other.py:3: <b>fm37</b>" in shown


def test_where_nothing_was_found_and_what_was_not_seen_is_said():
    right = tables(seen("loss", 1.0, 1.0), seen("loss", 2.0))
    found = Examination("train.py", [run()], unseen=["<b> was not compared"], notes=["a note"])
    shown = html.page_of(found, right)
    assert (
        "nothing found in a run without a strategy" in shown
        and "Nothing differs in 1 step." in shown
    )
    assert "&lt;b&gt; was not compared" in shown and "Note: a note." in shown


def test_a_failure_is_said_with_its_line():
    failed = Examination("train.py", [run()], failure="raised", failed_at=Location((FRAME,)))
    assert "<p>raised (/program/train.py:17)</p>" in html.page_of(failed, held())


def test_only_its_own_page_is_replaced(tmp_path, monkeypatch, capsys):
    """A command that is refused runs nothing."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "bytes.html"):
        (tmp_path / name).write_bytes(b"\xff print('hello')")
    (tmp_path / "folder").mkdir()
    for words in (["examine", "--show"], ["show", "--html"]):
        for name in ("train.py", "bytes.html", "folder", "none/view.html"):
            assert cli.main([*words, name, "train.py"]) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1 and repr(name) in said and "Traceback" not in said
    assert (tmp_path / "train.py").read_bytes() == b"\xff print('hello')"
    assert is_page(page(held())) and is_page(html.page_of(examination(Location()), held()))
    assert not is_page("<html><p>Strategy Clinic")
