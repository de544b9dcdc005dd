"""Colab and Kaggle: the set-up cell in a folder without the repository, which a local bare one stands for; no network.

`make colab` runs this file with the versions that Colab has, where the clinic is not installed; then every notebook, too.
"""

import ast
import json
import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest
from colab import NOTEBOOKS, PINS, ROOT, cell, git, installed, value_of

pytestmark = pytest.mark.slow

ABSENT = ["papermill", "nbval", "jupytext", "voila", "jupyterlab", "distributed"]
COLAB = {"COLAB_RELEASE_TAG": "release-colab_20260819"}
LANE = {name: installed(name) for name in PINS} == PINS


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
    git("tag", value_of("TAG"), cwd=work)
    git("clone", "-q", "--bare", str(work), str(bare / "clinic.git"), cwd=work)
    return bare / "clinic.git"


@pytest.fixture
def colab(tmp_path, published):
    """The environment of a fresh runtime; git finds the repository in a file, and pip leaves a trace if it is called."""
    for name in ("home", "bin", "content"):
        (tmp_path / name).mkdir()
    for name in ("pip", "uv", "conda"):
        stub = tmp_path / "bin" / name
        stub.write_text(f"#!/bin/sh\ntouch {tmp_path}/installed-something\n")
        stub.chmod(0o755)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    redirect = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{published}.insteadOf",
        "GIT_CONFIG_VALUE_0": value_of("ADDRESS"),
    }
    path = {"PATH": f"{tmp_path / 'bin'}:{kept['PATH']}", "HOME": str(tmp_path / "home")}
    return kept | COLAB | redirect | path


SHELL = """
import os, sys
from IPython.core.interactiveshell import InteractiveShell
sys.modules.update(dict.fromkeys({absent}))
{before}
shell = InteractiveShell.instance()
shell.colors = "NoColor"
if shell.run_cell(sys.stdin.read()).success:
    import helpers, helpers.panel, helpers.modes.workers
    print(os.path.dirname(helpers.__file__))
"""


def run(environment, cwd, before="", absent=(*ABSENT, "jupyter_client.provisioning")) -> list[str]:
    """What the set-up cell says, line by line; last, where the helpers came from, if they came."""
    script = SHELL.format(absent=list(absent), before=before)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        input=cell("bootstrap"),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout.splitlines()


def versions() -> dict:
    return {each.name: each.version for each in metadata.distributions()}


def folder_name() -> str:
    return f"strategy-clinic-{value_of('TAG')}"


# What a runtime as tested is told: nothing

OLD = """
import importlib.metadata as m
real = m.version
m.version = lambda name: "2.15.1" if name == "tensorflow" else real(name)
"""


def quiet(environment, cwd, **options) -> str:
    """The folder of the helpers, of which nothing else is said."""
    lines = run(environment, cwd, **options)
    assert lines[:-1] == [], lines
    return lines[-1]


def test_a_fresh_runtime_fetches_the_tag_and_installs_nothing(colab, tmp_path):
    before = versions()
    got = quiet(colab, tmp_path / "content")
    assert got == str(tmp_path / "content" / folder_name() / "helpers")
    assert git("describe", "--tags", cwd=Path(got).parent).strip() == value_of("TAG")
    assert versions() == before and not (tmp_path / "installed-something").exists()


def test_the_trace_of_an_installation_would_be_seen(colab, tmp_path):
    subprocess.run(["pip", "install", "anything"], env=colab, check=True)
    assert (tmp_path / "installed-something").exists()


def test_a_second_notebook_uses_what_the_first_has_fetched(colab, tmp_path):
    first = quiet(colab, tmp_path / "content")
    (Path(first) / "mark").touch()
    offline = colab | {"GIT_CONFIG_KEY_0": "url.file:///nowhere.insteadOf"}
    assert quiet(offline, tmp_path / "content") == first
    assert sorted(each.name for each in (tmp_path / "content").iterdir()) == [folder_name()]


def test_kaggle_is_known_too(colab, tmp_path):
    kaggle = {name: value for name, value in colab.items() if name not in COLAB}
    kaggle["KAGGLE_KERNEL_RUN_TYPE"] = "Interactive"
    assert quiet(kaggle, tmp_path / "content").startswith(str(tmp_path / "content"))


def test_in_a_clone_nothing_is_fetched(colab):
    assert quiet(colab, ROOT / "notebooks") == str(ROOT / "helpers")


# What may be wrong: one sentence each


def test_without_a_network(colab, tmp_path):
    offline = colab | {"GIT_CONFIG_KEY_0": "url.file:///nowhere.insteadOf"}
    lines = run(offline, tmp_path / "content")
    assert len(lines) == 1 and "could not be fetched" in lines[0] and "/nowhere" in lines[0]
    assert list((tmp_path / "content").iterdir()) == []


def test_outside_of_a_clone_and_of_hosts(colab, tmp_path):
    """Nobody asked for a download here; a clinic that is installed in this environment is hidden."""
    local = {name: value for name, value in colab.items() if name not in COLAB}
    hide = f"sys.path[:] = [each for each in sys.path if each != {str(ROOT)!r}]"
    lines = run(local, tmp_path / "content", before=hide)
    assert len(lines) == 1 and lines[0].startswith("No helpers beside or above this notebook")


def test_without_git(colab, tmp_path):
    lines = run(colab | {"PATH": str(tmp_path / "bin")}, tmp_path / "content")
    assert len(lines) == 1 and "'git'" in lines[0]


def test_a_tag_that_does_not_exist(colab, published, tmp_path):
    git("tag", "kept", value_of("TAG"), cwd=published)
    git("tag", "-d", value_of("TAG"), cwd=published)
    try:
        lines = run(colab, tmp_path / "content")
    finally:
        git("tag", value_of("TAG"), "kept", cwd=published)
        git("tag", "-d", "kept", cwd=published)
    assert len(lines) == 1 and value_of("TAG") in lines[0]


def test_a_folder_that_cannot_be_written(colab, tmp_path):
    """/proc refuses even root."""
    lines = run(colab, "/proc")
    assert len(lines) == 2 and lines[0].startswith("Nothing can be written to /proc")
    assert lines[1] == str(tmp_path / "home" / folder_name() / "helpers")


def test_no_folder_that_can_be_written(colab, tmp_path):
    lines = run(colab | {"HOME": "/proc", "IPYTHONDIR": str(tmp_path)}, "/proc")
    assert lines[-1].startswith("The helpers have to be fetched, and neither /proc nor /proc can")


def test_an_interrupted_download_is_left_alone(colab, tmp_path):
    half = tmp_path / "content" / folder_name()
    half.mkdir()
    (half / "mine.txt").write_text("kept")
    assert quiet(colab, tmp_path / "content").startswith(str(tmp_path / "content" / "fetching-"))
    assert (half / "mine.txt").read_text() == "kept"


def test_an_old_image_is_told_so_and_goes_on(colab, tmp_path):
    lines = run(colab, tmp_path / "content", before=OLD)
    assert len(lines) == 2 and lines[0].startswith("Here is tensorflow 2.15.1, and tested is <2.22")
    assert lines[1].endswith("helpers")


def test_an_old_python():
    text = cell("bootstrap").replace("sys.version_info", "(3, 10, 12)")
    with pytest.raises(
        Exception, match="need Python 3.11 or newer, and this runtime has 3.10"
    ) as stopped:
        exec(compile(text, "cell", "exec"), {})
    assert stopped.value._render_traceback_() == [str(stopped.value)]
    ast.parse(cell("bootstrap"), feature_version=(3, 8))


def test_a_tpu_without_tensorflow(colab, tmp_path):
    """A module that is None in sys.modules cannot be found; Colab's TPU runtimes have no TensorFlow at all."""
    before = 'import importlib.util as u; real = u.find_spec; u.find_spec = lambda n: None if n == "tensorflow" else real(n)'
    lines = run(colab | {"TPU_ACCELERATOR_TYPE": "v5e-1"}, tmp_path / "content", before=before)
    assert len(lines) == 1 and "%pip install tensorflow-tpu==2.20.0" in lines[0]
    assert "--no-deps tf_keras==2.20.1" in lines[0] and "CPU runtime" in lines[0]
    lines = run(colab, tmp_path / "content", before=before)
    assert len(lines) == 1 and 'run %pip install "tensorflow>=2.18' in lines[0]


def test_a_package_that_is_missing(colab, tmp_path):
    before = (
        "import importlib.metadata as m; real = m.version\n"
        "def version(name):\n    if name == 'tf_keras': raise m.PackageNotFoundError(name)\n    return real(name)\n"
        "m.version = version"
    )
    lines = run(colab, tmp_path / "content", before=before)
    assert len(lines) == 2 and lines[0].startswith("There is no tf_keras here: run %pip install")
    here = ".".join(installed("tensorflow").split(".")[:2])
    assert f'"tf_keras=={here}.*"' in lines[0], "another would replace the TensorFlow that is here"


# What every notebook must have


def test_all_notebooks_have_the_same_set_up_and_it_names_the_oldest_python():
    assert {cell("bootstrap", path) for path in NOTEBOOKS} == {cell("bootstrap")}
    text = (ROOT / "pyproject.toml").read_text()
    assert 'requires-python = ">=' + ".".join(map(str, value_of("OLDEST"))) in text


def test_the_cells_speak_to_nobody_else():
    """What a cell could install or fetch beyond the helpers would stand in it."""
    assert "pip" not in cell("bootstrap") and cell("bootstrap").count("://") == 1


def test_the_parameters_are_a_form_that_papermill_reads():
    import papermill

    modes = [path for path in NOTEBOOKS if path.stem.startswith("fm")]
    for path in modes:
        found = papermill.inspect_notebook(path)
        assert list(found) == ["strategy", "devices", "save_format", "keras"]
        for each in found.values():
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


@pytest.mark.parametrize("notebook", NOTEBOOKS if LANE else [], ids=lambda path: path.stem)
def test_notebook_as_on_colab(notebook, colab, tmp_path, monkeypatch):
    """Alone in a folder, with nothing of the clinic installed; a notebook fails if its mode is not as it declares."""
    import papermill

    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in colab.items():
        monkeypatch.setenv(name, value)
    content = tmp_path / "content"
    done = papermill.execute_notebook(
        notebook, tmp_path / "out.ipynb", cwd=content, kernel_name="python3", progress_bar=False
    )
    assert (content / folder_name() / "helpers").is_dir()
    assert all(each.execution_count for each in done.cells if each.cell_type == "code")
    assert not (tmp_path / "installed-something").exists()
