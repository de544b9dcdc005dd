"""Checks the runtime that a notebook is open on: `clinic check` in a process of its own, and its record to download."""

import base64
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..base.json_lines import line_by_line
from ..base.templates import from_template
from ..setups import runtime
from .store import Record, parse_record

NEEDED = ("papermill", "nbval")  # what Colab and Kaggle do not have


def run(modes: str, keras: int) -> Record | None:
    """Shows what `clinic check` writes, line by line; returns the record that it has made."""
    install([name for name in NEEDED if not importlib.util.find_spec(name)])
    with tempfile.TemporaryDirectory() as folder:
        options = ["--keras", str(keras), "--save", folder]
        command = [sys.executable, "-m", "strategy_clinic", "check", *chosen(modes), *options]
        # The package may be on the path of this kernel only.
        path = os.pathsep.join([str(files.package().parent), os.environ.get("PYTHONPATH", "")])
        with subprocess.Popen(
            command,
            cwd=files.ROOT,
            env=os.environ | {"PY_COLORS": "0", "PYTHONPATH": path},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            for line in process.stdout or ():
                print(without_seconds(line), end="")
        records = sorted(Path(folder).glob("*.json"))
        return parse_record(records[0].read_text()) if records else None


def chosen(modes: str) -> list[str]:
    """Returns the ids of modes, none for the word all; raises UserError for anything else, such as an option."""
    names = [] if modes.strip() == "all" else modes.replace(",", " ").split()
    if not all(name.isalnum() for name in names):
        raise UserError(f"modes = {modes!r} was asked for; give ids such as 'fm01 fm25', or 'all'.")
    return names


def without_seconds(line: str) -> str:
    """Removes what would make a stored output another one in each run."""
    return re.sub(r" in \d+\.\d+s( \(.*\))?", "", line)


def install(names: list[str]) -> None:
    """Installs packages on Colab and Kaggle, where the machine is the reader's; elsewhere raises UserError."""
    if not names:
        return
    words = " and ".join(names)
    if runtime.host() not in ("colab", "kaggle"):
        raise UserError(f"A check needs {words}; run: pip install {' '.join(names)}")
    print(f"installing {words}, and nothing that is here already")
    command = [sys.executable, "-m", "pip", "install", "-q", *names]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise UserError(f"{words} could not be installed: {last}")


class Download:
    """A link that contains the record, so that it works on any host and without a file."""

    def __init__(self, record: Record) -> None:
        self.text = line_by_line(asdict(record))
        self.name = f"{record.runtime}.json"
        self.holds = f"verdicts: {len(record.verdicts)}, modes: {len(record.modes)}"

    def __repr__(self) -> str:
        return f"{self.name}: {self.holds}"

    def _repr_html_(self) -> str:
        return from_template(
            "records/templates/download.html",
            name=self.name,
            data=base64.b64encode(self.text.encode()).decode(),
            holds=self.holds,
        )


def offer(record: Record | None) -> Download:
    if not record:
        raise UserError(
            "There is nothing to download: the check found no verdicts; see its output."
        )
    return Download(record)
