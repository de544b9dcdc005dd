"""Errors whose message is all that a reader needs: what was asked for, what was found, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")


class UserError(ValueError):
    """A mistake of the user's. A notebook shows its message and no traceback."""

    # AutoGraph raises the errors of a traced function again, and keeps only classes with this `__init__`.
    __init__ = Exception.__init__

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Unavailable(UserError):
    """This machine or this version cannot run the setup; the message is the reason."""


def choose(what: str, value: T, valid: Iterable[T]) -> T:
    """Returns `value` if it is one of `valid`; raises a UserError that lists them if not."""
    valid = list(valid)
    if type(value) in {type(other) for other in valid} and value in valid:
        return value
    near = get_close_matches(value, map(str, valid), 1) if isinstance(value, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    names = ", ".join(map(repr, valid))
    raise UserError(f"{what} = {value!r} is not known here; valid: {names}.{hint}")
