"""What is said to a reader, and the same as JSON for programs."""

MIME = "application/vnd.strategy-clinic+json"


def report(line: str, **facts) -> None:
    """One line for the reader and, where a notebook listens, the same as JSON."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return print(line)
    if get_ipython() is None:
        return print(line)
    display({"text/plain": line, MIME: facts}, raw=True)


def reported(notebook) -> list[dict]:
    """What the steps of a notebook reported, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[MIME] for output in outputs if MIME in output.get("data", {})]


def say(line: str):
    """Progress that is seen at once, also through a pipe."""
    print(line, flush=True)


def text_table(table: list[list[str]]) -> str:
    """Columns of plain text, the first row a heading; stable, so stored outputs can be compared."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
