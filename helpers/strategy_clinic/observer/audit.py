"""Hears what Python says to audit hooks of files and of the environment before it changes them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection
from typing import Any

from .context import Context

OPENED = "open"
ENVIRONMENT_SET = "os.putenv"
Handler = Callable[[str, Any], None]  # of an event and its arguments

# An audit hook cannot be removed: there is one in a process, for all observers.
listeners: list[Handler] = []
wanted: set[str] = set()  # the events that one of them has asked for: Python has many more


def listen(context: Context, events: Collection[str], happens: Handler) -> None:
    """Calls a function for these events, until the observer has stopped."""

    def heard(event: str, arguments: Any) -> None:
        if context.stopped:
            listeners.remove(heard)
        elif event in events:
            context.guard(happens, event, arguments)

    wanted.update(events)
    listeners.append(heard)
    install()


@functools.cache
def install() -> None:
    sys.addaudithook(tell)


def tell(event: str, arguments: Any) -> None:
    if event in wanted:
        for listener in [*listeners]:
            listener(event, arguments)
