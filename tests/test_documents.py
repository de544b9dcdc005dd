"""The session of a document's notebook, what is written in one, and that a verdict that runs contradict is refused."""

import nbformat
import pytest
from conftest import changed
from strategy_clinic import Claim, Document, Setup, document_session
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.document_session import DocumentSession
from strategy_clinic.modes import registry
from strategy_clinic.processes import notebook_job
from strategy_clinic.rendering import document_text, render, sources
from strategy_clinic.session import Disagreement

CLAIMS = (
    Claim("000-C1", "fm01", "one", "false"),
    Claim("000-C2", "fm01", "two", {2: "true", 3: "half"}),
)
FOUND = {"000-C1": [False, False], "000-C2": [True, False]}
KEPT = "# from fm01: two"


@pytest.fixture
def opened():
    return DocumentSession(Document("000", "a document", CLAIMS), Setup())


def test_claims_are_judged_by_what_was_observed(opened, capsys):
    opened.judges(FOUND)
    said = capsys.readouterr().out
    assert "000-C1 is false (executed): one" in said
    assert "000-C2 is half on Keras 3, true on Keras 2 (executed): two" in said
    opened.judges({"000-C1": [False]}, evidence="traced")
    assert "000-C1 is false (traced): one" in capsys.readouterr().out


@pytest.mark.parametrize(
    "found, declared, gave",
    [({"000-C1": [True]}, "false", "true"), ({"000-C2": [True, True]}, "half", "true")]
    + [({"000-C1": [True, False]}, "false", "half"), ({"000-C2": [False]}, "half", "false")],
)
def test_a_verdict_that_runs_contradict_fails_the_notebook(opened, found, declared, gave, capsys):
    with pytest.raises(Disagreement, match=f"declared {declared}; the run gave {gave}"):
        opened.judges(found)
    assert f"is {gave} (executed)" in capsys.readouterr().out


def test_what_cannot_be_judged_is_refused(opened):
    with pytest.raises(UserError, match="evidence = 'seen'"):
        opened.judges(FOUND, evidence="seen")
    with pytest.raises(UserError, match="claim = '000-C3'"):
        opened.judges({"000-C3": [True]})
    with pytest.raises(UserError, match="000-C1 is judged without a run"):
        opened.judges({"000-C1": []})


def test_the_last_cell_fails_if_a_claim_was_not_judged(opened, capsys):
    opened.judges({"000-C1": [False]})
    with pytest.raises(UserError, match="tests what is declared: 000-C2"):
        opened.verdicts()


def test_the_last_cell_counts_statements(capsys):
    session = document_session.DocumentSession(registry.document_by_id("002"), Setup())
    session.judged |= session.claims.keys()
    session.verdicts()
    assert capsys.readouterr().out.split()[-2:] == ["all", "10"]


def test_a_session_has_the_programs_of_a_page(opened):
    session = opened.page("fm25")
    assert session.variants("broken", "import tensorflow as tf", {"no": ""})["no"].startswith("\n")
    with pytest.raises(UserError, match="failure mode = 'fm99'"):
        opened.page("fm99")


# What is written


def test_documents_is_the_name_of_all_five():
    assert sources.sources(["documents"]) == files.document_pages()
    assert len(files.document_pages()) == 5


def test_a_notebook_has_what_its_source_names():
    (source,) = sources.sources(["004"])
    text = "\n".join(cell.source for cell in sources.notebook_of(source).cells)
    assert '| true | 004.1 | the strategy is not saved | <a href="#004-C1">004-C1</a> |' in text
    assert "## FM25. `load_model` outside" in text and "(../fm25_load_outside_scope.ipynb)" in text
    assert '### <a id="004-C1"></a>004.1. The strategy is not saved\n\n**True.**' in text
    assert "**False; Keras 2: true in part.** The rest: " in text
    borrowed = text.partition("# from fm25: ")[2].partition(document_text.END)[0]
    assert "COMPILE = 'loaded.compile" in borrowed.replace('"', "'")


def test_a_statement_may_be_decided_by_another_document():
    (source,) = sources.sources(["000"])
    table = document_text.DocumentText(source).table()
    assert "[003-C16](003_tpu_strategy.ipynb)" in table and "000.10" in table


@pytest.mark.parametrize("name", ["000", "001", "002", "003", "004"])
def test_what_is_written_is_taken_back_when_a_notebook_is_pulled(name):
    (source,) = sources.sources([name])
    written = sources.percent_notebook(source.read_text()).cells
    plain = [cell for cell in written if "declaration" not in sources.tags(cell)]
    made = sources.notebook_of(source).cells
    own = [cell for cell in made if not sources.ADDED_CELLS & set(sources.tags(cell))]
    back = [sources.as_written(cell) for cell in own]
    assert [cell.source for cell in back] == [cell.source for cell in plain]


def test_code_that_a_page_does_not_have_is_not_borrowed():
    assert "two = session.setup.but" in document_text.with_borrowed(KEPT)
    assert document_text.without_borrowed(document_text.with_borrowed(KEPT)) == KEPT
    with pytest.raises(UserError, match="No cell of fm01 defines threee"):
        document_text.with_borrowed("# from fm01: two, threee")


def test_a_claim_that_no_cell_has_judged_is_not_rendered(monkeypatch):
    (source,) = sources.sources(["002"])
    executed = nbformat.read(files.notebook(source), as_version=4)
    monkeypatch.setattr(render, "executed_by_papermill", lambda _: executed)
    assert render.render(source) == files.notebook(source).read_text()
    for cell in executed.cells:
        if '"002-C5"' in cell.source:
            cell.outputs = []
    with pytest.raises(UserError, match="002_.+ tests 002-C5"):
        render.render(source)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("source", files.document_pages(), ids=files.page_name)
def test_the_verdicts_on_keras_2(source):
    text = files.notebook(source).read_text()
    ended = notebook_job.run_notebook(text, {"keras": 2}, 900)
    assert (ended["end"], ended["failure"]) == ("finished", "")


@pytest.mark.slow
def test_a_notebook_whose_verdict_is_turned_round_is_not_rendered(project):
    (source,) = sources.sources(["002"])
    stored = files.notebook(source).read_bytes()
    changed(source, 'lose part of the gradient", "true"', 'lose part of the gradient", "false"')
    with pytest.raises(UserError, match="disagrees with its run at '002-C7'"):
        render.render_all(["002"])
    assert files.notebook(source).read_bytes() == stored


@pytest.mark.slow
def test_a_parameter_that_the_notebook_does_not_have_is_refused():
    text = files.notebook(sources.sources(["002"])[0]).read_text()
    ended = notebook_job.run_notebook(text, {"devices": 2}, 300)
    assert ended["end"] == "failed"
    assert "parameter name = 'devices' is not known here; valid: 'keras'" in ended["failure"]
