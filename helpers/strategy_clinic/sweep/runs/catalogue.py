"""All rows of the sweep, and the classes of the installed Keras that have none."""

import importlib
import inspect
from types import ModuleType

from ..items import KERAS, Call, Cell, Item, Kind, cells_of, matches
from ..tables import callbacks, layers, losses, metrics, optimizers, savers, training

TABLES = (optimizers, losses, metrics, layers, callbacks, savers, training)
ITEMS: list[Item] = [item for table in TABLES for item in table.ITEMS]

# The classes that need a row: a module of Keras, its base class, and the table.
INSPECTED: dict[str, tuple[str, ModuleType]] = {
    "optimizers": ("Optimizer", optimizers),
    "losses": ("Loss", losses),
    "metrics": ("Metric", metrics),
    "layers": ("Layer", layers),
    "callbacks": ("Callback", callbacks),
}


def chosen_cells(versions: list[int], pattern: str = "") -> list[Cell]:
    """Returns the cells of these versions of Keras whose names fit the pattern."""
    cells = [cell for keras in versions for item in ITEMS for cell in cells_of(item, keras)]
    return [cell for cell in cells if not pattern or matches(cell.name, pattern)]


def without_row(keras: int) -> list[str]:
    """Returns the public classes of the installed Keras, such as `layers.Dense`, that no table knows."""
    return [
        f"{module}.{name}"
        for module, (base, table) in INSPECTED.items()
        for name in public_classes(keras, module, base)
        if name not in known(module, table)
    ]


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
