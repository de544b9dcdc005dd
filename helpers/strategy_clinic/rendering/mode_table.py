"""The table of modes in the README and on the first page, written from the declarations."""

from pathlib import Path

from ..base import files
from ..base.files import write_whole
from ..modes import registry

FIRST_LINE, LAST_LINE = "<!-- modes: written by clinic render -->", "<!-- end of modes -->"


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


def readme_file() -> Path:
    return files.ROOT / "README.md"


def readme_text() -> str:
    text = readme_file().read_text()
    before, after = text.split(FIRST_LINE)[0], text.split(LAST_LINE)[1]
    return f"{before}{FIRST_LINE}\n\n{markdown('notebooks/')}\n\n{LAST_LINE}{after}"


def write_readme() -> None:
    write_whole(readme_file(), readme_text())


def problems() -> list[str]:
    """Returns a sentence if the README has another table than the modes declare."""
    if readme_file().read_text() == readme_text():
        return []
    return ["README.md is not what the modes declare; run: clinic render"]
