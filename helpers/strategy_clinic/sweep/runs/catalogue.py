"""All rows of the sweep, and the classes of the installed Keras that have none."""

import functools
import importlib
import inspect
from collections.abc import Callable
from types import ModuleType

from ..items import KERAS, Call, Cell, Item, Kind, cells_of, matches
from ..tables import (
    arguments,
    callbacks,
    checks,
    layers,
    losses,
    metrics,
    optimizers,
    savers,
    training,
    workers,
)

TABLES = (
    optimizers,
    losses,
    metrics,
    layers,
    callbacks,
    savers,
    training,
    arguments,
    checks,
    workers,
)
ITEMS: list[Item] = [item for table in TABLES for item in table.ITEMS]

# The classes that need a row: a module of Keras, its base class, and the table.
INSPECTED: dict[str, tuple[str, ModuleType]] = {
    "optimizers": ("Optimizer", optimizers),
    "losses": ("Loss", losses),
    "metrics": ("Metric", metrics),
    "layers": ("Layer", layers),
    "callbacks": ("Callback", callbacks),
}
METHODS = (
    "compile",
    "fit",
    "evaluate",
    "predict",
    "train_on_batch",
    "test_on_batch",
    "predict_on_batch",
)


def chosen_cells(versions: list[int], pattern: str = "") -> list[Cell]:
    """Returns the cells of these versions of Keras whose names fit the pattern."""
    cells = [cell for keras in versions for item in ITEMS for cell in cells_of(item, keras)]
    return [cell for cell in cells if not pattern or matches(cell.name, pattern)]


def without_row(keras: int) -> list[str]:
    """Returns what no table knows: public classes of the installed Keras, such as `layers.Dense`, and arguments of Keras 3."""
    return classes_without_row(keras) + (arguments_without_row() if keras == 3 else [])


def classes_without_row(keras: int) -> list[str]:
    return [
        f"{module}.{name}"
        for module, (base, table) in INSPECTED.items()
        for name in public_classes(keras, module, base)
        if name not in known(module, table)
    ]


def arguments_without_row() -> list[str]:
    """Returns the arguments, such as `layers.Dense(units)`, that no row of their class gives and that are not left out."""
    return arguments_of_classes() + arguments_of_methods()


def arguments_of_classes() -> list[str]:
    return [
        f"{module}.{name}({argument})"
        for module, (base, table) in INSPECTED.items()
        for name in public_classes(3, module, base)
        if name not in table.NOT_SWEPT
        for argument in optional_arguments(module, name)
        if not {argument, f"{name}.{argument}"} & arguments.NOT_SWEPT.keys()
        if argument not in given_to(name)
    ]


def arguments_of_methods() -> list[str]:
    model = importlib.import_module(KERAS[3]).Model
    return [
        f"Model.{method}({argument})"
        for method in METHODS
        for argument in with_default(getattr(model, method))
        if argument not in given_to_method(method)
        if not {argument, f"{method}.{argument}"} & training.NOT_SWEPT.keys()
    ]


def given_to_method(method: str) -> set[str]:
    """Returns the arguments that a row about a model gives to a method: in an option for it, or as the row's own name."""
    return {name for item in training.ITEMS for name in given_in(item, method)}


def given_in(item: Item, method: str) -> set[str]:
    owner = {kind: name or item.name for kind, name in training.OPTIONS_OF.items()}
    found = {
        name for kind, named in item.options.items() if owner.get(kind) == method for name in named
    }
    return found | ({item.option, *item.options} if item.name == method else set())


def optional_arguments(module: str, name: str) -> list[str]:
    return with_default(getattr(importlib.import_module(f"{KERAS[3]}.{module}"), name))


def with_default(called: Callable[..., object]) -> list[str]:
    """Returns the arguments that have a default; no row can do without the others."""
    parameters = inspect.signature(called).parameters.values()
    return [each.name for each in parameters if each.default is not each.empty]


@functools.cache
def given_to(name: str) -> set[str]:
    """Returns the arguments that the rows of a class give by name."""
    rows = [item.make for item in ITEMS if item.name == name and item.make]
    return {argument for made in rows for argument, _ in made.named}


def public_classes(keras: int, module: str, base: str) -> list[str]:
    found = importlib.import_module(f"{KERAS[keras]}.{module}")
    parent = getattr(found, base)
    return sorted(
        name
        for name, each in vars(found).items()
        if inspect.isclass(each) and issubclass(each, parent)
    )


def known(module: str, table: ModuleType) -> set[str]:
    """Returns the names that a table has rows for or leaves out for a reason."""
    made = {name for item in table.ITEMS for name in named(item.make) if name.startswith(module)}
    rows = {item.name for item in table.ITEMS}
    return rows | {name.partition(".")[2] for name in made} | set(table.NOT_SWEPT)


def named(value: object) -> set[str]:
    """Returns the names of all calls in a value."""
    if isinstance(value, (list, tuple)):
        return {name for each in value for name in named(each)}
    if not isinstance(value, Call):
        return set()
    return {value.name} | named(list(value.arguments)) | named([each for _, each in value.named])


def kinds() -> list[str]:
    return [kind.value for kind in Kind]


def counts_of_arguments() -> dict[str, int]:
    """Returns how many arguments of Keras 3 a row gives, how many are left out for a reason, and how many have neither."""
    every = [
        (f"{module}.{name}({argument})", argument in given_to(name))
        for module, (base, table) in INSPECTED.items()
        for name in public_classes(3, module, base)
        if name not in table.NOT_SWEPT
        for argument in optional_arguments(module, name)
    ]
    model = importlib.import_module(KERAS[3]).Model
    every += [
        (f"Model.{method}({argument})", argument in given_to_method(method))
        for method in METHODS
        for argument in with_default(getattr(model, method))
    ]
    rows, neither = sum(given for _, given in every), len(arguments_without_row())
    return {"a row": rows, "a reason": len(every) - rows - neither, "neither": neither}
