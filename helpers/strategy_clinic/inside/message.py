"""What a person reads of the message of an exception."""

from __future__ import annotations

import re

# First lines of messages whose last one says what is wrong.
LONG = "in user code:", "Graph execution error:"
ROOT = re.compile(r"\(\d+\) [A-Z_]+: +(.*)")  # the first of several errors of a graph
# Names of operations and of functions, and what TensorFlow puts before and after them.
OF_GRAPHS = re.compile(r"\{\{.*?\}\}|\[\[.*?\]\]|\[Op:.*| '\S*/_\d+\S*'")


def words_of(said: str) -> str:
    """Returns the line of a message that says what is wrong, without the names of operations."""
    lines = [line for line in map(str.strip, said.splitlines()) if line and line[:2] != "[["] or [
        ""
    ]
    line = lines[-1] if lines[0].startswith(LONG) else lines[0]
    line = next((found[1] for found in map(ROOT.match, lines) if found), line)
    return OF_GRAPHS.sub("", line).strip()
