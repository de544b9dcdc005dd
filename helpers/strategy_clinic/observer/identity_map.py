"""Defines a mapping by identity whose keys are held weakly: TensorFlow's variables cannot be hashed, and `id` is reused."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class IdentityMap(Generic[Value]):
    """Values for objects that exist, in the order in which they were set; an object that is gone is forgotten."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[object], Value]] = {}

    def __setitem__(self, key: object, value: Value) -> None:
        number = id(key)

        def forget(reference: object) -> None:
            if number in self.entries and self.entries[number][0] is reference:
                del self.entries[number]

        self.entries[number] = weakref.ref(key, forget), value

    def get(self, key: object) -> Value | None:
        reference, value = self.entries.get(id(key), (None, None))
        return value if reference is not None and reference() is key else None

    def __delitem__(self, key: object) -> None:
        self.entries.pop(id(key), None)

    def setdefault(self, key: object, make: Callable[[], Value]) -> Value:
        """Returns the value for an object, which is made and kept if there is none."""
        value = self.get(key)
        if value is None:
            value = self[key] = make()
        return value

    def items(self) -> Iterator[tuple[Any, Value]]:
        for reference, value in list(self.entries.values()):
            key = reference()
            if key is not None:
                yield key, value
