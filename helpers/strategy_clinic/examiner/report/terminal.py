"""What a person at a terminal sees of an examination: each run as it goes, and the findings, likeliest first."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..recording import Examination, Finding
from . import serialize

# How the words of a finding look, by what they are; without a terminal they are words alone.
STYLES = {"proof": "dim", "fix": "green", "notebook": "cyan"}


def console(stream):
    """rich's, which knows whether this is a terminal, how wide, and whether colours are wanted (NO_COLOR)."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def progress() -> Iterator[Callable]:
    """Says what is run; at a terminal the line turns until the run has ended. Findings have standard output for themselves."""
    shown = console(sys.stderr)
    if not shown.is_terminal:
        yield lambda line: print(line, file=sys.stderr, flush=True)
        return
    status, held = shown.status(""), []

    def tell(line: str):
        """A run stays in sight with how it ended."""
        ended = line.startswith(" ")
        status.stop()
        if held:
            shown.print(f"{held.pop()}:{line[1:]}" if ended else held.pop(), style="dim")
        if not ended:
            held.append(line.removesuffix(" ..."))
            status.update(line)
            status.start()  # now, since a program that is refused has nothing to wait for

    try:
        yield tell
    finally:
        status.stop()


def show_report(found: Examination):
    """At a terminal in colours; else the words as they are, line for line."""
    shown = console(sys.stdout)
    if not shown.is_terminal:
        return print(serialize.in_words(found), flush=True)
    for each in found.findings:
        show_finding(shown, each)
    for line in serialize.rest_in_words(found):
        shown.print(line, style="bold red" if line.startswith("the program failed") else "")


def show_finding(shown, found: Finding):
    from rich.text import Text

    head, *lines = serialize.finding_in_words(found).splitlines()
    place = serialize.place_of(found)
    rest = head.removeprefix(place).removeprefix(f"  {found.mode}")
    shown.print(Text.assemble((place, "bold"), "  ", (found.mode, "bold yellow"), rest))
    for line in lines:
        label = line.split()[0]
        shown.print(line, style=STYLES.get(label, "bold") if line.startswith("    ") else "")
    shown.print()
