"""Binder: what its builder makes of binder/, what that installs and sets, where its link opens, and what a kernel takes."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from unittest import mock

import pytest
from conftest import ROOT, changed
from kernels import end_servers, servers
from strategy_clinic.base import files, project
from strategy_clinic.forkserver import kernelspec
from strategy_clinic.processes import notebook_job
from strategy_clinic.rendering import sources
from test_container import repository_files

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
    for name in ("binder", "environment.yml", "pyproject.toml", "Dockerfile"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def builder(app):
    """The part of Binder's builder that takes the folder one is in, as Binder calls it."""
    packs = (pack(base_image=app.base_image) for pack in app.buildpacks)
    chosen = next(pack for pack in packs if pack.detect())
    chosen.platform = "linux/amd64"
    return chosen


def rendered(folder, monkeypatch) -> str:
    """The recipe that Binder's builder writes for a folder, as text; it needs neither Docker nor a network for that."""
    app = pytest.importorskip("repo2docker.app").Repo2Docker()
    monkeypatch.chdir(folder)
    chosen = builder(app)
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
        "the first kernel is cold": '/binder/start"' not in recipe,
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


def no_start(folder):
    (folder / "binder" / "start").unlink()


BROKEN = [other_python, conda, no_lock, lock_elsewhere, no_helpers, no_start]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_folder_is_found(repository, monkeypatch, broken):
    broken(repository)
    assert problems(rendered(repository, monkeypatch)) != []


@pytest.fixture
def own(tmp_path) -> Path:
    """An environment of its own in which pip writes down what it is asked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    pip = tmp_path / "env" / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    pip.chmod(0o755)
    (site,) = (tmp_path / "env").glob("lib/*/site-packages")
    (site / "furnished.pth").write_text(sysconfig.get_path("purelib"))
    return tmp_path / "env"


def variables(own: Path, repository: Path) -> dict[str, str]:
    """As Binder sets them; the package is found in the repository, as its installation would say."""
    path = f"{own / 'bin'}:{os.environ['PATH']}"
    places = os.pathsep.join([str(repository / "helpers"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PATH": path, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": ""}


def test_the_last_step_installs_the_helpers_warm_kernels_and_the_arrow_keys(
    repository, tmp_path, own
):
    shutil.copytree(
        ROOT / "helpers", repository / "helpers", ignore=shutil.ignore_patterns("*.pyc")
    )
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
    subprocess.run(
        ["./binder/postBuild"], cwd=repository, env=variables(own, repository), check=True
    )
    assert (tmp_path / "asked").read_text() == "install --no-cache-dir --no-deps -e .\n"
    shared = own / "share" / "jupyter"
    settings = json.loads((shared / "lab" / "settings" / "overrides.json").read_text())
    assert settings == json.loads((ROOT / "binder/overrides.json").read_text())
    kernel = json.loads((shared / "kernels" / "python3" / "kernel.json").read_text())
    assert kernelspec.MODULE in kernel["argv"]
    compiled = len(list((repository / "helpers").rglob("*.pyc")))
    assert compiled == len(list((repository / "helpers").rglob("*.py")))


def test_jupyter_is_started_beside_a_fork_server(repository, own, short_folder):
    """What Binder starts is told its words, and a fork server is starting; the two are the same process at no time."""
    assert os.access(ROOT / "binder" / "start", os.X_OK)
    os.symlink(ROOT / "helpers", repository / "helpers")
    words = ["bash", "-c", 'echo "$0 $1"; sleep 2', "one word", "--and=another"]
    environment = variables(own, repository) | {"XDG_RUNTIME_DIR": str(short_folder)}
    done = subprocess.run(
        ["./binder/start", *words], cwd=repository, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "one word --and=another\n"), done.stderr
    started = servers(short_folder)
    end_servers(short_folder)
    assert len(started) == 1


def test_a_link_opens_its_notebook_once_there_is_an_address(monkeypatch):
    settings = {"repository": "owner/clinic", "tag": "v1"}
    monkeypatch.setattr(project, "setting", lambda: settings)
    page = files.page_source("00_start_here")
    links = sources.badges(page)
    opened = "urlpath=lab/tree/notebooks/00_start_here.ipynb"
    assert f"(https://mybinder.org/v2/gh/owner/clinic/v1?{opened})" in links
    assert (ROOT / "notebooks" / "00_start_here.ipynb").exists()
    settings["repository"] = ""
    assert "://" not in sources.badges(page)


def packed(folder, monkeypatch) -> dict[str, int]:
    """What Binder's builder gives to Docker of a folder, with its size; Docker itself is not asked."""
    given = {}

    def build(fileobj, **_):
        with tarfile.open(fileobj=fileobj) as archive:
            sizes = {each.name: each.size for each in archive.getmembers()}
        given.update({name: size for name, size in sizes.items() if name.startswith("src/")})
        return []

    monkeypatch.chdir(folder)
    app = pytest.importorskip("repo2docker.app").Repo2Docker()
    pack = builder(app)
    list(pack.build(mock.Mock(build=build), "clinic", 0, {"NB_UID": "1000"}, [], {}))
    return given


def test_what_is_copied_into_the_image_is_small_since_no_test_is(tmp_path, monkeypatch):
    for name in repository_files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name, follow_symlinks=False)
    sizes = packed(tmp_path, monkeypatch)
    assert 1e6 < sum(sizes.values()) < 20e6
    assert {"src/binder/postBuild", "src/README.md"} <= sizes.keys()
    assert not [name for name in sizes if name.startswith("src/tests")]
    (tmp_path / ".dockerignore").write_text("")
    assert sum(packed(tmp_path, monkeypatch).values()) > 20e6


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
