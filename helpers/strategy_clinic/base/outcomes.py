"""The outcomes of a run, and how each looks on every page that shows it."""

from typing import NamedTuple


class Row(NamedTuple):
    """One outcome: its icon, JupyterLab's variable for its colour, and colours where there is none."""

    name: str
    icon: str
    variable: str
    light: str  # words in it can be read on white, and white words on it
    dark: str  # words in it can be read on black


ROWS = (
    Row("raises", "✖", "--jp-error-color1", "#b3261e", "#ff8a80"),
    Row("silent", "▲", "--jp-warn-color1", "#8f5400", "#ffb74d"),
    Row("works", "✔", "--jp-success-color1", "#22694c", "#7fd1ae"),
    Row("hangs", "∞", "--jp-error-color1", "#6750a4", "#cfbcff"),
    Row("crashes", "■", "--jp-error-color1", "#6750a4", "#cfbcff"),
    Row("unavailable", "○", "--jp-border-color0", "#5f5f5f", "#b0b0b0"),
)
# A cell of the atlas that stands for several outcomes, or for none.
CELLS = (
    Row("differs", "≠", "--jp-info-color1", "#33618d", "#9ecbff"),
    Row("", "–", "--jp-border-color0", "#6e6e6e", "#b0b0b0"),
)
LOOKS = {row.name: row for row in (*ROWS, *CELLS)}
