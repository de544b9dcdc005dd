"""A page where no kernel runs and most of HTML is taken away: what GitHub's and VS Code's viewers leave of it.

nbconvert's basic template stands for the viewer, and a pass that keeps only the tags and attributes that GitHub keeps, for its
sanitiser. What a reader must still find are words: the story, each step's line, the verdict, and each picture's description.
"""

import functools
import re

import nbformat
import pytest
from strategy_clinic.base import files
from strategy_clinic.base.display import MIME
from strategy_clinic.panel.cards import NOTE

bleach = pytest.importorskip("bleach")
LONG_PAGES = ["atlas", "fm01_host_read_in_replica", "fm26_replica_count_changed"]
PAGES = ["00_start_here", "fm25_load_outside_scope", "examine_your_code"]
PAGES += [pytest.param(page, marks=pytest.mark.slow) for page in LONG_PAGES]
KEPT = (
    "h1 h2 h3 h4 h5 h6 p a b i em strong code pre tt ul ol li dl dt dd blockquote hr br table thead tbody tr th td caption \
img div span details summary sup sub"
)
ATTRIBUTES = {"a": ["href", "title"], "img": ["src", "alt", "title"], "th": ["scope"]}
GONE = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)  # with all that is in them


@functools.cache
def notebook(stem: str):
    return nbformat.read(files.notebooks() / f"{stem}.ipynb", as_version=4)


@functools.cache
def shown(stem: str) -> str:
    """The page as a viewer without a kernel and without scripts shows it."""
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook(stem))
    kept = {"protocols": {"http", "https", "data"}, "strip": True, "strip_comments": True}
    return bleach.clean(GONE.sub("", page), tags=set(KEPT.split()), attributes=ATTRIBUTES, **kept)


def outputs(stem: str) -> list:
    return [output for cell in notebook(stem).cells for output in cell.get("outputs", [])]


def words(html: str) -> str:
    import html as entities

    return " ".join(entities.unescape(re.sub(r"<[^>]+>", " ", html)).split())


@pytest.mark.parametrize("stem", PAGES)
def test_what_is_left_is_the_story(stem):
    page, cells = shown(stem), notebook(stem).cells
    text = words(page)
    for cell in cells:
        if cell.source.startswith("#") and cell.cell_type == "markdown":
            heading = cell.source.splitlines()[0].lstrip("# ")
            assert "".join(words(heading).replace("`", "").split()) in "".join(text.split())
    assert "<script" not in page and "style=" not in page and "clinic-card{" not in text


@pytest.mark.parametrize("stem", PAGES)
def test_what_is_left_has_every_line_and_every_verdict(stem):
    page = words(shown(stem))
    for output in outputs(stem):
        data = output.get("data", {})
        if MIME in data and "table" not in data[MIME]:
            assert " ".join(data["text/plain"].split()) in page
        for report in [data.get(MIME, {})]:
            for verdict in report.get("table", []):
                assert verdict["outcome"] in page
        if "".join(data.get("text/plain", "")).endswith(NOTE):
            assert " ".join(NOTE.split()) in page


@pytest.mark.parametrize("stem", PAGES)
def test_what_is_left_describes_its_pictures(stem):
    pictures = re.findall(r"<img[^>]*>", shown(stem))
    stored = [each["data"] for each in outputs(stem) if "data" in each]
    own = sum("image/png" in data for data in stored)
    in_html = sum(data.get("text/html", "").count("<img ") for data in stored)
    assert len(pictures) == own + in_html
    assert all(re.search(r'alt="[^"]{10,}"', each) for each in pictures)


def test_a_picture_without_words_would_be_noticed():
    assert not re.search(r'alt="[^"]{10,}"', '<img src="data:x" alt="figure">')
