"""Defines what is kept of a tensor: all of its numbers if they are few, otherwise its norm and sums of blocks."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass
from typing import Any

MOST_ENTRIES = 16  # of a tensor whose numbers are all kept
BLOCKS = 24  # of a larger one
MOST_ROWS = 256  # examples whose checksums are kept
PERIOD = 7  # of the weights of a block's numbers: numbers that change places change its sum
NUMBERS = "fiub"  # kinds of NumPy's types


@dataclass(frozen=True)
class Value:
    """A tensor. Its entries add up as tensors do: they are its numbers, or weighted sums of equal blocks of them."""

    shape: tuple[int, ...]
    dtype: str
    norm: float
    entries: tuple[float, ...]
    rows: tuple[int, ...] = ()  # checksums of its examples
    words: str = ""  # in place of numbers

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def is_whole(self) -> bool:
        """Whether the entries are its numbers."""
        return len(self.entries) == self.size

    def as_json(self) -> list[Any]:
        return [self.shape, self.dtype, self.norm, self.entries, self.rows, self.words]


def value_from(parts: list[Any]) -> Value:
    shape, dtype, norm, entries, rows, words = parts
    return Value(tuple(shape), dtype, norm, tuple(entries), tuple(rows), words)


def value_of(array: Any, *, with_rows: bool = False) -> Value:
    import numpy as np

    plain = np.asarray(array)
    rows = rows_of(plain) if with_rows and plain.ndim else ()
    dtype = str(plain.dtype) if not plain.dtype.hasobject else "string"
    try:
        flat = plain.astype("float64").ravel()  # of bfloat16, too
    except (TypeError, ValueError):
        return Value(plain.shape, dtype, 0.0, (), rows)
    norm = float(np.linalg.norm(flat))
    return Value(plain.shape, dtype, norm, tuple(map(float, entries_of(flat))), rows)


def value_of_words(words: str) -> Value:
    return Value((), "string", 0.0, (), (), words)


def entries_of(flat: Any) -> Any:
    import numpy as np

    if flat.size <= MOST_ENTRIES:
        return flat
    starts = np.linspace(0, flat.size, BLOCKS, endpoint=False).astype(int)
    return np.add.reduceat(flat * weights(flat.size), starts)


@functools.lru_cache(maxsize=16)
def weights(size: int) -> Any:
    import numpy as np

    return 1.0 + np.arange(size) % PERIOD


def rows_of(array: Any) -> tuple[int, ...]:
    return tuple(
        zlib.crc32(repr(row.tolist()).encode() if row.dtype.hasobject else row.tobytes())
        for row in array[:MOST_ROWS]
    )
