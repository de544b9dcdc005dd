"""What a fresh runtime of Colab is: its versions, and this repository in a file."""

import ast
import json
import subprocess
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
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


def value_of(name: str) -> str:
    """A constant of the set-up cell as it stands in the notebooks."""
    line = next(each for each in cell("bootstrap").splitlines() if each.startswith("ADDRESS, "))
    names, values = line.split(" = ")
    return ast.literal_eval(values)[names.split(", ").index(name)]
