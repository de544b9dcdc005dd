"""Colab and Kaggle: the set-up cell in a folder without the repository, which a local bare one stands for.

`make colab` runs this file with the versions that Colab has, where the clinic is not installed; then every notebook, too.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from colab import (
    ADDRESS,
    ALWAYS,
    COLD,
    KINDS,
    NOTEBOOKS,
    PINS,
    ROOT,
    TAG,
    WARM,
    cell,
    git,
    installed,
    published_cell,
    run_in_fork,
    runtime,
    site_of,
)
from conftest import FAILS_OTHERWISE
from strategy_clinic.base import project
from strategy_clinic.modes.registry import mode_by_id
from thorough import mostly_thorough

ABSENT = ["papermill", "nbval", "jupytext", "voila", "jupyterlab", "distributed"]
LANE = {name: installed(name) for name in PINS} == PINS
pytestmark = [pytest.mark.slow, *([] if LANE else [pytest.mark.thorough])]
FAILED = "The clinic was not installed: it needs git, the internet"
NO_WHEEL = "The clinic was not installed: it needs the wheel that `clinic wheel` writes"
PYTHON = f"and Python 3.11 to 3.13; this is {sys.version.split()[0]}."


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> Path:
    """This work tree as a bare repository with the tag that notebooks ask for."""
    work, bare = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("bare")
    for name in git("ls-files", "-co", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes((ROOT / name).read_bytes())
    git("init", "-q", cwd=work)
    git("add", "-A", "-f", cwd=work)
    git("commit", "-q", "-m", "as it is now", cwd=work)
    git("tag", TAG, cwd=work)
    git("clone", "-q", "--bare", str(work), str(bare / "clinic.git"), cwd=work)
    return bare / "clinic.git"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """What `clinic wheel` writes; the lane has not the package that it needs, which pip fetches."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT]
    subprocess.run(build, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def fresh(tmp_path_factory, wheel) -> tuple[dict, Path, list[str]]:
    """A runtime that reaches no repository, on which somebody has uploaded the wheel and run the set-up of one notebook.

    Returns its environment, the notebook's folder and what was said.
    """
    folder = tmp_path_factory.mktemp("runtime")
    environment = runtime(folder, "/nowhere")
    shutil.copy(wheel, folder / "content")
    return environment, folder / "content", run(environment, folder / "content")


@pytest.fixture
def bare(tmp_path) -> dict:
    """A runtime that reaches no repository."""
    return runtime(tmp_path, "/nowhere")


SHELL = """
import os, sys
from IPython.core.interactiveshell import InteractiveShell
sys.modules.update(dict.fromkeys({absent}))
{before}
shell = InteractiveShell.instance()
shell.colors = "NoColor"
if shell.run_cell(sys.stdin.read()).success:
    import strategy_clinic, strategy_clinic.panel, strategy_clinic.programs.run
    print(os.path.dirname(strategy_clinic.__file__))
"""


COLOUR = re.compile(r"\x1b\[[\d;]*m")


def run(environment, cwd, before="", text=None) -> list[str]:
    """Returns the lines that the set-up cell prints, and last the folder of the package, if it was imported.

    Colours are left out: pip ends its own in front of the next line.
    """
    script = SHELL.format(absent=[*ABSENT, "jupyter_client.provisioning"], before=before)
    done = subprocess.run(
        [str(Path(environment["PATH"].split(":")[0]) / "python"), "-W", "ignore", "-c", script],
        input=text or cell("bootstrap"),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return [line for line in COLOUR.sub("", done.stdout).splitlines() if line]


# What a runtime as tested is told: nothing


def source_of(site: Path) -> dict:
    """Where the one package that was installed comes from."""
    assert [each.name for each in metadata.distributions(path=[str(site)])] == ["strategy-clinic"]
    found: dict = json.loads(next(site.glob("strategy_clinic-*/direct_url.json")).read_text())
    return found


def test_a_fresh_runtime_gets_the_wheel_beside_the_notebook_and_nothing_else(fresh, wheel):
    _, content, said = fresh
    site = site_of(content.parent)
    assert said == [str(site / "strategy_clinic")]
    assert source_of(site)["url"] == (content / wheel.name).resolve().as_uri()
    assert [each.name for each in content.iterdir()] == [wheel.name]


def test_a_fresh_runtime_gets_the_published_clinic_at_the_tag(tmp_path, published):
    environment = runtime(tmp_path, published)
    site, content = site_of(tmp_path), tmp_path / "content"
    assert run(environment, content, text=published_cell()) == [str(site / "strategy_clinic")]
    source = source_of(site)
    assert source["vcs_info"]["requested_revision"] == TAG and source["url"] == ADDRESS
    assert list(content.iterdir()) == []


def test_a_wheel_comes_before_the_network(bare, wheel, tmp_path):
    """Also beside the second upload of the same file, which Colab gives a name that pip refuses."""
    content = tmp_path / "content"
    shutil.copy(wheel, content)
    shutil.copy(wheel, content / f"{wheel.stem} (1).whl")
    said = run(bare, content, text=published_cell())
    assert said == [str(site_of(tmp_path) / "strategy_clinic")]


def test_a_second_notebook_uses_what_the_first_has_installed(fresh, tmp_path):
    environment, _, said = fresh
    assert run(environment, tmp_path) == said


def test_in_a_clone_nothing_is_installed(bare, tmp_path):
    assert run(bare, ROOT / "notebooks") == [str(ROOT / "helpers" / "strategy_clinic")]
    assert [each.name for each in site_of(tmp_path).iterdir()] == ["furnished.pth"]


# What may be wrong: one sentence each


def test_without_a_wheel(bare, tmp_path):
    """Nothing is asked of a network, where a project of this name may be somebody else's."""
    lines = run(bare, tmp_path / "content")
    assert len(lines) == 1 and lines[0].startswith(NO_WHEEL) and lines[0].endswith(PYTHON)
    assert "clinic wheel" in lines[0] and "://" not in cell("bootstrap")


def test_without_a_network(bare, tmp_path):
    lines = run(bare, tmp_path / "content", text=published_cell())
    assert len(lines) == 1 and lines[0].startswith(FAILED)


def test_a_wheel_that_is_broken(bare, tmp_path):
    (tmp_path / "content" / "strategy_clinic-0.1.0-py3-none-any.whl").write_text("half of it")
    lines = run(bare, tmp_path / "content")
    assert lines[-1].startswith(NO_WHEEL) and "strategy_clinic-0.1.0" in lines[0]


def test_without_git(bare, tmp_path):
    """A machine on whose path there is a shell, and nothing else but Python."""
    (tmp_path / "bin").mkdir()
    for name in ("sh", "bash"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    poor = bare | {"PATH": f"{bare['PATH'].split(':')[0]}:{tmp_path / 'bin'}"}
    lines = run(poor, tmp_path / "content", text=published_cell())
    assert lines[-1].startswith(FAILED) and all("git" in each for each in (lines[0], lines[-1]))


def test_a_tag_that_does_not_exist(bare, published, tmp_path):
    git("clone", "-q", "--bare", str(published), str(tmp_path / "untagged"), cwd=tmp_path)
    git("tag", "-d", TAG, cwd=tmp_path / "untagged")
    there = bare | {"GIT_CONFIG_KEY_0": f"url.file://{tmp_path / 'untagged'}.insteadOf"}
    lines = run(there, tmp_path / "content", text=published_cell())
    assert len(lines) == 1 and lines[0].startswith(FAILED)


def test_a_folder_that_cannot_be_written(fresh):
    """/proc refuses even root; the clinic is installed, so nothing has to be written."""
    environment, _, said = fresh
    assert run(environment, "/proc") == said


OLD = """
import importlib.metadata as m
real = m.version
m.version = lambda name: "2.15.1" if name == "tensorflow" else real(name)
"""


def test_an_old_image_is_told_so_and_goes_on(bare):
    lines = run(bare, ROOT / "notebooks", before=OLD)
    assert len(lines) == 2 and lines[0].startswith("Here is tensorflow 2.15.1, and tested is <2.22")
    assert lines[1].endswith("strategy_clinic")


def test_an_old_python(bare):
    lines = run(
        bare,
        ROOT / "notebooks",
        before="sys.version_info = (3, 10, 12); sys.version = '3.10.12 (main)'",
    )
    assert lines == [
        f"Strategy Clinic needs Python {project.python_versions()}, and this is 3.10.12: choose one of them."
    ]
    package = ROOT / "helpers" / "strategy_clinic"
    for name in ("__init__", "base/__init__", "base/public_api", "base/errors"):
        ast.parse((package / f"{name}.py").read_text(), feature_version=(3, 8))


def test_a_tpu_without_tensorflow(bare):
    """A module that is None in sys.modules cannot be found; Colab's TPU runtimes have no TensorFlow at all."""
    before = 'import importlib.util as u; real = u.find_spec; u.find_spec = lambda n: None if n == "tensorflow" else real(n)'
    lines = run(bare | {"TPU_ACCELERATOR_TYPE": "v5e-1"}, ROOT / "notebooks", before=before)
    assert len(lines) == 1 and "%pip install tensorflow-tpu==2.20.0" in lines[0]
    assert "--no-deps tf_keras==2.20.1" in lines[0] and "CPU runtime" in lines[0]
    lines = run(bare, ROOT / "notebooks", before=before)
    assert len(lines) == 1 and 'run %pip install "tensorflow>=2.18' in lines[0]


def test_a_package_that_is_missing(bare):
    before = (
        "import importlib.metadata as m; real = m.version\n"
        "def version(name):\n    if name == 'tf_keras': raise m.PackageNotFoundError(name)\n    return real(name)\n"
        "m.version = version"
    )
    lines = run(bare, ROOT / "notebooks", before=before)
    assert len(lines) == 2 and lines[0].startswith("There is no tf_keras here: run %pip install")
    here = ".".join(installed("tensorflow").split(".")[:2])
    assert f'"tf_keras=={here}.*"' in lines[0], "another would replace the TensorFlow that is here"


# What every notebook must have


def test_all_notebooks_have_the_same_set_up_of_eleven_lines():
    assert {cell("bootstrap", path) for path in NOTEBOOKS} == {cell("bootstrap")}
    lines = [line for line in cell("bootstrap").splitlines() if line.strip() and line[0] != "#"]
    assert len(lines) <= 11


def test_the_set_up_fetches_the_clinic_and_nothing_else():
    text = published_cell()
    assert text.count("://") == 1 and text.count("-m pip") == 1 and "--no-deps" in text


def test_the_parameters_that_decide_something_are_a_form_that_papermill_reads():
    import papermill

    modes = [path for path in NOTEBOOKS if path.stem.startswith("fm")]
    for path in modes:
        found = papermill.inspect_notebook(path)
        assert list(found) == ["strategy", "devices", "save_format", "keras"]
        switches = mode_by_id(path.stem[:4]).switches or tuple(found)
        assert {name for name in found if found[name]["help"]} == set(switches)
        for each in (found[name] for name in switches):
            text = each["help"].removeprefix("@param ")
            choices, end = json.JSONDecoder().raw_decode(text)
            value = ast.literal_eval(each["default"])
            assert value in choices
            assert text[end:] == ("" if isinstance(value, str) else ' {type:"raw"}')


# The lane


def test_the_lane_has_the_versions_and_not_the_clinic():
    if not LANE:
        pytest.skip("run by make colab")
    here = Path(sysconfig.get_path("purelib"))
    assert not [*here.glob("*strategy_clinic*"), *here.glob("jupytext*")]


@pytest.fixture
def on_colab(fresh, monkeypatch) -> dict:
    """The environment of a second notebook, and nothing of this process's own."""
    environment, content, _ = fresh
    for name in os.environ:
        monkeypatch.delenv(name)
    own = {
        "PYTHONPATH": str(site_of(content.parent)),
        "COLAB_RELEASE_TAG": "release-colab_20260819",
    }
    for name, value in (environment | own).items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


def of_lane(notebooks: list[Path]) -> list[object]:
    """Returns the notebooks with those marked that `make colab` leaves out; none outside of the lane."""
    if not LANE:
        return []
    return mostly_thorough(notebooks, *(path for path in notebooks if path.stem[:4] in ALWAYS))


def test_there_is_every_kind():
    assert {path.stem[:4] for path in COLD} >= set(KINDS) and len(COLD) > len(KINDS)


@pytest.mark.parametrize("notebook", of_lane(COLD), ids=lambda path: path.stem)
def test_notebook_as_on_colab(notebook, on_colab, tmp_path):
    """Alone in a folder, with the clinic that the first notebook installed; one fails if its mode is not as it declares."""
    import papermill

    done = papermill.execute_notebook(
        notebook, tmp_path / "out.ipynb", cwd=tmp_path, kernel_name="python3", progress_bar=False
    )
    assert all(each.execution_count for each in done.cells if each.cell_type == "code")


@pytest.mark.parametrize("notebook", of_lane(WARM), ids=lambda path: path.stem)
def test_notebook_with_the_versions_of_colab(notebook, on_colab, tmp_path):
    """The same, without a kernel."""
    found = run_in_fork(notebook, on_colab, tmp_path)
    cells = [each for each in nbformat.read(notebook, 4).cells if each.cell_type == "code"]
    assert found == {"ran": len(cells), "raised": ""}, (tmp_path / "log").read_text()


def test_a_notebook_that_does_not_keep_its_word_fails_in_a_fork(on_colab, tmp_path):
    if not LANE:
        pytest.skip("run by make colab")
    (path,) = (path for path in WARM if path.stem.startswith("fm17"))
    wrong = path.read_text().replace(*FAILS_OTHERWISE)
    assert wrong != path.read_text()
    (tmp_path / "wrong.ipynb").write_text(wrong)
    found = run_in_fork(tmp_path / "wrong.ipynb", on_colab, tmp_path)
    assert "disagrees with its run at" in found["raised"] and found["ran"] > 0
