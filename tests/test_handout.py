"""What a teacher hands out: every mode, no solution, and nothing that leads nowhere."""

import re
from pathlib import Path

import nbformat
import papermill
import pytest
from strategy_clinic import cli
from strategy_clinic.base import display, files
from strategy_clinic.modes import registry
from strategy_clinic.processes import notebook_job
from strategy_clinic.rendering import sources
from strategy_clinic.workshop.handout import GIVEN
from workshop import SMALL

# Handing out


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handout") / "out"
    assert cli.main(["handout", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {"for-participants", "solutions"}
    return folder


def leaks(folder: Path) -> list[str]:
    """What is handed out and speaks of a solution, leads to one, or is a source that holds one."""
    words = re.compile(r"\bsolution|\bsolved|colab\.research|kaggle\.com|mybinder", re.I)
    return [
        path.name
        for path in sorted((folder / GIVEN / "notebooks").iterdir())
        if path.suffix != ".ipynb" or words.search(without_setup(path))
    ]


def without_setup(path: Path) -> str:
    """The set-up cell may name the hosts on which it installs the package."""
    book = nbformat.read(path, as_version=4)
    book.cells = [each for each in book.cells if "bootstrap" not in sources.tags(each)]
    return nbformat.writes(book)


def colours(book) -> list[str]:
    return [each["colour"] for each in display.reported(book) if "colour" in each]


@pytest.mark.slow
def test_a_handout_holds_every_mode_and_no_solution(everything):
    names = {Path(mode.notebook).name for mode in registry.modes()}
    given = {path.name for path in (everything / GIVEN / "notebooks").iterdir()}
    assert given == names | {"00_start_here.ipynb"} and leaks(everything) == []
    assert {path.name for path in (everything / "solutions").iterdir()} == names
    for name in names:
        assert colours(nbformat.read(everything / GIVEN / "notebooks" / name, 4)) == ["red"]
        assert colours(nbformat.read(everything / "solutions" / name, 4)) == ["red", "green"]


def solution_lines() -> set[str]:
    """The lines that solutions have, and no other code of the project."""
    paths = list(files.package().rglob("*.py"))
    solved = "\n".join(path.read_text() for path in paths if path.name == "solution.py")
    other = "\n".join(path.read_text() for path in paths if path.name != "solution.py")
    lines = {line.strip() for line in solved.splitlines()}
    return {line for line in lines if len(line) > 20 and line not in other}


def handed_out_solutions(folder: Path) -> list[str]:
    lines = solution_lines()
    texts = {
        path.relative_to(folder): path.read_text().replace('\\"', '"')
        for path in folder.rglob("*")
        if path.suffix in (".py", ".ipynb", ".toml", ".json", ".md", ".ipy", ".html")
    }
    return [
        f"{path}: {line}"
        for path, text in texts.items()
        if path.parts[0] != "solutions"
        for line in lines
        if line in text
    ]


@pytest.mark.slow
def test_no_handed_out_file_holds_a_solution(everything):
    assert handed_out_solutions(everything) == []
    leaked = [line.split(": ", 1)[1] for line in handed_out_solutions(files.package())]
    assert set(leaked) == solution_lines(), "each line is noticed where it is"


@pytest.mark.parametrize("text", ["See the solution below.", "def solved(setup): pass"])
def test_a_solution_left_in_a_handout_is_noticed(everything, tmp_path, text):
    name = Path(GIVEN, "notebooks", SMALL)
    (tmp_path / name).parent.mkdir(parents=True)
    book = nbformat.read(everything / name, as_version=4)
    nbformat.write(book, tmp_path / name)
    assert leaks(tmp_path) == []
    book.cells.append(nbformat.v4.new_markdown_cell(text))
    nbformat.write(book, tmp_path / name)
    assert leaks(tmp_path) == [SMALL]


def dead_links(folder: Path) -> list[str]:
    return [
        f"{path.name}: {link}"
        for path in sorted(folder.rglob("*.ipynb"))
        for each in nbformat.read(path, as_version=4).cells
        if each.cell_type == "markdown"
        for link in re.findall(r"\]\(([^):#]+)\)", each.source)
        if not (path.parent / link).exists()
    ]


def test_links_work_or_keep_only_their_words(everything, tmp_path):
    first, linked = (
        f"{GIVEN}/notebooks/fm01_host_read_in_replica.ipynb",
        "](fm07_python_in_traced_step.",
    )
    assert dead_links(everything) == [] and linked in (everything / first).read_text()
    assert cli.main(["handout", str(tmp_path / "few"), "fm01", "fm17"]) == 0
    few = (tmp_path / "few" / first).read_text()
    assert dead_links(tmp_path / "few") == [] and "- FM07:" in few
    (tmp_path / "few" / GIVEN / "notebooks" / SMALL).unlink()
    assert dead_links(tmp_path / "few") != []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, wanted",
    [
        (f"{GIVEN}/notebooks/{SMALL}", ["red"]),
        (f"solutions/{SMALL}", ["red", "green"]),
        (f"{GIVEN}/notebooks/00_start_here.ipynb", []),
    ],
)
def test_what_is_handed_out_runs_from_where_it_lies(everything, tmp_path, name, wanted):
    path = everything / name
    book = nbformat.read(path, as_version=4)
    book.cells.append(
        nbformat.v4.new_code_cell("import strategy_clinic; print(strategy_clinic.__file__)")
    )
    nbformat.write(book, tmp_path / "in.ipynb")
    there = notebook_job.papermill_options(tmp_path) | {"cwd": str(path.parent)}
    ran = papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", **there)
    if name.startswith(GIVEN):
        package = Path(ran.cells[-1].outputs[0].text.strip())
        assert package.parents[2] == (everything / GIVEN).resolve()
    assert colours(ran) == wanted


def test_nothing_is_overwritten(tmp_path, capsys):
    work = tmp_path / "out" / "notebooks" / SMALL
    work.parent.mkdir(parents=True)
    work.write_text("a day's work")
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "out", tmp_path / "file"):
        assert cli.main(["handout", str(place)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 2 and said.count("nothing in it will be overwritten") == 2
    assert work.read_text() == "a day's work" and (tmp_path / "file").read_text() == "in the way"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


@pytest.mark.parametrize("arguments", [["/proc/out"], ["OUT", "fm99"], []], ids=str)
def test_a_handout_that_cannot_be_is_one_sentence(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["handout", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and list(tmp_path.iterdir()) == []
