"""The outcomes of a run, and how each looks on every page that shows it."""

from typing import NamedTuple


class Row(NamedTuple):
    """One outcome: its icon, JupyterLab's variable for its colour, and colours where there is none."""

    name: str
    about: str  # what it says of the broken program
    icon: str
    variable: str
    light: str  # words in it can be read on white, and white words on it
    dark: str  # words in it can be read on black


ROWS = (
    Row("raises", "it ends with an error", "✖", "--jp-error-color1", "#b3261e", "#ff8a80"),
    Row(
        "wrong",
        "it prints a wrong result without an error",
        "▲",
        "--jp-warn-color1",
        "#8f5400",
        "#ffb74d",
    ),
    Row("works", "it prints the right result", "✔", "--jp-success-color1", "#22694c", "#7fd1ae"),
    Row("hangs", "it does not end", "∞", "--jp-error-color1", "#6750a4", "#cfbcff"),
    Row(
        "crashes",
        "its process ends without an error",
        "■",
        "--jp-error-color1",
        "#6750a4",
        "#cfbcff",
    ),
    Row("unavailable", "it cannot run there", "○", "--jp-border-color0", "#5f5f5f", "#b0b0b0"),
)
# A cell of the atlas that stands for several outcomes, or for none.
CELLS = (
    Row(
        "differs",
        "the save formats have different outcomes",
        "≠",
        "--jp-info-color1",
        "#33618d",
        "#9ecbff",
    ),
    Row("", "not recorded", "–", "--jp-border-color0", "#6e6e6e", "#b0b0b0"),
)
LOOKS = {row.name: row for row in (*ROWS, *CELLS)}
