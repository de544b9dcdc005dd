"""The page of the tables in a browser: light and dark, wide and narrow, and by keyboard."""

import itertools
from dataclasses import replace

import pytest
from axe import violations
from browser import CHROMIUM, FLAGS, NEEDS, SCHEMES, WIDTHS
from strategy_clinic.base.templates import from_template
from strategy_clinic.examiner.findings import Evidence, Examination, Finding, Location, Text
from strategy_clinic.examiner.report import html as report
from strategy_clinic.inside import html
from strategy_clinic.panel.live_steps import steps_html
from test_inside import LINE, A, seen, tables
from thorough import mostly_thorough

pytestmark = [*NEEDS, pytest.mark.slow]


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        window = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield window
        window.close()


def three_steps():
    """In the second, a gradient differs, with a long name and a large tensor."""
    several, one = [], []
    for step in (1, 2, 3):
        several += [
            *seen("gradient", A, A, step=step),
            *seen("variable", [A] * 99, [A] * 99, step=step),
        ]
        one += seen("gradient", A if step == 2 else 2 * A, step=step)
        one += seen("variable", [A] * 99, step=step)
    lines = tuple(f"line_{number} = {number}" for number in range(1, 30))
    return replace(tables(several, one), path=LINE[0].path, source=lines)


def examined(shown):
    """The page of an examination with a finding, a failure and notes."""
    place = Location(LINE)
    finding = Finding("fm37", place, Evidence.OBSERVED, Text("`twice`"), Text("observed"))
    found = Examination("train.py", [], [finding], ["a note"], ["a part"], "raised", place)
    return report.page_of(found, replace(shown, ends=("on 2 devices it ended with ValueError: x",)))


IN_A_NOTEBOOK = "<!DOCTYPE html><html lang='en'><head><title>x</title></head><body><main><h1>x</h1>{}</main></body></html>"
PAGES = {
    "show": html.page,
    "examine": examined,
    "notebook": lambda shown: IN_A_NOTEBOOK.format(html.card(shown)),
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    for name, write in PAGES.items():
        (folder / f"{name}.html").write_text(write(three_steps()))
    return {name: (folder / f"{name}.html").as_uri() for name in PAGES}


# At least one of each width, scheme and page is always looked at.
LOOKED_AT = [*itertools.product(WIDTHS.values(), SCHEMES, PAGES)]


@pytest.mark.parametrize("looked_at", mostly_thorough(LOOKED_AT, *LOOKED_AT[::5]), ids=str)
def test_the_page_has_no_barrier_and_needs_no_other_file(chromium, addresses, looked_at):
    width, scheme, name = looked_at
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(addresses[name])
    assert violations(page) == [] and requests == [addresses[name]]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_the_slider_begins_where_the_runs_part_and_moves_by_keyboard(chromium, addresses):
    page = chromium.new_page()
    page.goto(addresses["show"])
    assert page.locator("caption:visible").all_text_contents() == ["step 2: 1 row marked"]
    page.focus("#step")
    page.keyboard.press("ArrowRight")
    assert page.locator("caption:visible").all_text_contents() == ["step 3: nothing differs"]
    page.keyboard.press("Home")
    assert page.locator("caption:visible").count() == 1
    page.check("#only")
    assert page.locator("tbody tr:visible").count() == 0
    page.focus("#step")
    page.keyboard.press("ArrowRight")
    assert page.locator("tbody tr:visible").count() == 2, "the line, and the row that it makes"
    page.close()


# JupyterLab's own colours, which the table below a panel takes: the background, letters and lines.
LAB = {
    "light": ("#fff", "rgba(0,0,0,.87)", "#e0e0e0"),
    "dark": ("#111", "rgba(255,255,255,.87)", "#616161"),
}
IN_LAB = """<!DOCTYPE html><html lang='en'><head><title>page</title>
<meta name='viewport' content='width=device-width'>
<style>body{{background:{0};color:{1}}}:root{{--jp-ui-font-color1:{1};--jp-border-color2:{2}}}</style>
</head><body><main><h1>page</h1>
<div style='display:flex;overflow:hidden'><div style='flex:1 1 auto'>{3}</div></div></main></body></html>"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [1300, 400])
def test_the_table_below_a_panel_is_read_in_both_themes(chromium, tmp_path, scheme, width):
    several = [*seen("gradient", A, A), *seen("variable", [A] * 99, [A] * 99)]
    shown = tables(several, [*seen("gradient", A), *seen("variable", [A] * 99)])
    lines = tuple(f"line_{number} = {number}  # wrong" for number in range(1, 30))
    shown = replace(shown, path="/program/train.py", source=lines)
    file = tmp_path / "lab.html"
    file.write_text(IN_LAB.format(*LAB[scheme], steps_html(shown, shown.steps[0])))
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(file.as_uri())
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Tab")
    assert page.locator(".clinic-steps:focus").count() == 1, "its rows are scrolled by keyboard"
    box = page.locator(".clinic-steps").bounding_box()
    assert box["x"] + box["width"] <= width, "what is wider is scrolled, also in a widget"
    words = page.locator(".clinic-steps").inner_text()
    assert "sum" in words and "norm" in words and "Lines that the fixed program changes" in words
    page.close()


# As ipywidgets has it.
SELECT = """<style>select{{outline:none!important;box-shadow:none}}</style><div class='clinic-panel'>{}
<select aria-label='Devices'><option>2</option></select></div>"""


def test_what_has_the_focus_in_a_panel_is_seen(chromium):
    page = chromium.new_page()
    page.set_content(SELECT.format(from_template("panel/templates/about.html", note="a note")))
    shadow = "getComputedStyle(document.querySelector('select')).boxShadow"
    assert page.evaluate(shadow) == "none"
    page.keyboard.press("Tab")
    assert page.evaluate(shadow).endswith("0px 0px 0px 2px")
    page.close()
