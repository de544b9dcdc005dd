"""The panel in a real browser: JupyterLab, Notebook 7 and Voila, each with its own server, kernel and settings."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT

from helpers import atlas

CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
pytestmark = [
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
]
FLAGS += ["--disable-component-update", "--disable-sync"]
NOTEBOOK = "fm25_load_outside_scope.ipynb"
SHOTS = Path(os.environ.get("SHOTS", ROOT / "shots"))
KERNEL_READY = """() => { const w = window.jupyterapp && window.jupyterapp.shell.currentWidget;
  const k = w && w.sessionContext && w.sessionContext.session && w.sessionContext.session.kernel;
  return !!k && k.status === 'idle'; }"""
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
TOKEN = "for-this-test-only"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(front: str, port: int) -> list[str]:
    module, *options = MODULES[front]
    start = [sys.executable, "-m", module, "--no-browser", f"--port={port}", *options]
    if front == "voila":
        return [*start, f"--Voila.root_dir={ROOT}", "--Voila.tornado_settings={}"]
    served = ["--allow-root", "--ip=127.0.0.1", "--ServerApp.port_retries=0"]
    return [*start, *served, f"--ServerApp.root_dir={ROOT}", f"--IdentityProvider.token={TOKEN}"]


def private_folders(folder: Path) -> dict[str, str]:
    """Nothing of the person who runs the test, and no kernel of an earlier one."""
    kinds = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    made = {f"JUPYTER_{kind}": str(folder / kind) for kind in kinds}
    return made | {
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
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


@pytest.fixture(params=list(MODULES))
def front(request, tmp_path):
    write_settings(tmp_path)
    port = free_port()
    environment = os.environ | private_folders(tmp_path)
    with open(tmp_path / "server.log", "w") as log:
        server = subprocess.Popen(
            command(request.param, port), env=environment, stdout=log, stderr=log
        )
        try:
            wait_until_up(server, f"http://127.0.0.1:{port}/", tmp_path / "server.log")
            yield (
                request.param,
                f"http://127.0.0.1:{port}{PATHS[request.param]}{NOTEBOOK}?token={TOKEN}",
            )
        finally:
            server.terminate()
            server.wait(20)


def wait_until_up(server, address: str, log: Path):
    for _ in range(300):
        assert server.poll() is None, log.read_text()[-2000:]
        if answers(address):
            return
        time.sleep(0.2)


def open_panel(page, front: str, url: str, button: str = "button.clinic-run"):
    page.goto(url)
    if front != "voila":
        page.wait_for_function(KERNEL_READY)
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.locator(button).wait_for(state="visible")


def choose(page, name: str, value: str):
    page.locator(f".clinic-{name} select").select_option(value=value)


def run(page, number: int) -> str:
    """Presses Run and waits for the panel's own mark; a kernel says idle several times in between."""
    page.locator("button.clinic-run").click()
    page.locator(f"[data-clinic-runs='{number}'][data-clinic-state='done']").wait_for(
        state="attached"
    )
    return page.locator(".clinic-verdict .clinic-card").get_attribute("data-clinic-outcome")


def test_panel(front, tmp_path):
    from playwright.sync_api import sync_playwright

    name, url = front
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(120_000)
        open_panel(page, name, url)
        assert run(page, 1) == "silent"
        outcomes = []
        for number, count in enumerate(("4", "1", "8", "2"), 2):
            choose(page, "devices", count)
            outcomes.append(run(page, number))
        assert outcomes == ["silent", "works", "silent", "silent"]
        by_keyboard(page)
        choose(page, "strategy", "mirrored")
        choose(page, "save_format", "checkpoint")
        assert run(page, 7) == "silent"
        assert "loaded" in page.locator(".clinic-figure img").get_attribute("alt")
        assert page.locator(".clinic-runs tr").count() == 8
        keep_picture(page, name)
        browser.close()


ERROR = "Traceback\nValueError: The filename must end in `.weights.h5`. <b>Received</b>: filepath=x"


def test_an_error_is_pasted(front):
    """By keyboard alone, from the field to the link."""
    from playwright.sync_api import sync_playwright

    name, url = front
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        open_panel(page, name, url.replace(NOTEBOOK, "00_start_here.ipynb"), "button.clinic-triage")
        page.get_by_label("Error", exact=True).focus()
        page.keyboard.insert_text(ERROR)
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        card = page.locator("[data-clinic-mode='fm04']")
        card.wait_for(state="visible")
        assert "must end in .weights.h5" in card.inner_text() and card.locator("b").count() == 0
        assert card.locator("a").get_attribute("href").endswith("fm04_weights_path_refused.ipynb")
        browser.close()


def test_the_filters_of_the_atlas(tmp_path):
    """The page needs no server and no network."""
    from playwright.sync_api import sync_playwright

    atlas.write(tmp_path / "atlas.html")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(offline=True)
        page.goto((tmp_path / "atlas.html").as_uri())
        shown = page.locator("tbody tr:visible").count()
        page.get_by_label("Runtime").select_option("cpu-keras2")
        assert page.locator("tbody tr:visible").count() == shown / 2
        page.get_by_label("Strategy").select_option("mirrored")
        page.get_by_label("Save format").select_option("h5")
        row = page.locator("tr:visible", has_text="fm25")
        assert row.locator("td a:visible").all_inner_texts() == ["works"] + ["silent"] * 3
        page.get_by_label("Document").select_option("000")
        assert row.count() == 0 and page.locator("tr:visible", has_text="fm01").count() == 1
        browser.close()


def by_keyboard(page):
    """The arrow key must reach the focused dropdown, and the button must take the space bar."""
    page.get_by_label("Strategy").last.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "() => document.querySelector('.clinic-strategy select').value === 'central_storage'"
    )
    page.locator("button.clinic-run").focus()
    page.keyboard.press("Space")
    page.locator("[data-clinic-runs='6'][data-clinic-state='done']").wait_for(state="attached")


def keep_picture(page, name: str):
    SHOTS.mkdir(exist_ok=True)
    page.locator("button.clinic-run").scroll_into_view_if_needed()
    page.screenshot(path=str(SHOTS / f"{name}.png"))
    page.locator(".clinic-panel").screenshot(path=str(SHOTS / f"panel-{name}.png"))
