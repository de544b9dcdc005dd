"""What rendering does with what a kernel says, without a kernel: the notebook that is executed is a stored one."""

import nbformat
import pytest
from conftest import changed
from nbformat.v4 import new_output
from strategy_clinic.base import project as settings
from strategy_clinic.base.errors import UserError
from strategy_clinic.rendering import render, sources

WARNED = "/tmp/ipykernel_7/12.py:3: UserWarning: `shuffle=True` was passed\n  warnings.warn(text)\n"


@pytest.fixture
def source():
    return sources.sources(["fm25"])[0]


def rendered(source, monkeypatch, *said: str) -> str:
    """The text that rendering writes, if the last cell with code also says this on its standard error."""
    executed = nbformat.read(sources.notebook_path(source), as_version=4)
    last = [cell for cell in executed.cells if cell.cell_type == "code"][-1]
    last.outputs += [new_output("stream", name="stderr", text=each) for each in said]
    monkeypatch.setattr(render, "executed_by_papermill", lambda _: executed)
    return render.render(source)


def test_what_a_library_logs_is_left_out(source, monkeypatch):
    said = "WARNING:tensorflow:5 out of the last 5 calls\n", "I0000 port.cc:153] oneDNN\n"
    stored = sources.notebook_path(source).read_text()
    assert rendered(source, monkeypatch) == stored
    assert rendered(source, monkeypatch, *said) == stored


def test_a_cell_that_warns_is_refused(source, monkeypatch):
    with pytest.raises(UserError, match=r"fm25.+: cell \d+ warns \(UserWarning: `shuff"):
        rendered(source, monkeypatch, f"a line before\n{WARNED}")


def test_without_its_refusal_a_warning_is_dropped(source, monkeypatch):
    monkeypatch.setattr(render, "WARNING", render.re.compile("(?!)"))
    assert "UserWarning" not in rendered(source, monkeypatch, WARNED)


@pytest.mark.slow
def test_text_is_written_again_without_a_run(project, monkeypatch):
    """Outputs stay as they are stored; a notebook whose code has changed has to be run."""
    page = sources.sources(["fm25"])[0]
    path, said = sources.notebook_path(page), []
    stored = path.read_text()
    render.write_texts(tell=said.append)
    assert said == [] and path.read_text() == stored
    changed(page, "## Why", "## The reason")
    published = {"repository": "owner/clinic", "tag": "v1"}
    monkeypatch.setattr(settings, "setting", lambda: published)
    render.write_texts(["fm25"], said.append)
    assert said == ["wrote the text of fm25_load_outside_scope"]
    text = path.read_text()
    assert "## The reason" in text and text.count("owner/clinic") == 4, "three links and set-up"
    assert outputs(path.read_text()) == outputs(stored) and list(render.stale(["fm25"])) == []
    changed(page.with_name("broken.py"), "import tensorflow as tf", "import tensorflow")
    render.write_texts(["fm25"], said.append)
    assert len(said) == 1 and list(render.stale(["fm25"])) != []


def outputs(text: str) -> list:
    cells = nbformat.reads(text, as_version=4).cells
    return [(each.execution_count, each.outputs) for each in cells if each.cell_type == "code"]
