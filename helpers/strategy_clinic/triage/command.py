"""The command `clinic triage`."""

import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from ..base.errors import UserError
from .answer_text import PASTE, lines_of
from .classify import triage

# What starts a text that is not UTF-8: Windows writes such when output is redirected.
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


def print_answer(file: str, form: str) -> None:
    """Prints the answer for a file, or for the input if the file is `-`, as "text", "json" or "jsonl".

    Raises UserError if there is no text.
    """
    text = decoded(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
    if form == "jsonl":
        for line in json_lines(text):
            print(line)
        return
    if not text.strip():
        raise UserError(f"There is no text. {PASTE}")
    answer = triage(text)
    print(json.dumps(answer.as_dict()) if form == "json" else "\n".join(lines_of(answer)))


def decoded(raw: bytes) -> str:
    encoding = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, errors="replace")


def json_lines(text: str) -> Iterator[str]:
    """Yields one answer for each line that holds a report.

    Raises UserError if a line is not a report.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                report = json.loads(line)
                name, pasted = report["id"], report["text"] + ""
            except (ValueError, KeyError, TypeError, RecursionError):
                raise UserError(
                    f"Line {number} is not a JSON object with `id` and a text in `text`."
                ) from None
            yield json.dumps({"id": name} | triage(pasted).as_dict())
