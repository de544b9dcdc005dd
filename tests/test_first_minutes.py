"""The first minutes with JupyterLab, as `make lab` opens it: in a real browser, on copies, and before there is a kernel."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from browser import (
    CHROMIUM,
    FLAGS,
    KERNEL_READY,
    NEEDS,
    POLLING,
    RUN_ALL,
    STILL,
    TOKEN,
    private_folders,
    wait_until_up,
    write_settings,
)
from conftest import ROOT, copy_project
from kernels import end_servers, servers
from strategy_clinic.processes.cluster import free_ports
from strategy_clinic.rendering.mode_notebooks import START

pytestmark = [pytest.mark.slow, *NEEDS]
KERNEL_TAKES = 4  # seconds, in which a reader is quicker
OUTPUTS = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
  .filter(cell => cell.type === 'code').map(cell => cell.outputs.length)"""
ALL_RUN = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
  .filter(cell => cell.type === 'code').every(cell => cell.executionCount)"""
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
WAIT = "is still initializing. You can run code cells when the kernel has initialized."


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    folder = copy_project(tmp_path_factory.mktemp("clone"))
    shutil.copy(ROOT / ".gitignore", folder)
    name = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as it is"]):
        subprocess.run(["git", *name, *words], cwd=folder, check=True)
    return folder


@contextlib.contextmanager
def opened(clone: Path, own: Path, **settings):
    """What `make lab` starts, with a token and a port of this test; gives the first page's address and the server's folder."""
    (port,) = free_ports(1)
    write_settings(own)
    for plugin, values in settings.items():
        path = (
            own
            / "settings"
            / "@jupyterlab"
            / "notebook-extension"
            / f"{plugin}.jupyterlab-settings"
        )
        path.write_text(json.dumps(values))
    (own / "CONFIG_DIR").mkdir()
    exposed = {"LabApp": {"expose_app_in_browser": True}}
    (own / "CONFIG_DIR" / "jupyter_lab_config.json").write_text(json.dumps(exposed))
    variables = {"JUPYTER_PORT": str(port), "JUPYTER_TOKEN": TOKEN, "BROWSER": "true"}
    variables |= {"PYTHONPATH": str(clone / "helpers"), "XDG_RUNTIME_DIR": str(own / "run")}
    (own / "run").mkdir(mode=0o700)
    command = [sys.executable, "-m", "strategy_clinic", "notebooks", "my_notebooks", "--open"]
    with open(own / "server.log", "w") as log:
        server = subprocess.Popen(
            command,
            cwd=clone,
            env=os.environ | private_folders(own) | variables,
            stdout=log,
            stderr=log,
        )
        try:
            wait_until_up(server, f"http://127.0.0.1:{port}/", own / "server.log")
            yield f"http://127.0.0.1:{port}/lab/tree/{START}?token={TOKEN}"
        finally:
            server.terminate()
            server.wait(120)
            end_servers(own / "run")


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def run_too_early(page, address: str) -> tuple[list[int], list[int]]:
    """Runs all cells as soon as they are seen, while the kernel starts; returns the outputs of the cells before and after."""
    page.add_init_script(STILL)
    page.route("**/api/sessions*", after_a_while)
    page.goto(address)
    page.locator(".jp-CodeCell").first.wait_for()
    before = page.evaluate(OUTPUTS)
    page.evaluate(RUN_ALL)
    page.wait_for_function(KERNEL_READY, polling=POLLING)
    after = page.evaluate(OUTPUTS)
    page.evaluate(SAVE)
    return before, after


def after_a_while(route):
    if route.request.method == "POST":
        time.sleep(KERNEL_TAKES)
    route.continue_()


def changes(clone: Path) -> str:
    said = subprocess.run(["git", "status", "--short"], cwd=clone, capture_output=True, text=True)
    return said.stdout


def test_a_reader_who_is_quicker_than_the_kernel_is_told_to_wait_and_loses_nothing(
    clone, chromium, tmp_path
):
    with opened(clone, tmp_path) as address, contextlib.closing(chromium.new_page()) as page:
        assert len(servers(tmp_path / "run")) == 1, "the first kernel is warm"
        before, after = run_too_early(page, address)
        assert before == after and sum(before) > 0
        assert page.get_by_text(WAIT).is_visible()
        page.evaluate(RUN_ALL)
        page.wait_for_function(ALL_RUN, polling=POLLING)
        page.evaluate(SAVE)
        copy, own = clone / "my_notebooks" / START, clone / "notebooks" / START
        assert copy.read_text() != own.read_text(), "it was run and saved"
        assert changes(clone) == ""


def test_without_the_project_s_setting_the_outputs_are_lost_and_git_sees_nothing_of_it(
    clone, chromium, tmp_path
):
    """What JupyterLab does by itself, so that the test above can fail."""
    shutil.rmtree(clone / "my_notebooks", ignore_errors=True)
    plain = {"tracker": {"enableKernelInitNotification": False}}
    with (
        opened(clone, tmp_path, **plain) as address,
        contextlib.closing(chromium.new_page()) as page,
    ):
        before, after = run_too_early(page, address)
        assert sum(after) < sum(before) and changes(clone) == ""
