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
ISSUE = "https://github.com/{}/issues/{}"


def tables() -> dict[str, dict]:
    """Returns what is known of each report, in the order in which they are told."""
    return files.toml((files.ROOT / FOLDER / "reports.toml").read_text())


def paths() -> list[Path]:
    return [files.ROOT / FOLDER / f"{name}.md" for name in tables()]


def table() -> str:
    """Returns a table with a row for each report, which leads to its section."""
    lines = ["| error | page | wrong in Keras | in Keras 2 | repair | issue |", "|---" * 6 + "|"]
    return "\n".join([*lines, *map(row, paths())])


def sections() -> str:
    """Returns a section for each report."""
    return "\n".join(map(section, paths()))


def row(path: Path) -> str:
    """Returns a report's row: its title, the pages about it, what is wrong since when, its repair and its issue."""
    title = path.read_text().partition("\n")[0].removeprefix("# ")
    table = tables()[path.stem]
    cells = [
        f"[{title}](#{anchor(path.stem)})",
        ", ".join(f"[{mode.id}](../{mode.notebook})" for mode in modes_of(path)),
        wrong_in(table["keras_3"]),
        table["keras_2"][-1][-1] if "keras_2" in table else "not there",
        table.get("without_repair", "proven"),
        linked(table["issue"]) if "issue" in table else "not reported",
    ]
    return f"| {' | '.join(cells)} |"


def wrong_in(results: list[list[str]]) -> str:
    """Returns the first and the last version of Keras that was run and is wrong."""
    wrong = [short(keras) for _, keras, is_ in results if is_ == "wrong"]
    return " to ".join(dict.fromkeys([wrong[0], wrong[-1]]))


def short(version: str) -> str:
    """Returns a version as a reader names it; a development version has a date besides."""
    read = Version(version)
    return f"the nightly {read.base_version}" if read.is_devrelease else version


def linked(issue: str) -> str:
    """Returns an issue, such as keras-team/keras#1, as a link."""
    return f"[{issue}]({ISSUE.format(*issue.split('#'))})"


def modes_of(path: Path) -> list[FailureMode]:
    """Returns the modes whose pages name the report."""
    return [
        mode
        for mode in registry.modes()
        if f"{FOLDER}/{path.name}" in (files.ROOT / mode.notebook).read_text()
    ]


def anchor(name: str) -> str:
    """Returns the name of a report's section."""
    return f"report-{name.replace('_', '-')}"


def section(path: Path) -> str:
    """Returns a report as a section of a page."""
    text = HEADING.sub(r"**\1**", path.read_text())
    text = TITLE.sub(r"## \1", text)
    return f"({anchor(path.stem)})=\n\n{text}\n"
