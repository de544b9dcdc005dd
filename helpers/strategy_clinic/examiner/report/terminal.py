"""What a person at a terminal sees of an examination: each run as it goes, and the findings, likeliest first."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.text import Text

from ..edits import Repair
from ..findings import Examination, Finding
from ..runs.progress import FindingKnown, Progress, Reporter, RunStarted
from . import text

# How the details of a finding look, by their first word; without a terminal they are words alone.
DIFF_STYLES = {"+": "green", "-": "red", "@": "dim"}
STYLES = {"proof": "dim", "fix": "green", "notebook": "cyan"}


def console(stream: IO[str]) -> Console:
    """Returns rich's, which knows whether this is a terminal, how wide, and whether colours are wanted (NO_COLOR)."""
    return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Reporter]:
    """Yields what reports progress to standard error: line by line, or with a spinner at a terminal."""
    shown = console(sys.stderr)
    if not shown.is_terminal:
        yield lambda step: print(text.progress_in_words(step), file=sys.stderr, flush=True)
        return
    status, started = shown.status(""), ""

    def report(step: Progress) -> None:
        """Shows a run while it goes on, and with how it ended afterwards; and each finding when it is known."""
        nonlocal started
        status.stop()
        if isinstance(step, RunStarted):
            started = text.start_in_words(step)
            status.update(text.progress_in_words(step))
            status.start()  # now, since a program that is refused has nothing to wait for
        elif isinstance(step, FindingKnown):
            shown.print(text.known_in_words(step), style="bold yellow")
        else:
            shown.print(f"{started}: {text.end_in_words(step)}", style="dim")

    try:
        yield report
    finally:
        status.stop()


def show_report(examination: Examination, counts: bool = False) -> None:
    """Prints the report, in colours at a terminal; with the counts of speed and memory, if they are asked for."""
    shown = console(sys.stdout)
    if not shown.is_terminal:
        print(text.in_words(examination, counts), flush=True)
        return
    for finding in examination.findings:
        show_finding(shown, finding)
    for repair in examination.repairs:
        show_repair(shown, repair)
    for each in text.shown_counts(examination) if counts else ():
        heading, *lines = text.counts_in_words(each).splitlines()
        shown.print(heading, style="bold")
        shown.print("\n".join([*lines, ""]))
    for line in text.rest_in_words(examination):
        failed = examination.failure and line.startswith("the program failed")
        shown.print(line, style="bold red" if failed else "")


def show_repair(shown: Console, repair: Repair) -> None:
    heading, *diff = text.repair_in_words(repair).splitlines()
    shown.print(heading, style="bold")
    for line in diff:
        shown.print(line, style=DIFF_STYLES.get(line[:1], ""))
    shown.print()


def show_finding(shown: Console, finding: Finding) -> None:
    place, message = text.place_of(finding.location), text.printable(f"  {finding.message}")
    shown.print(Text.assemble((place, "bold"), "  ", (finding.mode, "bold yellow"), message))
    code = text.code_of(finding.location)
    for line in text.details_of(finding):
        style = "bold" if line == code else STYLES[line.split()[0]]
        shown.print(f"    {text.printable(line)}", style=style)
    shown.print()
