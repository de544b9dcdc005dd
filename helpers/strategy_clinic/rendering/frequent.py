"""The ten most frequent messages, as the README and the first notebook list them."""

import functools
from dataclasses import dataclass
from pathlib import Path

from ..base import files
from ..modes import registry


@dataclass(frozen=True)
class FrequentMessage:
    mode: str
    says: str
    cause: str
    reports: int
    threads: int


@functools.cache
def frequent_messages() -> tuple[FrequentMessage, ...]:
    text = (files.package() / "modes" / "frequent.toml").read_text()
    return tuple(FrequentMessage(**entry) for entry in files.toml(text)["message"])


def markdown(link: str) -> str:
    """Returns the table with causes; `link` is the path from its page to the notebooks."""
    return table(["message", "cause", "page"], link)


def short_markdown(link: str) -> str:
    return table(["message", "page"], link)


def table(columns: list[str], link: str) -> str:
    names = {mode.id: Path(mode.notebook).name for mode in registry.modes()}
    rows = [
        {
            "message": f"`{each.says}`",
            "cause": each.cause,
            "page": f"[{each.mode}]({link}{names[each.mode]})",
        }
        for each in frequent_messages()
    ]
    lines = [columns, ["---"] * len(columns), *([row[name] for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
