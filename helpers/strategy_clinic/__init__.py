"""The names that a notebook imports. Each is fetched from its room when it is first asked for, so this costs nothing."""

import sys
from importlib import import_module

from .base import public_api
from .base.errors import UserError

__all__ = list(public_api.NAMES)


def __getattr__(name: str):
    if sys.version_info < (3, 11):  # noqa: UP036 - a clone may be opened on any Python, and the observer runs on any
        raise UserError(
            f"Strategy Clinic needs Python 3.11 or newer, and this is {sys.version.split()[0]}: choose a newer one."
        )
    defined = public_api.WORDS | public_api.EXTENSION
    if name in public_api.MODULES:
        found = import_module(f".{public_api.MODULES[name]}", __name__)
    elif name in defined:
        found = getattr(import_module(f".{defined[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
