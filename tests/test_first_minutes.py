"""The first minutes with JupyterLab, as `make lab` opens it: in a real browser, on copies, and before there is a kernel."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import (
    KERNEL_READY,
    NEEDS,
    POLLING,
    RUN_ALL,
    STILL,
    TOKEN,
    launched,
    private_folders,
    served,
    write_settings,
)
from conftest import ROOT, copy_project
from kernels import servers, socket_folder
from strategy_clinic.processes.cluster import free_ports
from strategy_clinic.rendering.mode_notebooks import START

pytestmark = [pytest.mark.slow, *NEEDS]
OUTPUTS = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
  .filter(cell => cell.type === 'code').map(cell => cell.outputs.length)"""
TO_THE_END = "async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
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


@pytest.fixture
def runtime_folder():
    with socket_folder() as folder:
        yield folder


@contextlib.contextmanager
def opened(clone: Path, own: Path, runtime: Path):
    """What `make lab` starts, with a token and a port of this test; gives the first page's address and the server's folder."""
    (port,) = free_ports(1)
    write_settings(own)
    (own / "CONFIG_DIR").mkdir()
    exposed = {"LabApp": {"expose_app_in_browser": True}}
    (own / "CONFIG_DIR" / "jupyter_lab_config.json").write_text(json.dumps(exposed))
    variables = {"JUPYTER_PORT": str(port), "JUPYTER_TOKEN": TOKEN, "BROWSER": "true"}
    variables |= {"PYTHONPATH": str(clone / "helpers"), "XDG_RUNTIME_DIR": str(runtime)}
    command = [sys.executable, "-m", "strategy_clinic", "notebooks", "my_notebooks", "--open"]
    environment = os.environ | private_folders(own) | variables
    with served(command, port, own, cwd=clone, env=environment):
        yield f"http://127.0.0.1:{port}/lab/tree/{START}?token={TOKEN}"


@pytest.fixture(scope="module")
def chromium():
    with launched() as started:
        yield started


class SlowKernel:
    """Keeps back what asks the server for a kernel, as a slow machine would."""

    def __init__(self, page):
        self.held, self.released = [], False
        page.route("**/api/sessions*", self.take)

    def take(self, route):
        if route.request.method == "POST" and not self.released:
            self.held.append(route)
        else:
            route.continue_()

    def release(self):
        self.released = True
        for route in self.held:
            route.continue_()


def run_too_early(page, address: str, whole: list[int]) -> list[int]:
    """Runs all cells while the kernel starts, once they are there; returns the numbers of their outputs after it, and saves."""
    page.set_default_timeout(180_000)
    page.add_init_script(STILL)
    kernel = SlowKernel(page)
    page.goto(address)
    page.locator(".jp-CodeCell").first.wait_for()
    counts = ",".join(map(str, whole))
    page.wait_for_function(f"() => String(({OUTPUTS})()) === '{counts}'", polling=POLLING)
    page.evaluate(RUN_ALL)
    page.wait_for_timeout(1000)
    kernel.release()
    page.wait_for_function(KERNEL_READY, polling=POLLING)
    page.evaluate(SAVE)
    return page.evaluate(OUTPUTS)


def stored_outputs(path: Path) -> list[int]:
    cells = json.loads(path.read_text())["cells"]
    return [len(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]


def changes(clone: Path) -> str:
    said = subprocess.run(["git", "status", "--short"], cwd=clone, capture_output=True, text=True)
    return said.stdout


def test_a_reader_who_is_quicker_than_the_kernel_is_told_to_wait_and_loses_nothing(
    clone, chromium, tmp_path, runtime_folder
):
    with (
        opened(clone, tmp_path, runtime_folder) as address,
        contextlib.closing(chromium.new_page()) as page,
    ):
        assert len(servers(runtime_folder)) == 1, "the first kernel is warm"
        copy, own = clone / "my_notebooks" / START, clone / "notebooks" / START
        stored = stored_outputs(own)
        assert sum(stored) and run_too_early(page, address, stored) == stored
        assert stored_outputs(copy) == stored, "as it was saved"
        assert page.get_by_text(WAIT).first.is_visible()
        page.evaluate(TO_THE_END)
        page.evaluate(SAVE)
        assert copy.read_text() != own.read_text(), "it was run and saved"
        assert changes(clone) == ""
