"""Runs the cells of a notebook in IPython, one after the other: python -m run_cells NOTEBOOK ANSWER.

The package is not imported here: the notebook's set-up cell has to find it. The answer, a file, holds how many cells ran to
their end, and what the next one raised.
"""

import json
import sys
from pathlib import Path

from short_waits import shorten


def main():
    notebook, answer = map(Path, sys.argv[1:])
    cells = [
        "".join(each["source"])
        for each in json.loads(notebook.read_text())["cells"]
        if each["cell_type"] == "code"
    ]
    answer.write_text(json.dumps(run_all(cells)))


def run_all(cells: list[str]) -> dict:
    from IPython.core.interactiveshell import InteractiveShell

    shorten()
    shell = InteractiveShell.instance()
    shell.colors = "NoColor"
    for number, text in enumerate(cells):
        done = shell.run_cell(text, store_history=True)
        if not done.success:
            return {"ran": number, "raised": repr(done.error_before_exec or done.error_in_exec)}
    return {"ran": len(cells), "raised": ""}


if __name__ == "__main__":
    main()
