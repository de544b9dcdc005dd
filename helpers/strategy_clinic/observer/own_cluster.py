"""Reads the cluster that a program describes in TF_CONFIG, and the argument that tells it which of the tasks it is.

Runs in the program's process and in the examiner: standard library only, and Python 3.9's syntax.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

HERE = "localhost", "127.0.0.1", "0.0.0.0"


def addresses_in(config: str) -> dict[str, list[str]]:
    """Returns the addresses of each job of a value of TF_CONFIG; none if it describes no cluster."""
    cluster = read(config).get("cluster")
    is_known = isinstance(cluster, dict) and all(
        isinstance(each, list) for each in cluster.values()
    )
    return cluster if isinstance(cluster, dict) and is_known else {}


def arguments_of_tasks(config: str, arguments: Sequence[str]) -> list[list[str]]:
    """Returns the arguments of each task of the only job; none unless one argument alone has the number of this task.

    It may be a word of its own, or the value of an option, as in `--index=0`.
    """
    jobs, task = [*addresses_in(config).values()], read(config).get("task")
    index = task.get("index") if isinstance(task, dict) else None
    if len(jobs) != 1 or len(jobs[0]) < 2 or not isinstance(index, int):
        return []
    places = [i for i, each in enumerate(arguments) if each.rpartition("=")[2] == str(index)]
    if len(places) != 1:
        return []
    before, given, after = arguments[: places[0]], arguments[places[0]], arguments[places[0] + 1 :]
    option = given.removesuffix(str(index))
    return [[*before, f"{option}{other}", *after] for other in range(len(jobs[0]))]


def is_here(config: str) -> bool:
    """Tells whether all tasks are to run on this machine."""
    addresses = [each for job in addresses_in(config).values() for each in job]
    return all(str(each).rpartition(":")[0] in HERE for each in addresses)


def read(config: str) -> dict[str, Any]:
    try:
        described = json.loads(config)
    except ValueError:
        return {}
    return described if isinstance(described, dict) else {}
