"""How the browser's tests start servers, drive pages and look at them."""

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe import violations
from conftest import ROOT
from strategy_clinic.modes import registry

CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
NEEDS = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not CHROMIUM, reason="no Chromium on this machine; install it, or name it in CHROMIUM"
    ),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--single-threaded",  # the other core is another test's
]
NOTEBOOK = "fm25_load_outside_scope.ipynb"
SHOTS = Path(os.environ.get("SHOTS", ROOT / "shots"))
KERNEL_READY = """() => { const shell = window.jupyterapp && window.jupyterapp.shell;
  const w = shell && shell.currentWidget;
  if (window.opened && w !== window.opened) { shell.activateById(window.opened.id); return false; }
  const k = w && w.sessionContext && w.sessionContext.session && w.sessionContext.session.kernel;
  return !!k && k.status === 'idle'; }"""
SESSION_STARTED = """() => { const w = window.jupyterapp && window.jupyterapp.shell.currentWidget;
  return !!(w && w.sessionContext && w.sessionContext.session && w.sessionContext.session.kernel); }"""
RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
# JupyterLab is loaded once: that takes longer than what is looked at.
# The last document is closed after the next one is open: where none is open, JupyterLab opens its launcher,
# sometimes in front of the document that was opened meanwhile: KERNEL_READY puts that in front again.
OPEN_INSTEAD = """async path => { const { shell, commands } = window.jupyterapp;
  const last = shell.currentWidget;
  const next = await commands.execute('docmanager:open', { path });
  last.dispose();
  window.opened = next; }"""
# Nothing turns while something is waited for: each of its frames would be painted.
STILL = """const still = new CSSStyleSheet();
still.replaceSync('* { animation: none !important }');
document.adoptedStyleSheets = [still];"""
COLUMNS = """() => { const [left, right] = document.querySelector('.clinic-columns').children;
  return right.getBoundingClientRect().top < left.getBoundingClientRect().bottom ? 2 : 1; }"""
MODULES = {
    "lab": ["jupyterlab", "--LabApp.expose_app_in_browser=True"],
    "notebook": ["notebook", "--JupyterNotebookApp.expose_app_in_browser=True"],
    "voila": ["voila", "--Voila.ip=127.0.0.1"],
}
PATHS = {
    "lab": "/lab/tree/notebooks/",
    "notebook": "/notebooks/notebooks/",
    "voila": "/voila/render/notebooks/",
}
POLLING = 100  # milliseconds; without it, once for each frame, which is then painted
TOKEN = "for-this-test-only"
WIDTHS = {"wide": 1280, "narrow": 480}
SCHEMES = ("light", "dark")
DROPDOWNS = ("strategy", "devices", "save_format", "keras")
OURS = (".clinic-panel", ".clinic-card", ".clinic-atlas")


def command(front: str, port: int, root: Path) -> list[str]:
    module, *options = MODULES[front]
    start = [sys.executable, "-m", module, "--no-browser", f"--port={port}", *options]
    if front == "voila":
        return [*start, f"--Voila.root_dir={root}", "--Voila.tornado_settings={}"]
    served = ["--allow-root", "--ip=127.0.0.1", "--ServerApp.port_retries=0"]
    return [*start, *served, f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={TOKEN}"]


def private_folders(folder: Path) -> dict[str, str]:
    """Nothing of the person who runs the test, and no kernel of an earlier one."""
    kinds = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    made = {f"JUPYTER_{kind}": str(folder / kind) for kind in kinds}
    return made | {
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
    }


def write_settings(folder: Path):
    """The project's own overrides as user settings: arrow keys reach a focused dropdown, no news pops up."""
    for plugin, value in json.loads((ROOT / "binder" / "overrides.json").read_text()).items():
        scope, name = plugin.split(":")
        path = folder / "settings" / scope / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=2)
        return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextmanager
def served(words: list[str], port: int, own: Path, **options):
    """A server that is asked for by a command, as soon as it answers, until the end; what it says is in a file of `own`."""
    log = own / "server.log"
    with open(log, "w") as file:
        server = subprocess.Popen(words, stdout=file, stderr=file, **options)
        try:
            wait_until_up(server, f"http://127.0.0.1:{port}/", log)
            yield
        finally:
            server.terminate()
            server.wait(120)


@contextmanager
def launched():
    """Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def wait_until_up(server, address: str, log: Path):
    for _ in range(300):
        assert server.poll() is None, log.read_text()[-2000:]
        if answers(address):
            return
        time.sleep(0.2)


def open_panel(page, name: str, url: str, button: str = "button.clinic-run"):
    """Opens a notebook and runs all of its cells, by keyboard; Voila has run them before it shows anything."""
    if name == "lab" and page.url.startswith("http"):
        page.evaluate(OPEN_INSTEAD, urlsplit(url).path.removeprefix("/lab/tree/"))
    else:
        page.goto(url)
    if name != "voila":
        page.wait_for_function(KERNEL_READY, polling=POLLING)
        page.locator(
            ".jp-Cell.jp-mod-active"
        ).focus()  # it has it by itself, but for once in many times
        page.locator(".jp-Cell.jp-mod-active:focus").wait_for()
        page.keyboard.press("Control+a")
        page.keyboard.press("Control+Enter")
    page.locator(button).wait_for(state="visible")


def wait_until_done(page, number: int):
    """The panel's own mark; a kernel says idle several times in between."""
    page.locator(f"[data-clinic-runs='{number}'][data-clinic-state='done']").wait_for(
        state="attached"
    )


def chosen(page) -> dict:
    """The value of each dropdown that the panel has for its programs."""
    there = [name for name in DROPDOWNS if page.locator(f".clinic-{name} select").count()]
    return {name: page.locator(f".clinic-{name} select").input_value() for name in there}


ERROR = "Traceback\nValueError: The filename must end in `.weights.h5`. <b>Received</b>: filepath=x"
# A program that fails at once, so that nothing has to be waited for.
FAILING = """name = '<b>model</b>'
raise ValueError('The filename must end in `.weights.h5`. Received: filepath=x')
"""


def card(page) -> tuple[str, str]:
    """The outcome that the card is marked with, and what it says."""
    shown = page.locator(".clinic-verdict .clinic-card")
    return shown.get_attribute("data-clinic-outcome"), shown.inner_text()


def run(page, number: int, **choices) -> str:
    """Chooses by mouse, presses Run, and reads the outcome off the card, which must be that of the chosen setup."""
    for name, value in choices.items():
        page.locator(f".clinic-{name} select").select_option(value=value)
    page.locator("button.clinic-run").click()
    wait_until_done(page, number)
    outcome, words = card(page)
    assert said(chosen(page)) in words
    return outcome


def said(setup: dict) -> str:
    saved = f", saved as {setup['save_format']}" if "save_format" in setup else ""
    return "{strategy} x{devices}{saved}, Keras {keras}".format(**setup, saved=saved)


def tab_to(page, selector: str, presses: int):
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.locator(selector).evaluate("each => each === document.activeElement"):
            return
    raise AssertionError(f"{presses} presses of Tab do not lead to {selector}")


def by_keyboard(page, name: str):
    """From the page as it opened to a verdict without the mouse: each dropdown takes an arrow key, the button the space bar."""
    if name != "voila":
        page.keyboard.press("k")  # up, from the last cell to the panel's
    for dropdown in DROPDOWNS:
        tab_to(page, f".clinic-{dropdown} select", 40 if dropdown == "strategy" else 1)
        before = chosen(page)[dropdown]
        page.keyboard.press("ArrowUp" if dropdown == "keras" else "ArrowDown")
        assert chosen(page)[dropdown] != before
    tab_to(page, "button.clinic-run", 1)
    page.keyboard.press("Space")
    wait_until_done(page, 1)
    assert card(page)[0] == "wrong" and said(chosen(page)) in card(page)[1]


def by_mouse(page, name: str):
    """Every outcome in one front end; in the others, that the mouse does there what it does in that one."""
    assert run(page, 2, strategy="mirrored", devices="2", save_format="keras", keras="3") == "wrong"
    counts = ("4", "1", "8", "2") if name == "lab" else ("1",)
    outcomes = [run(page, number, devices=n) for number, n in enumerate(counts, 3)]
    assert outcomes == ["works" if n == "1" else "wrong" for n in counts]
    last = len(counts) + 3
    assert run(page, last, devices="2", save_format="checkpoint") == "wrong"
    assert "loaded" in page.locator(".clinic-figure img").get_attribute("alt")
    assert page.locator(".clinic-runs tr").count() == last + 1


def looks(page, name: str, scheme: str):
    """Nothing to complain of in our own output, two columns in a wide window and one in a narrow one, and pictures of both."""
    if name == "lab":
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    for word, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 1000})
        columns = 1 if word == "narrow" else 2
        page.wait_for_function(f"() => ({COLUMNS})() === {columns}", polling=POLLING)
        panel = page.locator(".clinic-panel")
        panel.scroll_into_view_if_needed()
        assert panel.evaluate("each => each.scrollWidth <= each.clientWidth")
        assert violations(page, OURS) == []
        keep_picture(page, f"{name}-{scheme}-{word}")
        keep_picture(panel, f"panel-{name}-{scheme}-{word}")


def keep_picture(shown, name: str):
    """Of a page, or of a part of one."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    shown.screenshot(path=SHOTS / f"{name}.png")


def in_the_dark(page, name: str, url: str):
    """Lab and Notebook follow the system, by the project's settings; Voila is asked, and runs the notebook again."""
    page.emulate_media(color_scheme="dark")
    if name == "voila":
        page.set_viewport_size({"width": WIDTHS["wide"], "height": 1000})
        open_panel(page, name, f"{url}&theme=dark")
        run(page, 1)
    page.locator("body[data-jp-theme-light='false']").wait_for(state="attached")


def use_filters(page):
    """Narrows the atlas by each filter, and back: then it is as it was."""
    rows = page.locator(".clinic-atlas tbody tr:visible")
    signs = page.locator(".clinic-atlas tbody a:visible")
    at_first = signs.all_inner_texts()

    def choose(name: str, value: str):
        page.get_by_role("combobox", name=name).select_option(value)

    choose("Runtime", "cpu-keras2")
    assert len(at_first) > signs.count() and rows.count() == len(registry.modes())
    choose("Strategy", "mirrored")
    choose("Save format", "h5")
    row = rows.filter(has_text="fm25")
    assert row.locator("td a:visible").all_inner_texts() == ["✔"] + ["▲"] * 3
    choose("Save format", "saved_model")
    assert row.locator("td a:visible").all_inner_texts() == ["○"] * 4
    choose("Document", "000")
    assert row.count() == 0 and rows.filter(has_text="fm01").count() == 1
    for name in ("Document", "Save format", "Strategy", "Runtime"):
        choose(name, "")
    assert signs.all_inner_texts() == at_first


# What a reader may do with a page's own controls: each value of each, and back to the first.
USE_CONTROLS = """() => { for (const control of document.querySelectorAll('article select')) {
  const first = control.value, values = [...control.options].filter(each => !each.disabled).map(each => each.value);
  for (const value of [...values, first]) {
    control.value = value;
    control.dispatchEvent(new Event('change', {bubbles: true}));
  } } }"""


def errors_of(page) -> list[str]:
    """The errors of a page from now on: exceptions, what its console calls an error, and requests without an answer.

    A request that the browser gives up because it leaves the page is none.
    """
    found: list[str] = []

    def note(what):
        found.append(f"{page.url}: {what}")

    def note_failure(asked):
        if asked.failure != "net::ERR_ABORTED":
            note(f"{asked.failure} {asked.url}")

    page.on("pageerror", note)
    page.on("console", lambda said: note(said.text) if said.type == "error" else None)
    page.on("requestfailed", note_failure)
    page.on("response", lambda got: note(f"{got.status} {got.url}") if got.status >= 400 else None)
    return found


BOOK = ["index", "errors/index", "errors/raises", "how_to/examine", "reference/command_line"]
BOOK += ["search", "notebooks/00_start_here", "notebooks/atlas"]


@contextmanager
def serving(folder: Path):
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Requests are no news."""
