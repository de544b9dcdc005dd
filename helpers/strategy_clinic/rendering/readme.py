"""The picture of the README: the figure that a page has drawn when it ran, with its content in words."""

import base64
from pathlib import Path

from ..base import files
from ..base.files import write_whole
from . import sources

PAGE = "fm37_loss_scaled_per_replica"
PICTURE = "images/fm37.png"  # in the folder of notebooks
FIRST_LINE, LAST_LINE = "<!-- picture: written by clinic render -->", "<!-- end of picture -->"


def readme_file() -> Path:
    return files.ROOT / "README.md"


def picture_file() -> Path:
    return files.notebooks() / PICTURE


def drawn() -> tuple[bytes, str]:
    """Returns the figure of the page's stored notebook as PNG, and what it shows in words."""
    cells = sources.read_notebook(files.notebooks() / f"{PAGE}.ipynb").cells
    figure = next(cell for cell in cells if "figure" in sources.tags(cell))
    output = next(each for each in figure.outputs if "image/png" in each.get("data", {}))
    words = output.metadata["image/png"]["alt"]
    return base64.b64decode(output.data["image/png"]), "; ".join(words.splitlines())


def readme_text(words: str) -> str:
    text = readme_file().read_text()
    before, after = text.split(FIRST_LINE)[0], text.split(LAST_LINE)[1]
    shown = f"![How large is one update? {words}](notebooks/{PICTURE})"
    return f"{before}{FIRST_LINE}\n\n{shown}\n\n{LAST_LINE}{after}"


def write_picture() -> None:
    png, words = drawn()
    picture_file().write_bytes(png)
    write_whole(readme_file(), readme_text(words))


def problems() -> list[str]:
    """Returns a sentence if the README has another picture than the page, or describes it in other words."""
    png, words = drawn()
    if picture_file().read_bytes() == png and readme_file().read_text() == readme_text(words):
        return []
    return ["README.md has not the picture of its page; run: clinic render"]
