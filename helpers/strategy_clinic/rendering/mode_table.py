"""The table of modes on the first page, written from the declarations."""

from pathlib import Path

from ..modes import registry
from ..modes.failure_mode import FailureMode
from ..modes.groups import Group, grouped
from ..modes.kinds import how_it_fails


def markdown(link: str, level: int = 3) -> str:
    """Returns a section of this level for each group; `link` is the path from its page to the notebooks."""
    return "\n\n".join(
        f"{'#' * level} {group.title}\n\n{table(group, modes, link)}"
        for group, modes in grouped(registry.modes())
    )


def table(group: Group, modes: list[FailureMode], link: str) -> str:
    """Returns the sentence of a group, and a table of its modes."""
    lines = [group.about, "", "| mode | what you see | how it fails |", "|---|---|---|"]
    for mode in modes:
        name = f"[{mode.id} {mode.slug}]({link}{Path(mode.notebook).name})"
        lines.append(f"| {name} | {mode.sees} | {how_it_fails(mode)} |")
    return "\n".join(lines)
