"""Finds what callbacks of Keras forget when a program is killed and started again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..observer.events import CallbackState, Saved, Stack
from .recording import Recording

Key = tuple[str, str, str]  # a callback: its class, what it monitors, and the path that it saves to


@dataclass(frozen=True)
class Forgotten:
    """A callback that has forgotten its best value, and has taken a worse one for the best."""

    location: Stack
    callback: str
    held: CallbackState  # at the end of the killed run
    taken: CallbackState  # after the restart
    message: str


def forgotten_callbacks(run: Recording) -> Iterator[Forgotten]:
    """Yields the callbacks of a program that was started again whose forgetting has changed what they do."""
    known = states_of(run.before) if run.before else {}
    for key, states in states_of(run).items():
        held = known[key][-1] if key in known else None
        taken = next((state for state in states[1:] if is_known(state)), None)
        forgets = states[0].begins and not is_known(states[0])
        if held and is_known(held) and forgets and taken and is_worse(taken, held):
            if held.callback == "ModelCheckpoint" and not replaces_file(run, taken):
                continue
            yield Forgotten(taken.location, held.callback, held, taken, in_words(held, taken))


def in_words(held: CallbackState, taken: CallbackState) -> str:
    value = f"{held.monitor or 'value'} {held.best:.4g}"
    waited = f", and that {held.wait} epochs have passed without a better one" if held.wait else ""
    forgotten = f"{held.callback} loses its best {value}{waited}"
    if held.callback == "ModelCheckpoint":
        return (
            f"{forgotten}: after a restart it replaces {held.path} by a model with {taken.best:.4g}"
        )
    return f"{forgotten}: after a restart it takes {taken.best:.4g} for the best"


def states_of(run: Recording) -> dict[Key, list[CallbackState]]:
    """Returns the states of each callback in the last `fit` that it was used in."""
    found: dict[Key, list[CallbackState]] = {}
    for state in run.of(CallbackState):
        key = state.callback, state.monitor, state.path
        found[key] = [state] if state.begins else [*found.get(key, ()), state]
    return found


def is_known(state: CallbackState) -> bool:
    return state.best is not None and math.isfinite(state.best)


def is_worse(taken: CallbackState, held: CallbackState) -> bool:
    one, other = taken.best or 0.0, held.best or 0.0
    return one > other if held.smaller else one < other


def replaces_file(run: Recording, state: CallbackState) -> bool:
    return any(run.absolute(save.path) == run.absolute(state.path) for save in run.of(Saved))
