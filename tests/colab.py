"""What a fresh runtime of Colab is: its versions, and this repository in a file."""

import json
import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from unittest import mock

from strategy_clinic.base import project
from strategy_clinic.forkserver import client
from strategy_clinic.rendering import sources

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(
    path for place in ("", "documents") for path in (ROOT / "notebooks" / place).glob("*.ipynb")
)
PINS = dict(line.split("==") for line in (ROOT / "tests" / "colab.txt").read_text().split())


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cell(tag: str, notebook: Path = ROOT / "notebooks" / "00_start_here.ipynb") -> str:
    cells = json.loads(notebook.read_text())["cells"]
    return next(
        "".join(each["source"]) for each in cells if tag in each["metadata"].get("tags", [])
    )


def git(*words, cwd=ROOT) -> str:
    name = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    done = subprocess.run(
        ["git", *name, *words], cwd=cwd, check=True, capture_output=True, text=True
    )
    return done.stdout


# Where the project is once it is published, in the tests.
ADDRESS, TAG = "https://github.com/owner/clinic", project.setting()["tag"]


def published_cell() -> str:
    """The set-up cell as it is then."""
    with mock.patch.object(project, "address", lambda: ADDRESS):
        return sources.bootstrap()


def runtime(folder: Path, repository) -> dict:
    """The environment of a runtime: git finds the repository in a file, and Python has this one's packages and its own."""
    for name in ("home", "content"):
        (folder / name).mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "own"], check=True)
    (site_of(folder) / "furnished.pth").write_text(sysconfig.get_path("purelib"))
    kept = {
        name: value for name, value in os.environ.items() if name in ("LANG",) or name[:4] == "PIP_"
    }
    redirect = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "GIT_TERMINAL_PROMPT": "0",
    }
    path = f"{folder / 'own' / 'bin'}:{os.environ['PATH']}"
    return kept | redirect | {"PATH": path, "HOME": str(folder / "home")}


def site_of(folder: Path) -> Path:
    return next((folder / "own" / "lib").glob("python*/site-packages"))


# Kernels as Colab starts them, with nothing imported: the pages without a mode, and of modes one that raises, one that does not,
# one that is both, one with a TPU, and one with processes of its own. The others run in forks of a process that has TensorFlow.
KINDS = ("fm01", "fm05", "fm11", "fm16", "fm41")
COLD = [path for path in NOTEBOOKS if not path.stem.startswith("fm") or path.stem[:4] in KINDS]
WARM = [path for path in NOTEBOOKS if path not in COLD]
# What `make colab` runs each time: the first page and a mode of each kind but the first, and of the others those with a grid,
# a timeline, workers, and every save format.
ALWAYS = ("00_s", "fm05", "fm16", "fm41", "fm09", "fm15", "fm23", "fm27")


def run_in_fork(notebook: Path, environment: dict, folder: Path) -> dict:
    """What became of a notebook's cells, all of them, in IPython; TensorFlow is there when they begin."""
    path = client.ensure(environment)
    # Not first, since the notebook is to find what was installed.
    places = os.pathsep.join([environment["PYTHONPATH"], str(ROOT / "tests")])
    command = [sys.executable, "-P", "-m", "run_cells", str(notebook), str(folder / "answer")]
    with open(folder / "log", "w+") as log:
        streams = [log.fileno()] * 3
        ended = client.fork(
            path, command, environment | {"PYTHONPATH": places}, str(folder), streams
        )
        try:
            assert ended.wait(300) == 0, (folder / "log").read_text()
        finally:
            ended.kill()
    return json.loads((folder / "answer").read_text())
