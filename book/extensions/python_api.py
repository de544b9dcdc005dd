"""The reference of the names that `strategy_clinic` exports, made from their signatures and docstrings."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import strategy_clinic
from strategy_clinic.base import public_api

COPIED = "checks"  # the module whose functions readers copy into their programs


def names() -> str:
    """Returns a section for each exported function and class, one for the checks, and a table of the modules."""
    words = [line for name in sorted(public_api.WORDS) for line in section(name)]
    rows = [f"| `{name}` | {documentation(module(name))} |" for name in sorted(public_api.MODULES)]
    table = ["## Modules", "", "| module | contents |", "|---|---|", *rows]
    return "\n".join([*words, *checks(), *table])


def module(name: str) -> ModuleType:
    return import_module(f"strategy_clinic.{public_api.MODULES[name]}")


def section(name: str) -> Iterator[str]:
    value = getattr(strategy_clinic, name)
    yield from (
        f"## {name}",
        "",
        "```python",
        f"strategy_clinic.{name}{signature(value)}",
        "```",
        "",
    )
    yield from (documentation(value), "")
    if inspect.isclass(value):
        yield from members(vars(value), value.__module__)


def checks() -> Iterator[str]:
    yield from (f"## {COPIED}", "", documentation(module(COPIED)), "")
    yield from members(vars(module(COPIED)), module(COPIED).__name__)


def members(values: dict[str, Any], defined_in: str) -> Iterator[str]:
    """Yields a line for each public function that is defined there and has a docstring."""
    for name, value in values.items():
        function = value.fget if isinstance(value, property) else value
        function = getattr(function, "__func__", function)
        if name.startswith("_") or not inspect.isroutine(function) or not function.__doc__:
            continue
        if function.__module__ == defined_in:
            call = name if isinstance(value, property) else f"{name}{signature(function)}"
            yield f"- `{call}`: {documentation(function)}"
    yield ""


def signature(value: Any) -> str:
    """Returns the parameters of a function or class without annotations, which the docstring's words replace."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "(message)"
    found = inspect.signature(value)
    given = [each for each in found.parameters.values() if each.name != "self"]
    plain = [each.replace(annotation=each.empty) for each in given]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


def documentation(value: Any) -> str:
    """Returns a docstring's first paragraph in one line, unless it is the one that Python made of a dataclass."""
    text = inspect.getdoc(value) or ""
    generated = text.startswith(f"{getattr(value, '__name__', '')}(")
    return "" if generated else " ".join(text.split("\n\n")[0].split())
