"""The book: built for real, without a warning; every page whole, every link inside it sound, nothing fetched from elsewhere."""

import functools
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import build_book, changed
from strategy_clinic import Setup, book
from strategy_clinic.base import files, outcomes
from strategy_clinic.inside.text import FITS
from strategy_clinic.modes import groups, kinds, registry
from strategy_clinic.panel import cards
from strategy_clinic.programs.switches import for_setup
from strategy_clinic.records import store, switches
from strategy_clinic.rendering import sources

pytestmark = pytest.mark.slow

MOST_DATA = 60_000  # bytes of a page's switches, and of its picture of what replicas hold with the words for it
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page loads by itself, where it leads, and what can be led to."""

    def __init__(self, text: str):
        super().__init__()
        self.loads, self.links, self.names, self.pictures = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given.get("id"), given.get("name")}
        self.pictures += [(given["src"], given.get("alt", ""))] if tag == "img" else []
        self.loads += [given[LOADS[tag]]] if given.get(LOADS.get(tag)) else []
        self.links += [given["href"]] if tag == "a" and given.get("href") else []


parsed = functools.cache(Page)


def pages(site: Path) -> dict[Path, Page]:
    return {path: parsed(path.read_text()) for path in site.rglob("*.html")}


def fetched(site: Path) -> list[str]:
    """What a browser would ask of another machine, in pages and in style sheets."""
    found = [load for page in pages(site).values() for load in page.loads]
    for path in site.rglob("*.css"):
        found += re.findall(r"url\([\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", path.read_text())
    texts = [text for each in found for text in ([each] if isinstance(each, str) else each)]
    return [text for text in texts if re.match(r"(https?:)?//", text)]


def broken(site: Path) -> list[str]:
    """Each link and each load inside the site that leads nowhere."""
    read = pages(site)
    return [
        f"{path.name}: {link}"
        for path, page in read.items()
        for link in page.links + page.loads
        if not urlsplit(link).scheme and not arrives(path, link, read)
    ]


def arrives(path: Path, link: str, read: dict) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    known = parts.fragment in read[target].names if target in read and parts.fragment else True
    return target.exists() and known


def test_a_page_for_every_mode(site):
    for mode in registry.modes():
        text = (site / mode.notebook).with_suffix(".html").read_text()
        assert f"{mode.name} broken (" in text and f"{mode.name} solution (" in text
        assert "class='clinic-switches'" in text and "VBox(" not in text
        assert "Show the solution" in text and "# Set-up:" not in text
        assert "<p class='clinic-line' data-outcome='red'>" in text
        badges = sources.badges(Path(mode.notebook).stem)
        for address in re.findall(r"\((http[^)]+)\)", badges):
            assert address.replace("&", "&amp;") in text


def test_a_picture_of_what_replicas_hold_is_a_small_file(site):
    """What a reader downloads of it: the file that the page loads, and the words for it in the page."""
    sizes = {
        path.stem: (path.parent / unquote(source)).stat().st_size + len(words.encode())
        for path, page in pages(site).items()
        for source, words in page.pictures
        if words.startswith(FITS)
    }
    assert len(sizes) == 20 and 10_000 < max(sizes.values()) <= MOST_DATA, sizes


def test_no_page_speaks_of_what_only_a_notebook_has(site):
    """Widgets, which need a kernel, and links that a page has none of without an address."""
    for path in site.rglob("*.html"):
        text = path.read_text()
        for words in (cards.NOTE, sources.UNPUBLISHED.split(":")[0], "`clinic wheel` writes"):
            assert words not in text, path.name
    start = (site / "notebooks" / "00_start_here.html").read_text()
    assert start.count("On this site") == 2 and 'href="../errors/index.html"' in start


def lessons() -> list[str]:
    """The pages of the course, in their order."""
    text = (files.ROOT / "book" / "learn" / "course.toml").read_text()
    modes = [lesson["mode"] for part in files.toml(text)["part"] for lesson in part["lesson"]]
    return [Path(registry.mode_by_id(mode).notebook).stem for mode in modes]


def test_the_course_says_what_each_lesson_takes_and_teaches(site):
    text = (site / "learn" / "course.html").read_text()
    items = re.findall(r"<li><p>(<a .*?)</p>", text, re.DOTALL)
    assert len(items) == len(lessons()) > 20 and f"It has {len(lessons())} lessons" in text
    for item, page in zip(items, lessons()):
        assert f"notebooks/{page}.html" in item
        words = re.sub(r"<[^>]+>", "", item)
        count, learns = re.search(r"(\d+) minutes\. (.+)", words, re.DOTALL).groups()
        assert 10 <= int(count) <= 30 and learns.strip().endswith(".")


def test_a_lesson_leads_to_the_next_one(site):
    pages = ["", *lessons(), ""]
    for before, page, after in zip(pages, pages[1:], pages[2:]):
        text = (site / "notebooks" / f"{page}.html").read_text()
        line = text.split('class="clinic-lesson"')[1].split("</p>")[0]
        assert re.findall(r'href="(\w+)\.html"', line) == list(filter(None, [before, after]))
        assert "../learn/course.html" in line and " minutes" in line
        links = text.split('class="related-pages"')[1].split("</footer>")[0]
        for other in filter(None, [before, after]):
            assert f'href="{other}.html"' in links
    other = (site / "notebooks" / "fm63_input_bound.html").read_text()
    assert 'class="clinic-lesson"' not in other


def test_the_switches_of_every_mode_hold_what_was_recorded():
    for mode in registry.modes():
        own = Setup(**store.parameters_of(sources.stored_notebook(files.ROOT / mode.notebook)))
        data = switches.switch_data(mode, own)
        shown = {tuple(each["setup"]): each for each in data["setups"]}
        recorded = [verdict for _, verdict in switches.recorded_setups(mode)]
        assert len(shown) == len(recorded) >= 2 and tuple(data["chosen"]) in shown
        for verdict in recorded:
            each = shown[tuple(verdict.setup.as_dict().values())]
            assert each["outcomes"] == [verdict.broken, verdict.fixed]
            assert verdict.says.rstrip(".") in data["says"][each["says"]]
            if "unavailable" not in each["outcomes"]:
                numbers = data["programs"][each["programs"][0]]
                text = "\n".join(data["lines"][number] for number in numbers)
                broken = files.program_text(mode.id, "broken")
                assert text == for_setup(broken, verdict.setup, "CPU").rstrip("\n")
        assert len(switches.switch_html(mode, own).encode()) < MOST_DATA


def test_the_data_of_the_switches_cannot_end_their_element(monkeypatch):
    mode = registry.mode_by_id("fm25")
    monkeypatch.setattr(switches, "switch_data", lambda *_: {"says": "</script><img src=x>"})
    html = switches.switch_html(mode, Setup())
    assert html.count("</script>") == 1 and "<img" not in html


def test_every_mode_is_found_by_its_symptoms(site):
    from sphinx.search.en import SearchEnglish

    language, index = SearchEnglish({}), search_index(site)
    for mode in registry.modes():
        page = index["docnames"].index(mode.notebook.removesuffix(".ipynb"))
        says = [each.says for each in mode.symptoms if each.outcome == "raises"]
        for word in {each for text in says for each in language.split(text)}:
            term = language.stem(word.lower())
            if language.word_filter(term):
                assert page in pages_with(index, term), f"{mode.id}: {word}"


def search_index(site: Path) -> dict:
    text = (site / "searchindex.js").read_text()
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def pages_with(index: dict, term: str) -> list[int]:
    found = [index[kind].get(term, []) for kind in ("terms", "titleterms")]
    return [page for each in found for page in (each if isinstance(each, list) else [each])]


def test_nothing_is_fetched(site):
    assert fetched(site) == []


def test_no_link_is_broken(site):
    assert broken(site) == []


def test_every_page_leads_to_every_mode_and_to_the_atlas(site):
    """In the groups of the sidebar, each mode once."""
    for page in ("index.html", "how_to/examine.html"):
        links = parsed((site / page).read_text()).links
        for name in [mode.notebook for mode in registry.modes()] + ["notebooks/atlas.ipynb"]:
            assert any(link.endswith(name.replace(".ipynb", ".html")) for link in links)


def table_of(page: Path) -> str:
    return page.read_text().split("<table", 1)[1].split("</table>")[0]


def test_a_group_has_a_page_with_its_modes_in_their_order_and_both_lists_lead_to_it(site):
    for group in groups.groups():
        page = site / "notebooks" / f"{group.name}.html"
        assert re.findall(r'href="(fm\d\d)_', table_of(page)) == list(group.modes)
        for name in ("index.html", "errors/index.html"):
            links = parsed((site / name).read_text()).links
            assert any(link.endswith(f"notebooks/{page.name}") for link in links)


KIND_PAGES = {"raises": "raises", "warns": "warns", "wrong numbers": "wrong_numbers"}


def test_the_start_page_and_the_sidebar_lead_to_each_kind(site):
    for name in (*KIND_PAGES.values(), "slow"):
        for page in ("index.html", "notebooks/00_start_here.html"):
            links = parsed((site / page).read_text()).links
            assert any(link.endswith(f"errors/{name}.html") for link in links), (page, name)


def test_every_mode_is_in_each_table_of_what_it_shows(site):
    for mode in registry.modes():
        for kind in kinds.kinds_of(mode):
            text = (site / "errors" / f"{KIND_PAGES.get(kind, 'slow')}.html").read_text()
            assert f'href="../notebooks/{Path(mode.notebook).stem}.html"' in text


def test_the_atlas_needs_no_kernel(site):
    text = (site / "notebooks" / "atlas.html").read_text()
    assert "data-filter='strategy'" in text and cards.NOTE not in text
    assert parsed(text).links.count("fm25_load_outside_scope.html") > 12


@pytest.mark.parametrize(
    "line, problem",
    [
        ("<script src='https://cdn.example/require.js'></script>", fetched),
        ("<link rel='stylesheet' href='//fonts.example/a.css'>", fetched),
        ("<a href='fm99_missing.html'>x</a>", broken),
        ("<a href='other.html#missing'>x</a>", broken),
        ("<img src='missing.png' alt='x'>", broken),
    ],
)
def test_the_checks_of_pages_can_fail(tmp_path, line, problem):
    (tmp_path / "other.html").write_text("<p id='here'></p>")
    (tmp_path / "a.html").write_text("<a href='other.html#here'>x</a><a href='https://x.org'>y</a>")
    assert problem(tmp_path) == []
    (tmp_path / "b.html").write_text(line)
    assert problem(tmp_path) != []


def test_a_style_sheet_that_fetches_is_found(tmp_path):
    (tmp_path / "a.css").write_text("p { background: url(https://cdn.example/a.png) }")
    assert fetched(tmp_path) == ["https://cdn.example/a.png"]


def test_words_of_a_report_stay_words():
    line = book.line_html("FM01 broken (executed) | <script>", "raises")
    assert "<b>FM01 broken (executed)</b> &lt;script&gt;" in line and "'raises'" in line
    verdict = {"subject": "<b>", "outcome": "works", "evidence": "executed", "says": ""}
    table = book.table_html([verdict | {"setup": Setup().as_dict()}])
    assert "&lt;b&gt;" in table and "<b>" not in table


def test_a_table_names_no_evidence_of_what_did_not_run():
    verdict = {"outcome": "unavailable", "evidence": "none", "says": "why", "subject": "broken"}
    table = book.table_html([verdict | {"setup": Setup().as_dict()}])
    assert ">unavailable<" in table and "none" not in table


def test_book_has_the_colours_of_outcomes(site):
    page, style = ((site / name).read_text() for name in ("index.html", "_static/book.css"))
    for row in outcomes.ROWS:
        assert f"--outcome: var(--outcome-{row.name});" in style
        assert f"--outcome-{row.name}: {row.light};" in page
        assert f"--outcome-{row.name}: {row.dark};" in page
        assert row.light not in style and row.dark not in style


def test_only_what_changed_is_written_again(project, tmp_path):
    folder = tmp_path / "pages"
    book.prepare(folder)
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    (folder / "fm99_gone.ipynb").write_text("{}")
    changed(project / "notebooks" / "fm25_load_outside_scope.ipynb", "## Exercise", "## Exercises")
    book.prepare(folder)
    now = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert [name for name in times if now[name] != times[name]] == ["fm25_load_outside_scope.ipynb"]
    assert set(now) == set(times)


@pytest.mark.thorough
def test_a_broken_link_between_notebooks_stops_the_build(site, tmp_path):
    """`site` has no warning; the same with one link changed has one, and that is an error. What did not change was read."""
    shutil.copytree(site.parent / "read", tmp_path / "read")
    project = site.parent / "project"
    changed(project / "notebooks" / "fm25_load_outside_scope.ipynb", "(fm26_", "(fm56_")
    done = build_book(project / "book", tmp_path, "dummy")
    assert done.returncode == 1
    assert "fm56_replica_count_changed.ipynb" in done.stderr and "fm05_" not in done.stderr
