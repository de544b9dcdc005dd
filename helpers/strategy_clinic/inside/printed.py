"""Keeps the last line that a program prints, which is shown below its last step."""

from __future__ import annotations

from typing import Any

MOST = 2000  # characters of the end of the output that are looked at


class LastLine:
    """Reads what is written to a stream, which stays what it is for the program."""

    def __init__(self, stream: Any) -> None:
        self.tail, plain = "", stream.write

        def write(text: str) -> Any:
            self.tail = (self.tail + str(text))[-MOST:]
            return plain(text)

        stream.write = write

    @property
    def words(self) -> str:
        lines = [line.strip() for line in self.tail.splitlines()]
        return next((line for line in reversed(lines) if line), "")
