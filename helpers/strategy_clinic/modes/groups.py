"""The failure modes in groups, by what one sees and where."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from ..base import files
from .failure_mode import FailureMode

# The name, the title and the sentence of what is in no group.
NEW = "new", "In no group yet", "Add these modes to a group of `modes/groups.toml`."


@dataclass(frozen=True)
class Group:
    name: str
    title: str
    about: str
    modes: tuple[str, ...]
    without: str = "wrong numbers"  # what a mode shows where there is no message

    def chosen(self, modes: Iterable[FailureMode]) -> list[FailureMode]:
        """Returns those of the modes that are in this group, in its order."""
        inside = [mode for mode in modes if mode.id in self.modes]
        return sorted(inside, key=lambda mode: self.modes.index(mode.id))


@functools.cache
def groups() -> tuple[Group, ...]:
    text = (files.package() / "modes" / "groups.toml").read_text()
    entries = files.toml(text)["group"]
    return tuple(Group(**entry | {"modes": tuple(entry["modes"])}) for entry in entries)


def grouped(modes: Iterable[FailureMode]) -> list[tuple[Group, list[FailureMode]]]:
    """Returns the groups that have some of these modes, with these modes; a new mode may be in none yet."""
    every = list(modes)
    known = {name for group in groups() for name in group.modes}
    new = Group(*NEW, modes=tuple(mode.id for mode in every if mode.id not in known))
    return [(group, inside) for group in (*groups(), new) if (inside := group.chosen(every))]
