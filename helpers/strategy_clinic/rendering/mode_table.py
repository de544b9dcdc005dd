"""The table of modes on the first page, written from the declarations."""

from pathlib import Path

from ..modes import registry


def markdown(link: str) -> str:
    """Returns the table; `link` is the path from its page to the notebooks."""
    lines = [
        "| mode | what you see | how it fails |",
        "|---|---|---|",
    ]
    for mode in registry.modes():
        name = f"[{mode.id} {mode.slug}]({link}{Path(mode.notebook).name})"
        lines.append(f"| {name} | {mode.sees} | {mode.loud} |")
    return "\n".join(lines)
