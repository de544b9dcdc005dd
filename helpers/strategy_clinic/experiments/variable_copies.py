"""The copies of a variable: on which devices they are, and which values they have."""

from ..base import tf_internals
from .checks import variable_of


def short_name(variable, position: int) -> str:
    return f"{variable.name.split('/')[-1].split(':')[0]} {position}"


def parts_of(weight) -> list:
    """The components of a distributed variable, one per device; of any other, the variable itself."""
    variable = variable_of(weight)
    kind = type(variable)  # a wrapper has, by itself, whatever the variable inside it has
    if hasattr(kind, "values"):
        return list(variable.values)
    # Where a strategy keeps one copy for all devices, its variable is such a wrapper.
    wrapped = hasattr(kind, "distribute_strategy")
    return [tf_internals.read(variable, "_v") if wrapped else variable]


def copies(weight) -> list[str]:
    return [short_device(part.device) for part in parts_of(weight)]


def short_device(name: str) -> str:
    """'/job:ps/replica:0/task:0/device:CPU:0' becomes 'ps 0 CPU:0', and the only process of a job needs no name."""
    parts = dict(part.split(":", 1) for part in name.strip("/").split("/") if ":" in part)
    job = parts.get("job", "localhost")
    where = "" if job == "localhost" else f"{job} {parts.get('task', '0')} "
    return where + parts.get("device", name or "CPU:0")


def values_of(weight) -> list:
    """The value of each copy of a variable, as arrays."""
    return [part.numpy() for part in parts_of(weight)]
