"""The names that a notebook imports. Each is fetched from its room when it is first asked for, so this costs nothing."""

from importlib import import_module

from .base import words

__all__ = list(words.NAMES)


def __getattr__(name: str):
    defined = words.WORDS | words.EXTENSION
    if name in words.MODULES:
        found = import_module(f".{words.MODULES[name]}", __name__)
    elif name in defined:
        found = getattr(import_module(f".{defined[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
