"""What of the README is made: the figure that a page has drawn when it ran, in words, too, and the most frequent messages."""

import base64
import re
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..base.files import write_whole
from . import frequent, sources

# The first line names the notebook. What stands between the two lines is written.
PLACE = re.compile(
    r"(<!-- the figure of notebooks/(\w+)\.ipynb, written by clinic render -->\n)"
    r".*(\n<!-- end of figure -->)",
    re.DOTALL,
)
MESSAGES = re.compile(
    r"(<!-- the most frequent messages, written by clinic render -->\n)"
    r".*(\n<!-- end of messages -->)",
    re.DOTALL,
)


def readme_file() -> Path:
    return files.ROOT / "README.md"


def figure_of(page: str) -> tuple[bytes, str]:
    """Returns the figure of a stored notebook as PNG, and what it shows in words."""
    cells = sources.read_notebook(files.notebooks() / f"{page}.ipynb").cells
    figure = next(cell for cell in cells if "figure" in sources.tags(cell))
    output = next(each for each in figure.outputs if "image/png" in each.get("data", {}))
    words = output.metadata["image/png"]["alt"]
    return base64.b64decode(output.data["image/png"]), "; ".join(words.splitlines())


def made() -> tuple[Path, bytes, str]:
    """Returns the file of the picture, the picture, and the text of the README with it and with the messages."""
    text = readme_file().read_text()
    page = place_of(PLACE, text)[2]
    png, words = figure_of(page)
    text = filled(PLACE, text, f"![{words}](notebooks/images/{page}.png)")
    whole = filled(MESSAGES, text, frequent.short_markdown("notebooks/"))
    return files.notebooks() / "images" / f"{page}.png", png, whole


def place_of(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    place = pattern.search(text)
    if place is None:
        raise UserError(f"README.md has no place for what is made; restore: {pattern.pattern}.")
    return place


def filled(pattern: re.Pattern[str], text: str, content: str) -> str:
    """Returns a text with something new between the two lines that an expression fits."""
    place = place_of(pattern, text)
    first, last = place[1], place[place.lastindex or 1]
    return f"{text[: place.start()]}{first}\n{content}\n{last}{text[place.end() :]}"


def write_picture() -> None:
    path, png, text = made()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(png)
    write_whole(readme_file(), text)


def problems() -> list[str]:
    """Returns a sentence if the README has another picture than the page, or describes it in other words."""
    path, png, text = made()
    same = path.exists() and path.read_bytes() == png and readme_file().read_text() == text
    return (
        []
        if same
        else ["README.md has not the figure of its page, or other messages; run: clinic render"]
    )
