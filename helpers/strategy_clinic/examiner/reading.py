"""Reads events, and other dataclasses, from what JSON made of them.

For each type there is a function that does it, which is made once, from annotations: a run has a hundred thousand values."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..observer.events import SCHEMA, Event, Frame, LocatedEvent


class NewLines:
    """The whole lines of a file that a process writes, each of which is read once."""

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, 0  # bytes

    def __iter__(self) -> Iterator[str]:
        """Yields the lines since the last one that was read."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.read)
            for line in file:
                if line.endswith(b"\n"):
                    self.read += len(line)
                    yield line.decode(errors="replace")


Reader = Callable[[Any], Any]  # raises TypeError, KeyError or ValueError for what does not fit


class EventError(ValueError):
    """Text that is not an event of this schema."""


@functools.cache
def kinds() -> dict[str, type[Event]]:
    """Returns the classes of events by their names."""
    classes = [*Event.__subclasses__(), *LocatedEvent.__subclasses__()]
    return {kind.__name__: kind for kind in classes if kind is not LocatedEvent}


def from_json(text: str) -> Event:
    """Returns the event that a line of JSON holds; raises EventError for anything else."""
    try:
        fields = json.loads(text)
        schema, name = fields.pop("schema"), fields.pop("event")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise EventError(f"not an event: {text[:80]!r}") from None
    if schema != SCHEMA:
        raise EventError(f"events of schema {schema!r} cannot be read; this is schema {SCHEMA}")
    if name not in kinds():
        raise EventError(f"there is no event {name!r} in schema {SCHEMA}")
    kind: Any = kinds()[name]
    try:
        return typing.cast(Event, reader_of(kind)(fields))
    except (KeyError, TypeError, ValueError) as error:
        raise EventError(f"the fields of a {name} event do not fit: {error}") from None


@functools.cache
def reader_of(hint: Any) -> Reader:
    """Returns what makes a value of the type that an annotation names."""
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return optional(reader_of(arguments[0]))
    if arguments:  # tuple[item, ...]
        return all_of(arguments[0])
    if dataclasses.is_dataclass(hint):
        return fields_of(typing.cast(type, hint))
    if issubclass(hint, Frame):
        return frame
    if issubclass(hint, enum.Enum):
        return typing.cast(Reader, hint)
    return plain_value(hint)


def optional(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def all_of(item: Any) -> Reader:
    read = reader_of(item)
    if item not in (bool, int, float, str):
        return lambda values: tuple(map(read, values))

    def read_all(values: Any) -> tuple[Any, ...]:
        """Numbers come in thousands: what needs no change is looked at without a call for each."""
        return tuple(values) if {*map(type, values)} <= {item} else tuple(map(read, values))

    return read_all


def fields_of(kind: type) -> Reader:
    readers: dict[str, Reader] = {}

    def read(fields: dict[str, Any]) -> Any:
        if not readers:  # made at the first value, since a type may have a field of its own type
            hints = typing.get_type_hints(kind)
            readers.update((name, reader_of(hint)) for name, hint in hints.items())
        if fields.keys() != readers.keys():
            raise TypeError(f"{sorted(fields.keys() ^ readers.keys())} missing or unknown")
        return kind(**{name: readers[name](value) for name, value in fields.items()})

    return read


def frame(value: Any) -> Frame:
    path, line, function = value
    return known_frame(text(path), number(line), text(function))


# A program has few lines, and each event names some of them.
known_frame = functools.lru_cache(10_000)(Frame)


def plain_value(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and isinstance(value, int):
            return float(value)
        raise TypeError(f"{value!r} is not {kind.__name__}")

    return read


text, number = plain_value(str), plain_value(int)
