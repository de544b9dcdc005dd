"""The reports of errors in Keras and TensorFlow, from the folder `upstream`: a table of them, and each one in full."""

import re
from pathlib import Path

from packaging.version import Version
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.modes.failure_mode import FailureMode

FOLDER = "upstream"
TITLE = re.compile(r"^# (.+)")
HEADING = re.compile(r"^## (.+)", re.MULTILINE)
ROW = re.compile(r"^\| \d[\w.-]* \| (Keras|Keras 2: tf_keras) ([\w.]+) \| (.+) \|$", re.MULTILINE)
UNKNOWN = re.compile(r"^## Known issues\n\nNone", re.MULTILINE)


def paths() -> list[Path]:
    return sorted((files.ROOT / FOLDER).glob("*.md"))


def table() -> str:
    """Returns a table with a row for each report, which leads to its section."""
    lines = ["| error | page | wrong with Keras | with Keras 2 | issue |", "|---" * 5 + "|"]
    return "\n".join([*lines, *map(row, paths())])


def sections() -> str:
    """Returns a section for each report."""
    return "\n".join(map(section, paths()))


def row(path: Path) -> str:
    """Returns a report's row: its title, the pages about it, the versions of Keras 3 that are wrong, and what Keras 2 does."""
    report = path.read_text()
    title = report.partition("\n")[0].removeprefix("# ")
    pages = [f"[{mode.id}](../{mode.notebook})" for mode in modes_of(path)]
    versions = ROW.findall(report)
    wrong = [keras for kind, keras, result in versions if kind == "Keras" and result == "wrong"]
    legacy = {result for kind, _, result in versions if kind != "Keras"}
    cells = [
        f"[{title}](#{anchor(path.stem)})",
        ", ".join(pages),
        " to ".join(dict.fromkeys([short(wrong[-1]), short(wrong[0])])),
        ", ".join(sorted(legacy)) or "not there",
        "none found" if UNKNOWN.search(report) else "known",
    ]
    return f"| {' | '.join(cells)} |"


def modes_of(path: Path) -> list[FailureMode]:
    """Returns the modes whose pages name the report."""
    return [
        mode
        for mode in registry.modes()
        if f"{FOLDER}/{path.name}" in (files.ROOT / mode.notebook).read_text()
    ]


def short(version: str) -> str:
    """Returns a version as a reader names it; a development version has a date besides."""
    read = Version(version)
    return f"the nightly {read.base_version}" if read.is_devrelease else version


def anchor(name: str) -> str:
    """Returns the name of a report's section."""
    return f"report-{name.replace('_', '-')}"


def section(path: Path) -> str:
    """Returns a report as a section of a page."""
    text = HEADING.sub(r"**\1**", path.read_text())
    text = TITLE.sub(r"## \1", text)
    return f"({anchor(path.stem)})=\n\n{text}\n"
