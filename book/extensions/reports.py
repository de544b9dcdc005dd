"""The reports of errors in Keras and TensorFlow, from the folder `upstream`: a table of them, and each one in full."""

import re

from strategy_clinic.base import files

FOLDER = "upstream"
TITLE = re.compile(r"^# (.+)")
HEADING = re.compile(r"^## (.+)", re.MULTILINE)
ROW = re.compile(r"^\| \d[\w.-]* \| (Keras|Keras 2: tf_keras) ([\w.]+) \| (.+) \|$", re.MULTILINE)
LINK_TO_PROGRAM = re.compile(r"^\[`(\w+\.py)`\]\(\1\)\n\n", re.MULTILINE)  # the program follows it
UNKNOWN = re.compile(r"^## Known issues\n\nNone", re.MULTILINE)


def texts() -> list[str]:
    return [path.read_text() for path in sorted((files.ROOT / FOLDER).glob("*.md"))]


def table() -> str:
    """Returns a table with a row for each report, which leads to its section."""
    lines = ["| error | wrong with Keras | with Keras 2 | issue |", "|---|---|---|---|"]
    return "\n".join([*lines, *(row(*each) for each in enumerate(texts(), 1))])


def sections() -> str:
    """Returns a section for each report."""
    return "\n".join(section(*each) for each in enumerate(texts(), 1))


def row(number: int, report: str) -> str:
    """Returns a report's row of the table: its title, the versions of Keras 3 that are wrong, and what Keras 2 does."""
    title = report.partition("\n")[0].removeprefix("# ")
    versions = ROW.findall(report)
    wrong = [keras for kind, keras, result in versions if kind == "Keras" and result == "wrong"]
    legacy = {result for kind, _, result in versions if kind != "Keras"}
    issue = "none found" if UNKNOWN.search(report) else "known"
    span = f"{wrong[-1]} to {wrong[0]}" if len(wrong) > 1 else wrong[0]
    return f"| [{title}](#report-{number}) | {span} | {', '.join(sorted(legacy)) or 'not there'} | {issue} |"


def section(number: int, report: str) -> str:
    """Returns a report as a section of a page."""
    text = HEADING.sub(r"**\1**", LINK_TO_PROGRAM.sub("", report))
    text = TITLE.sub(r"## \1", text)
    return f"(report-{number})=\n\n{text}\n"
