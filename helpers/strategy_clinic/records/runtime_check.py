"""Checks the runtime that a notebook is open on: `clinic check` in a process of its own, and its record to take away."""

import base64
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..base.templates import from_template
from ..setups import runtime

NEEDED = ("papermill", "nbval")  # what Colab and Kaggle do not have


def run(modes: str, keras: int) -> dict:
    """Shows what `clinic check` says, line by line as it says it; returns the record that it made."""
    bring(lacking())
    with tempfile.TemporaryDirectory() as folder:
        options = ["--keras", str(keras), "--save", folder]
        command = [sys.executable, "-m", "strategy_clinic", "check", *chosen(modes), *options]
        with subprocess.Popen(
            command,
            cwd=files.ROOT,
            env=os.environ | {"PY_COLORS": "0"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            for line in process.stdout:
                print(without_time(line), end="")
        records = sorted(Path(folder).glob("*.json"))
        return json.loads(records[0].read_text()) if records else {}


def chosen(modes: str) -> list[str]:
    """Names of modes, never options: the word all is what the command does without any."""
    names = [] if modes.strip() == "all" else modes.replace(",", " ").split()
    if not all(name.isalnum() for name in names):
        raise UserError(f"modes = {modes!r} was asked for; give ids such as 'fm01 fm25', or 'all'.")
    return names


def without_time(line: str) -> str:
    """A stored output that tells seconds is another one each time."""
    return re.sub(r" in \d+\.\d+s( \(.*\))?", "", line)


def lacking() -> list[str]:
    return [name for name in NEEDED if not importlib.util.find_spec(name)]


def bring(names: list[str]):
    """On Colab and Kaggle this machine is yours alone for an hour, and two small packages are all that it lacks."""
    if not names:
        return
    if runtime.host() not in ("colab", "kaggle"):
        raise UserError(f"A check needs {' and '.join(names)}; run: pip install {' '.join(names)}")
    print(f"installing {' and '.join(names)}, and nothing that is here already")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *names], capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise UserError(f"{' and '.join(names)} could not be installed: {last}")


class Download:
    """A link that holds the record itself, so that it works on any host and without a file."""

    def __init__(self, record: dict):
        self.record = record
        self.name = f"{record['runtime']}.json"
        self.holds = f"verdicts: {len(record['verdicts'])}, modes: {len(record['modes'])}"

    def __repr__(self):
        return f"{self.name}: {self.holds}"

    def _repr_html_(self):
        text = json.dumps(self.record, indent=0, ensure_ascii=False)
        return from_template(
            "records/templates/download.html",
            name=self.name,
            data=base64.b64encode(text.encode()).decode(),
            holds=self.holds,
        )


def offer(record: dict) -> Download:
    if not record:
        raise UserError(
            "There is nothing to keep: the check has found no verdicts; see what it said."
        )
    return Download(record)
