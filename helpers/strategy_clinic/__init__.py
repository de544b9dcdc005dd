"""The names that a notebook imports. A module is imported when one of its names is first used, so this costs nothing."""

import sys
from importlib import import_module
from typing import Any

from .base import public_api

__all__ = list(public_api.NAMES)


def __getattr__(name: str) -> Any:
    if sys.version_info < (3, 11):  # noqa: UP036 - a clone may be opened on any Python, and the observer runs on 3.9
        from .base.errors import UserError

        raise UserError(
            f"Strategy Clinic needs Python 3.11 to 3.13, and this is {sys.version.split()[0]}: choose one of them."
        )
    defined_in = public_api.WORDS | public_api.EXTENSION
    value: Any
    if name in public_api.MODULES:
        value = import_module(f".{public_api.MODULES[name]}", __name__)
    elif name in defined_in:
        value = getattr(import_module(f".{defined_in[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
