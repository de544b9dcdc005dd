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
    """Returns the table; `link` is the path from its page to the notebooks."""
    names = {mode.id: Path(mode.notebook).name for mode in registry.modes()}
    lines = ["| message | cause | page |", "|---|---|---|"]
    lines += [
        f"| `{each.says}` | {each.cause} | [{each.mode}]({link}{names[each.mode]}) |"
        for each in frequent_messages()
    ]
    return "\n".join(lines)
