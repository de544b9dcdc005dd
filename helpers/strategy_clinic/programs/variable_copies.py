"""The copies of a variable: on which devices they are, and which values they have."""

from typing import Any

from ..base import tf_internals
from .checks import variable_of


def short_name(variable: Any, position: int) -> str:
    return f"{variable.name.split('/')[-1].split(':')[0]} {position}"


def parts_of(weight: Any) -> list[Any]:
    """Returns the components of a distributed variable, one for each device, or the variable itself."""
    variable = variable_of(weight)
    kind = type(variable)  # a wrapper has, by itself, whatever the variable inside it has
    if hasattr(kind, "values"):
        return list(variable.values)
    # Where a strategy keeps one copy for all devices, its variable is such a wrapper.
    wrapped = hasattr(kind, "distribute_strategy")
    return [tf_internals.read(variable, "_v") if wrapped else variable]


def copies(weight: Any) -> list[str]:
    """Returns the short name of each device that has a copy of a variable."""
    return [short_device(part.device) for part in parts_of(weight)]


def short_device(name: str) -> str:
    """Returns 'ps 0 CPU:0' for '/job:ps/replica:0/task:0/device:CPU:0', without the job where that is localhost."""
    parts = dict(part.split(":", 1) for part in name.strip("/").split("/") if ":" in part)
    job = parts.get("job", "localhost")
    task = "" if job == "localhost" else f"{job} {parts.get('task', '0')} "
    return task + parts.get("device", name or "CPU:0")


def values_of(weight: Any) -> list[Any]:
    """Returns the value of each copy of a variable, as arrays."""
    return [part.numpy() for part in parts_of(weight)]
