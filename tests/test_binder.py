"""Binder: what its builder makes of binder/, what that installs and sets, where its link opens, and what a kernel takes."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, changed
from strategy_clinic.base import project
from strategy_clinic.processes import notebook_job
from strategy_clinic.rendering import sources

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

GIB = 2**30
PROMISED = (
    1 * GIB
)  # what Binder guarantees to all of a user's processes; above two it ends the kernel
PEAK = (
    "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
)


@pytest.fixture
def repository(tmp_path):
    for name in ("binder", "environment.yml", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def rendered(folder, monkeypatch) -> str:
    """The recipe that Binder's builder writes for a folder, as text; it needs neither Docker nor a network for that."""
    app = pytest.importorskip("repo2docker.app").Repo2Docker()
    monkeypatch.chdir(folder)
    packs = (pack(base_image=app.base_image) for pack in app.buildpacks)
    chosen = next(pack for pack in packs if pack.detect())
    chosen.platform = "linux/amd64"
    text = chosen.render({"NB_USER": "jovyan", "NB_UID": "1000"})
    return f"# {type(chosen).__name__} {chosen.python_version}\n{text}"


def problems(recipe: str) -> list[str]:
    install, copy = '-r "binder/requirements.txt"', "COPY --chown=1000:1000 src/ "
    post = "RUN ./binder/postBuild"
    found = {
        "another builder or Python": f"# PythonBuildPack {project.python_version()}\n"
        not in recipe,
        "the lock is not installed": install not in recipe,
        "an edited notebook installs all again": recipe.find(install) > recipe.find(copy),
        "the helpers are not installed": post not in recipe
        or recipe.find(post) < recipe.find(copy),
        "conda would read a list of its own": "environment.yml" in recipe,
    }
    return [name for name, wrong in found.items() if wrong]


def test_the_builder_installs_the_lock_and_then_the_helpers(repository, monkeypatch):
    assert problems(rendered(repository, monkeypatch)) == []


def other_python(folder):
    changed(folder / "binder" / "runtime.txt", project.python_version(), "3.10")


def conda(folder):
    shutil.copy(folder / "environment.yml", folder / "binder" / "environment.yml")


def no_lock(folder):
    (folder / "binder" / "requirements.txt").unlink()


def lock_elsewhere(folder):
    """A line that leads out of the folder has to be installed after the notebooks are copied."""
    (folder / "requirements.lock").write_text("numpy==2.4.6\n")
    (folder / "binder" / "requirements.txt").write_text("-r ../requirements.lock\n")


def no_helpers(folder):
    (folder / "binder" / "postBuild").unlink()


@pytest.mark.parametrize("broken", [other_python, conda, no_lock, lock_elsewhere, no_helpers])
def test_a_broken_folder_is_found(repository, monkeypatch, broken):
    broken(repository)
    assert problems(rendered(repository, monkeypatch)) != []


def test_the_last_step_installs_only_the_helpers_and_gives_the_arrow_keys_back(
    repository, tmp_path
):
    """Run as Binder does, with an environment of its own in which pip writes down what it is asked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    pip = tmp_path / "env" / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    pip.chmod(0o755)
    path = {"PATH": f"{pip.parent}:{os.environ['PATH']}"}
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
    subprocess.run(["./binder/postBuild"], cwd=repository, env=os.environ | path, check=True)
    assert (tmp_path / "asked").read_text() == "install --no-cache-dir --no-deps -e .\n"
    settings = tmp_path / "env" / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    assert json.loads(settings.read_text()) == json.loads(
        (ROOT / "binder/overrides.json").read_text()
    )


def test_a_link_opens_its_notebook_once_there_is_an_address(monkeypatch):
    settings = {"repository": "owner/clinic", "tag": "v1"}
    monkeypatch.setattr(project, "setting", lambda: settings)
    links = sources.badges("00_start_here")
    opened = "urlpath=lab/tree/notebooks/00_start_here.ipynb"
    assert f"(https://mybinder.org/v2/gh/owner/clinic/v1?{opened})" in links
    assert (ROOT / "notebooks" / "00_start_here.ipynb").exists()
    settings["repository"] = ""
    assert "://" not in sources.badges("00_start_here")


def test_what_is_copied_into_the_image_is_small():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert 1e6 < sum(path.stat().st_size for path in paths if path.is_file()) < 20e6


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for a process's peak")
@pytest.mark.parametrize("name", ["00_start_here", "fm25_load_outside_scope"])
def test_a_kernel_stays_below_what_binder_promises(tmp_path, name):
    import nbformat
    import papermill

    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PEAK))
    nbformat.write(notebook, tmp_path / "in.ipynb")
    done = papermill.execute_notebook(
        tmp_path / "in.ipynb", tmp_path / "out.ipynb", **notebook_job.papermill_options(tmp_path)
    )
    peak = int(done.cells[-1].outputs[0].text) * 1024
    assert GIB / 10 < peak < PROMISED
