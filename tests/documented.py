"""The commands that the documentation shows: every line of its blocks of shell commands."""

import re
import shlex
from pathlib import Path

from strategy_clinic.base import files

CODE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Returns the README, the other pages beside it, and the pages of the site."""
    beside = [files.ROOT / name for name in ("README.md", "TEACHING.md", "CONTRIBUTING.md")]
    return beside + sorted((files.ROOT / "book").rglob("*.md"))


def commands(page: Path) -> list[str]:
    """Returns the commands of a page without comments; a block that names a language shows something else."""
    blocks = [text for language, text in CODE.findall(page.read_text()) if language in ("", "sh")]
    lines = [line for text in blocks for line in text.splitlines()]
    split = [shlex.split(line, comments=True) for line in lines]
    return [re.sub(r"\s+#.*", "", line).strip() for line, words in zip(lines, split) if words]


def all_commands() -> dict[str, list[str]]:
    """Returns every command, and the pages that show it."""
    found: dict[str, list[str]] = {}
    for page in pages():
        for command in commands(page):
            found.setdefault(command, []).append(str(page.relative_to(files.ROOT)))
    return found
