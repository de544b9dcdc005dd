"""What a fresh runtime of Colab is: its versions, and this repository in a file."""

import json
import re
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


def address() -> tuple[str, str]:
    """The repository and the tag in the set-up cell, as they stand in the notebooks."""
    return re.search(r"git\+(https://[^@\s]+)@(\S+)", cell("bootstrap")).groups()
