"""Who is sent to a page by a message finds it in its first cell: in the table, or folded below it."""

import re

import pytest
from conftest import changed, forget
from law import all_tests_of, edit
from strategy_clinic.rendering import first_screen, sources
from strategy_clinic.triage import page_messages, wordings

FM19 = "notebooks/fm19_partial_last_batch.ipynb"


def law_wordings_stand_on_pages() -> list[str]:
    """A wording of TensorFlow 2.18 to 2.21 and Keras 2 and 3 stands in the first cell of the page that it leads to."""
    forget()
    return [
        f"{mode.id} has no: {says}; run: clinic render --text"
        for mode in wordings.declared_modes().values()
        for says in page_messages.missing(mode)
    ]


def law_folded_messages() -> list[str]:
    """The folded table is one piece of HTML, which a blank line would end, and has no sign of mathematics."""
    problems = []
    for mode in wordings.declared_modes().values():
        html = page_messages.first_cell(mode).partition("<details>")[2]
        if "\n\n" in html or "$" in html or html.count("<tr>") == 1:
            problems.append(f"{mode.id}: {html[:80]}")
    return problems


def a_wording_that_no_page_has(root):
    path = wordings.words_files()["fm01"]
    new = "\n[[wording]]\nsays = 'The kettle of this replica is empty'\nfrom = '2.21'\n"
    path.write_text(path.read_text() + new)


MUTATIONS = [
    ("law_wordings_stand_on_pages", a_wording_that_no_page_has),
    ("law_wordings_stand_on_pages", edit(FM19, "RecvAsync is cancelled", "Receiving is")),
    ("law_folded_messages", edit(FM19, "<details>\\n", "<details>\\n\\n")),
    ("law_folded_messages", edit(FM19, "RecvAsync is cancelled", "$x$")),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def folded(monkeypatch, *entries) -> str:
    monkeypatch.setattr(page_messages, "of", lambda mode: entries)
    return first_screen.other_messages("# Title", wordings.declared_modes()["fm01"])


def test_a_message_is_readable_and_escaped(monkeypatch):
    says = ("No {cat|dog} in <b> ... `x`, $5", "{a|b|c|d|e}")
    entry = wordings.Wording(
        "fm01", says, "2.21", file="keras/src/x.py", fix="call `f()`, not `g()`"
    )
    html = folded(monkeypatch, entry)
    assert "<code>No cat in &lt;b&gt; … `x`, &#36;5</code> or <code>No dog in" in html
    assert " with <code>a</code> or <code>b</code> or <code>c</code> or <code>d</code><" in html
    assert (
        "<td>Keras 3, keras/src/x.py</td><td>call <code>f()</code>, not <code>g()</code></td>"
        in html
    )
    assert "<summary>1 more message that leads here</summary>" in html


def test_of_a_message_alone_and_with_others_the_first_is_shown(monkeypatch):
    alone = wordings.Wording("fm01", ("The kettle is empty",), "2.21")
    beside = wordings.Wording("fm01", ("The kettle is empty", "fit"), "2.21")
    assert folded(monkeypatch, beside, alone) == folded(monkeypatch, alone)


def test_without_other_messages_nothing_is_folded(monkeypatch):
    assert folded(monkeypatch) == ""


def test_an_expression_is_shown_as_the_message_that_it_is_meant_for():
    shown = {
        r"value .* must match": "value … must match",
        r"Could not locate (class|function) '\w+'": "Could not locate class '…'",
        r"numpy\(\) is only available": "numpy() is only available",
        r"None values|Attempt to convert a value \(None\)": "None values",
        r"with size ?\d+, but": "with size…, but",
        r"not exist at: \S*saved/": "not exist at: …saved/",
    }
    assert {each: first_screen.readable(each) for each in shown} == shown


def test_the_beginning_of_a_message_in_a_row_is_enough():
    entry = wordings.Wording("fm01", ("The kettle of this replica is empty",), "2.21")
    row = "| `ValueError: The kettle of this replica is …` | `fit` | 3 |"
    assert page_messages.absent(row, [entry]) == []
    assert page_messages.absent(row.replace("of this replica", "…"), [entry]) == [entry]


def test_what_is_added_is_taken_away_again(project):
    source = sources.sources(["fm19"])[0]
    before = source.read_text()
    sources.pull(sources.notebook_path(source), tell=lambda _: None)
    assert source.read_text() == before
    changed(sources.notebook_path(source), "The program\\n", "The program\\n\\nOne sentence.\\n", 1)
    sources.pull(sources.notebook_path(source), tell=lambda _: None)
    assert "**Fix:**" not in source.read_text() and "# One sentence." in source.read_text()


def test_two_renderers_show_every_row():
    """That of nbviewer and GitHub's kind, and that of the site: a sign in a message ends no cell, no code and no table."""
    renderers = (
        pytest.importorskip("nbconvert.filters.markdown_mistune").markdown2html_mistune,
        pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").render,
    )
    for mode in wordings.declared_modes().values():
        first = page_messages.first_cell(mode)
        rows = len(re.findall(r"^\| (?!Message)", first, re.MULTILINE)) + first.count("<tr><td>")
        for render in renderers:
            html = render(first)
            assert len(re.findall(r"<tr>\s*<td", html)) == rows, mode.id
            assert not re.search(r"<td[^>]*>[^<]*`", html) and "<strong>Fix:</strong>" in html
