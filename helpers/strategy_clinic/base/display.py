"""Output: lines for readers, which carry the same facts as JSON in a notebook, and tables of text."""

import sys
from typing import Any

MIME = "application/vnd.strategy-clinic+json"


def report(line: str, **facts: Any) -> None:
    """Shows a line; in a notebook its output holds the facts as JSON beside it."""
    if running_shell() is None:
        return print(line)
    from IPython.display import display

    display({"text/plain": line, MIME: facts}, raw=True)


def running_shell() -> Any:
    """Returns the IPython shell of this process, or None."""
    ipython = sys.modules.get("IPython")
    return ipython and ipython.get_ipython()


def reported(notebook: Any) -> list[dict[str, Any]]:
    """Returns the facts in the outputs of a notebook, in the order of its cells."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[MIME] for output in outputs if MIME in output.get("data", {})]


def say(line: str) -> None:
    """Prints a line of progress at once, also into a pipe."""
    print(line, flush=True)


def text_table(table: list[list[str]]) -> str:
    """Returns rows as columns of plain text, the first row as headings."""
    widths = [max(map(len, column)) for column in zip(*table)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
