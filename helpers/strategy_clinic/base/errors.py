"""Refusals: one sentence that says what was asked, what was found and what to do."""

from difflib import get_close_matches


class UserError(ValueError):
    """A mistake of the user's; its message is the whole story, so a notebook shows no traceback."""

    # AutoGraph makes the errors of a traced function anew, and keeps the class of such only.
    __init__ = Exception.__init__

    def _render_traceback_(self):
        return [str(self)]


class Unavailable(UserError):
    """This machine or this version cannot run the setup; the message is the reason."""


def listed(values) -> str:
    return ", ".join(repr(value) for value in values)


def choose(what: str, found, valid):
    """Returns `found` if it is one of `valid`; refuses with a sentence that lists them all."""
    valid = list(valid)
    if type(found) in {type(value) for value in valid} and found in valid:
        return found
    near = get_close_matches(str(found), map(str, valid), 1) if isinstance(found, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UserError(f"{what} = {found!r} is not known here; valid: {listed(valid)}.{hint}")
