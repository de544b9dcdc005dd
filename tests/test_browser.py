"""What a person sees, in a real browser: the panel in JupyterLab, Notebook 7 and Voila, the atlas, and the book.

Pictures of all of it are left in `shots`, or in the folder that SHOTS names.
"""

import contextlib
import os
from pathlib import Path
from urllib.parse import urlencode

import nbformat
import pytest
from axe import violations
from browser import (
    BOOK,
    ERROR,
    FAILING,
    MODULES,
    NEEDS,
    NOTEBOOK,
    PATHS,
    POLLING,
    RUN_ALL,
    SCHEMES,
    SESSION_STARTED,
    STILL,
    TOKEN,
    USE_CONTROLS,
    WIDTHS,
    by_keyboard,
    by_mouse,
    card,
    chosen,
    command,
    errors_of,
    in_the_dark,
    keep_picture,
    launched,
    looks,
    open_panel,
    private_folders,
    run,
    served,
    serving,
    tab_to,
    use_filters,
    write_settings,
)
from changed_pages import ALWAYS
from conftest import changed, copy_project, shortened
from error_samples import DESCRIBED, ERRORS, OF_NO_MODE
from kernels import servers, socket_folder
from nbformat.v4 import new_code_cell, new_notebook
from strategy_clinic import Setup
from strategy_clinic.base import files
from strategy_clinic.forkserver import kernelspec
from strategy_clinic.modes import registry
from strategy_clinic.panel import widgets
from strategy_clinic.processes.cluster import free_ports
from strategy_clinic.records import atlas, store
from strategy_clinic.rendering import sources
from strategy_clinic.triage.answer_text import PASTE
from strategy_clinic.triage.classify import triage
from thorough import mostly_thorough, thorough

pytestmark = [pytest.mark.slow, *NEEDS]

OF_KERAS = "fm50_clipped_before_the_sum.ipynb"  # a mode that is an error of Keras 3


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The project as the servers show it: JupyterLab saves what it shows."""
    folder = copy_project(tmp_path_factory.mktemp("served"))
    for name in (NOTEBOOK, OF_KERAS):
        path = folder / "notebooks" / name
        nbformat.write(shortened(nbformat.read(path, as_version=4)), path)
    changed(folder / "notebooks" / "examine_your_code.ipynb", "import tensorflow as tf", "1 / 0")
    return folder


@contextlib.contextmanager
def started(name: str, root: Path, own: Path, **variables: str):
    """A server, which shows a notebook of a folder; gives the notebook's address."""
    (port,) = free_ports(1)
    write_settings(own)
    environment = os.environ | private_folders(own) | variables
    with served(command(name, port, root), port, own, env=environment):
        yield f"http://127.0.0.1:{port}{PATHS[name]}{NOTEBOOK}?token={TOKEN}"


@pytest.fixture(scope="module", params=mostly_thorough(MODULES, "lab"))
def front(request, copied, tmp_path_factory):
    """One server of each kind, for all tests."""
    name, own = request.param, tmp_path_factory.mktemp(request.param)
    with started(name, copied, own) as address:
        yield name, address


@pytest.fixture(scope="module")
def chromium():
    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def window(front, chromium):
    """One page of each front end, which shows one notebook after the other."""
    made = chromium.new_page()
    made.set_default_timeout(420_000)  # Voila runs all cells before it answers
    made.add_init_script(STILL)
    yield made
    made.close()


@pytest.fixture(scope="module")
def offline(chromium):
    """One page for all that needs no network."""
    made = chromium.new_page(offline=True)
    yield made
    made.close()


@pytest.fixture
def page(window):
    return as_at_first(window)


@pytest.fixture
def reader(offline):
    return as_at_first(offline)


@pytest.fixture
def short_runtime():
    with socket_folder() as folder:
        yield folder


def as_at_first(page):
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDTHS["wide"], "height": 1000})
    return page


def test_an_error_is_pasted(front, page):
    """By keyboard alone, from the field to the link."""
    name, url = front
    open_panel(page, name, url.replace(NOTEBOOK, "00_start_here.ipynb"), "button.clinic-triage")
    page.get_by_label("Error", exact=True).focus()
    page.keyboard.insert_text(ERROR)
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    shown = page.locator("[data-clinic-mode='fm04']")
    shown.wait_for(state="visible")
    assert "must end in .weights.h5" in shown.inner_text() and shown.locator("b").count() == 0
    assert shown.locator("a").get_attribute("href").endswith("fm04_weights_path_refused.ipynb")


def test_what_is_run_right_after_opening_runs(chromium, short_runtime, tmp_path):
    """As after `make lab`: no fork server runs, and TensorFlow's import takes seconds. The first kernel waits for neither."""
    from playwright.sync_api import TimeoutError as Late

    cell = new_notebook(cells=[new_code_cell("print('it ran')")], metadata=sources.KERNEL)
    (tmp_path / "notebooks").mkdir()
    nbformat.write(cell, tmp_path / "notebooks" / NOTEBOOK)
    warm = {"XDG_RUNTIME_DIR": str(short_runtime), "JUPYTER_PATH": str(kernelspec.WARM)}
    with started("lab", tmp_path, tmp_path, **warm) as address, chromium.new_page() as page:
        page.goto(address)
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        with contextlib.suppress(Late):
            page.wait_for_function(SESSION_STARTED, polling=POLLING, timeout=1800)
        page.evaluate(RUN_ALL)
        page.locator(".jp-OutputArea-output", has_text="it ran").wait_for()
        assert len(servers(short_runtime)) == 1


@pytest.mark.parametrize("front", ["lab"], indirect=True)
def test_a_program_is_pasted(front, page):
    """By keyboard alone, from the field to the marked line; in light and dark, wide and narrow."""
    name, url = front
    open_panel(
        page, name, url.replace(NOTEBOOK, "examine_your_code.ipynb"), "button.clinic-examine"
    )
    page.get_by_label("Program", exact=True).focus()
    page.keyboard.insert_text(FAILING)
    tab_to(page, "button.clinic-examine button, button.clinic-examine", 5)
    page.keyboard.press("Space")
    shown = page.locator(".clinic-examined .clinic-listing")
    shown.wait_for(state="visible")
    assert (
        shown.locator("[data-clinic-marked='2']").inner_text().startswith("  2  raise ValueError")
    )
    assert "fm04 weights_path_refused" in shown.inner_text() and shown.locator("pre b").count() == 0
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        light = str(scheme == "light").lower()
        page.locator(f"body[data-jp-theme-light='{light}']").wait_for(state="attached")
        for word, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 1000})
            assert shown.evaluate("each => each.scrollWidth <= each.clientWidth")
            assert violations(page, [".clinic-listing"]) == []
            keep_picture(page, f"examine-lab-{scheme}-{word}")


def test_panel(front, page, reader, site):
    name, url = front
    open_panel(page, name, url)
    by_keyboard(page, name)
    by_mouse(page, name)
    if name == "lab":
        as_on_the_site(page, reader, site, NOTEBOOK)
    looks(page, name, "light")
    in_the_dark(page, name, url)
    looks(page, name, "dark")


@pytest.mark.thorough
@pytest.mark.parametrize("front", ["lab"], indirect=True)
def test_the_panel_of_an_error_of_keras(front, page, reader, site):
    """On Keras 3, where it shows, and on Keras 2, where it does not: as on the site."""
    name, url = front
    open_panel(page, name, url.replace(NOTEBOOK, OF_KERAS))
    for number, (keras, outcome) in enumerate({"3": "wrong", "2": "works"}.items(), 1):
        assert run(page, number, strategy="mirrored", devices="4", keras=keras) == outcome
        as_on_the_site(page, reader, site, OF_KERAS)


def as_on_the_site(page, reader, site, notebook):
    """What the panel has run in a kernel is what the site's page of the same notebook shows from the records."""
    setup = chosen(page)
    reader.goto(
        f"{(site / 'notebooks' / notebook).with_suffix('.html').as_uri()}?{urlencode(setup)}"
    )
    switches = reader.locator(".clinic-switches")
    assert {each: switches.locator(f"[name={each}]").input_value() for each in setup} == setup
    assert switches.locator("select").count() == len(setup)
    outcome, words = card(page)
    shown = switches.locator(".clinic-line")
    assert shown.get_attribute("data-outcome") == outcome
    for line in words.splitlines():
        if line.startswith(("▲", "✔", "broken", "fixed")):
            assert line in shown.inner_text()
    programs = page.locator(".clinic-program pre").all_text_contents()
    recorded = switches.locator("pre").all_text_contents()
    assert [text.strip() for text in recorded] == [text.strip() for text in programs]


def test_the_switches_of_a_page_of_the_site(reader, site):
    """By keyboard, with the address as what is kept; a setup that was not recorded is refused in a sentence."""
    address = (site / "notebooks" / NOTEBOOK).with_suffix(".html").as_uri()
    reader.goto(f"{address}?devices=3")
    shown = reader.locator(".clinic-switches .clinic-line")
    assert "mirrored x3, saved as keras, Keras 3, which was not recorded" in shown.inner_text()
    assert shown.get_attribute("data-outcome") == "wrong"
    reader.locator(".clinic-switches [name=devices]").focus()
    reader.keyboard.press("ArrowUp")
    assert shown.get_attribute("data-outcome") == "works"
    assert "devices=1" in reader.url and "not recorded" not in shown.inner_text()
    reader.get_by_role("button", name="central_storage x4: wrong").focus()
    reader.keyboard.press("Enter")
    assert "central_storage x4, saved as keras, Keras 3" in shown.inner_text()
    assert reader.locator(".clinic-places :focus").get_attribute("aria-pressed") == "true"
    reader.reload()
    assert "central_storage x4, saved as keras, Keras 3" in shown.inner_text()
    assert "CentralStorageStrategy" in reader.locator(".clinic-switches pre").first.text_content()
    # One device has one count only: the number of devices follows the strategy.
    reader.locator(".clinic-switches [name=strategy]").select_option("one_device")
    assert "one_device x1" in shown.inner_text()


# A walk over strategies that have one number of devices, or several, and over numbers.
WALK = [
    ("strategy", "default"),
    ("strategy", "mirrored"),
    ("devices", "4"),
    ("strategy", "one_device"),
]
WALK += [("keras", "2"), ("strategy", "central_storage"), ("strategy", "tpu_traced")]
WALK += [("strategy", "mirrored"), ("devices", "1"), ("strategy", "multi_worker")]
WALK += [("strategy", "mirrored"), ("save_format", "h5")]


@pytest.mark.parametrize("mode", ["fm16", "fm24", "fm25", "fm37"])
def test_the_panel_and_the_site_choose_alike(reader, site, mode):
    """The same parameters are offered, and after each choice both show the same setup."""
    path = files.ROOT / registry.mode_by_id(mode).notebook
    own = Setup(**store.parameters_of(sources.stored_notebook(path)))
    texts = {each: files.program_text(mode, each) for each in ("broken", "fixed")}
    panel = widgets.Panel(registry.mode_by_id(mode), own, texts, lambda _: [])
    reader.goto((site / "notebooks" / path.name).with_suffix(".html").as_uri())
    controls = reader.locator(".clinic-switches select")
    names = controls.evaluate_all("all => all.map(each => each.name)")
    assert names == list(panel.controls)
    for name, value in [step for step in WALK if step[0] in names]:
        control = panel.controls[name]
        control.value = type(control.value)(value)
        reader.locator(f".clinic-switches [name={name}]").select_option(value)
        shown = controls.evaluate_all("all => all.map(each => each.value)")
        assert shown == [str(each.value) for each in panel.controls.values()], (name, value)
        words = reader.locator(".clinic-switches .clinic-line").inner_text()
        assert f"under {panel.in_words(panel.chosen())}\n" in words


def test_the_site_says_why_a_setup_has_no_verdict(reader, site):
    address = (site / "notebooks" / NOTEBOOK).with_suffix(".html").as_uri()
    reader.goto(f"{address}?save_format=saved_model")
    shown = reader.locator(".clinic-switches .clinic-line").inner_text()
    assert "○ unavailable: no program for this setup" in shown and "(none)" not in shown
    assert shown.count("Not run with saved_model: the loaded object has functions to call") == 1


ROW = "<tr><td style='color:black'>a cell</td></tr>"


def test_the_check_for_violations_can_fail(reader):
    reader.set_content(
        "<html lang='en'><title>x</title><main><h1>x</h1><img src='x.png'></main></html>"
    )
    assert [each.split(":")[0] for each in violations(reader)] == ["image-alt"]
    assert violations(reader, ["h1"]) == []
    reader.set_content(
        f"<html lang='en'><title>x</title><main><h1>x</h1><table>{ROW}{ROW.replace('black', '#eee')}{ROW}</table></main></html>"
    )
    assert [each.split(":")[0] for each in violations(reader)] == ["color-contrast"]
    assert reader.locator("[data-alike]").count() == 1


@pytest.mark.parametrize("scheme", mostly_thorough(SCHEMES, "dark"))
def test_the_filters_of_the_atlas(reader, tmp_path, scheme):
    """The page needs no server and no network."""
    atlas.write_atlas(tmp_path / "atlas.html")
    thrown: list[str] = []
    reader.on("pageerror", lambda error: thrown.append(str(error)))
    reader.emulate_media(color_scheme=scheme)
    reader.goto((tmp_path / "atlas.html").as_uri())
    use_filters(reader)
    open_by_key(reader)
    assert violations(reader) == []
    assert thrown == []


def open_by_key(page):
    """A cell of the atlas over versions, reached and opened without a mouse, says what has changed between which."""
    cell = page.locator(".clinic-times summary[aria-label^='fm32'][aria-label$='works, changed']")
    cell.focus()
    page.keyboard.press("Enter")
    behind = page.locator(".clinic-times details[open] div")
    assert "Changed between 2.21 and nightly" in behind.inner_text()
    assert "InvalidArgumentError until keras 3.16" in behind.inner_text()


BOOK += [f"notebooks/{Path(NOTEBOOK).stem}", "notebooks/examine_your_code"]
# Pages of text, lists and a notebook, of which others are looked at.
LIKE_OTHERS = ("how_to/examine", "errors/raises", "notebooks/examine_your_code")


LOOKED_AT = [("light", "wide"), ("dark", "wide"), ("dark", "narrow"), ("light", "narrow")]
# Until what reacts to another width, in book.js, has run.
NEXT_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
AXED = LOOKED_AT[::2]  # each colour scheme and each width once: axe takes longer than all the rest


@pytest.mark.parametrize("name", [thorough(each) if each in LIKE_OTHERS else each for each in BOOK])
def test_pages_of_the_book(reader, site, name):
    """Read from a folder, with no network: whole, as wide as the window, and with nothing to complain of."""
    reader.goto((site / f"{name}.html").as_uri())
    for scheme, width in LOOKED_AT:
        reader.emulate_media(color_scheme=scheme)
        reader.set_viewport_size({"width": WIDTHS[width], "height": 1000})
        assert reader.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
        assert reader.locator("article").bounding_box()["width"] <= WIDTHS[width]
        reader.evaluate(NEXT_FRAMES)
        assert (scheme, width) not in AXED or violations(reader) == []
        keep_picture(reader, f"book-{Path(name).name}-{scheme}-{width}")


def test_the_site_finds_a_message_as_triage_does(reader, site):
    """In a browser, with the words that triage answers; test_triage_site compares more texts."""
    reader.goto((site / "errors" / "index.html").as_uri())
    field, found = reader.get_by_label("Error message"), reader.locator(".clinic-found")
    assert PASTE in found.inner_text()
    for _, text in [*ERRORS, *DESCRIBED, *((None, text) for text in OF_NO_MODE if text)]:
        field.fill(text)
        answer = triage(text)
        expected = [answer.mode or "none", *(each.mode or "none" for each in answer.candidates)]
        shown = reader.locator(".clinic-search").get_attribute("data-modes")
        assert shown == " ".join(expected), text
    field.fill("loss twice as big with 2 gpus")
    link = found.locator("a").first
    assert link.get_attribute("href").startswith("../notebooks/fm37_")
    assert "perhaps fm37" in found.inner_text() and "fix:" not in found.inner_text()
    field.fill("RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x10 and 20x5)")
    assert "none of the modes" in found.inner_text() and found.locator("a").count() == 0
    field.fill(" ")
    assert PASTE in found.inner_text()


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["six modes", "all"])
def test_no_page_of_the_site_throws(chromium, site, every):
    """Every page, as a server gives it, and each value of each of its controls; every file that it asks for is there.

    Pages of modes have the same parts: but at night those of six modes stand for them.
    """
    left_out = (
        set() if every else {Path(mode.notebook).stem for mode in registry.modes()} - ALWAYS.keys()
    )
    found = sorted(path.relative_to(site) for path in site.rglob("*.html"))
    paths = [path for path in found if path.stem not in left_out]
    assert len(found) > len(registry.modes()) and len(paths) == len(found) - len(left_out)
    with serving(site) as address, chromium.new_page() as page:
        thrown = errors_of(page)
        for path in paths:
            page.goto(f"{address}/{path}")
            page.evaluate(USE_CONTROLS)
    assert thrown == []


def test_what_a_page_throws_is_noticed(chromium, tmp_path):
    (tmp_path / "a.html").write_text(
        "<script>[].first()</script><img src='none.png'><link rel='icon' href='data:,'>"
    )
    with serving(tmp_path) as address, chromium.new_page() as page:
        thrown = errors_of(page)
        page.goto(f"{address}/a.html")
    assert any("first is not a function" in each for each in thrown)
    assert any("404" in each and "none.png" in each for each in thrown)


def test_the_book_is_searched_filtered_and_unfolded(chromium, site):
    """An error message, as it was printed, leads to its mode; filters and folds need no kernel."""
    with serving(site) as address, chromium.new_page() as page:
        page.goto(f"{address}/index.html")
        page.get_by_placeholder("Search").fill(
            "numpy() is only available when eager execution is enabled"
        )
        page.keyboard.press("Enter")
        page.locator("#search-results a", has_text="FM01.").first.wait_for()
        assert violations(page) == []
        page.locator("#search-results a", has_text="FM01.").first.click()
        page.get_by_text("Show the solution").click()
        assert page.get_by_text("largest weight after the step").last.is_visible()
        page.goto(f"{address}/notebooks/atlas.html")
        use_filters(page)
