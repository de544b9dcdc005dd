"""Workspace: the files that a run sees. What it changes is kept apart from the reader's, and may be stored for another run."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ...processes.view import NoView, View, copy_state
from .folder import WorkingCopy, copy_folder, copying, require_size, within

TREE = "tree"  # in a copy: the program's folder at its path, and links to what is beside it


class Workspace(ABC):
    """Every run begins with `initial`, which is what the reader has, or with what another run has left."""

    initial: Path  # as `store` would have stored it before any run
    folder: Path  # in which the program runs
    original: Path  # the reader's folder
    why: str = ""  # it is a copy, and no view
    read_only: Sequence[str] = ()  # places outside of it that can only be read

    @abstractmethod
    def in_initial(self, name: str) -> Path:
        """Returns where a file of the program's folder is stored before any run, to be written."""

    @abstractmethod
    def restore(self, stored: Path) -> None:
        """Lets the next run begin with what was stored."""

    @abstractmethod
    def store(self, stored: Path) -> None:
        """Stores what the last run has left."""

    @abstractmethod
    def twin(self, place: Path) -> Workspace:
        """Returns one that begins with the same, for runs at the same time."""

    @property
    def options(self) -> list[str]:
        """The observer's options for a run in it."""
        return []

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def end(self) -> None:  # noqa: B027 - a copy is held by nothing
        """Lets go of what the system holds for it."""


def workspace(folder: Path, place: Path) -> Workspace:
    """Returns a view of the whole file system where the system permits one, otherwise a copy of the folder."""
    try:
        return ViewedFolder(folder, place, place, new_folder(place / "initial"))
    except NoView as reason:
        return CopiedFolder.of(folder, place, str(reason))


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


class ViewedFolder(Workspace):
    """The program runs in its own folder, in a view of the file system: what it writes, wherever, is seen in the view only."""

    def __init__(self, folder: Path, temporary: Path, place: Path, initial: Path):
        self.original = self.folder = folder
        self.temporary, self.place, self.initial, self.views = temporary, place, initial, 0
        self.view = self.new_view(initial)

    def new_view(self, stored: Path) -> View:
        self.views += 1
        place = self.place / f"view-{self.views}"
        with copying(self.folder):
            place.mkdir()
            view = View(place, self.temporary, self.place / "shared", stored)
        self.read_only = view.read_only
        return view

    def in_initial(self, name: str) -> Path:
        path = Path(f"{self.initial}{self.folder / name}")
        for parent in [*path.parents][::-1]:
            if parent.is_relative_to(self.initial) and not parent.is_dir():
                parent.mkdir()
                shutil.copymode(str(parent)[len(str(self.initial)) :], parent)
        return path

    def restore(self, stored: Path) -> None:
        self.end()
        shutil.rmtree(self.view.state.parent, ignore_errors=True)
        self.view = self.new_view(stored)

    def store(self, stored: Path) -> None:
        with copying(self.folder):
            copy_state(self.view.state, stored)

    def twin(self, place: Path) -> ViewedFolder:
        return ViewedFolder(self.folder, self.temporary, place, self.initial)

    @property
    def options(self) -> list[str]:
        return ["--enter", self.view.entrance]

    def end(self) -> None:
        self.view.end()


class CopiedFolder(Workspace):
    """The program runs in a copy of its folder, and the observer redirects what it writes outside of it.

    What it has written there is beside the copy, and so is stored and restored with it.
    """

    def __init__(self, folder: Path, place: Path, initial: Path, why: str):
        self.original, self.initial, self.why = folder, initial, why
        self.shared = place / "shared"
        self.copy = WorkingCopy(place / "copy")
        self.folder = within(self.copy.root / TREE, folder)

    @classmethod
    def of(cls, folder: Path, place: Path, why: str) -> CopiedFolder:
        require_size(folder)
        initial = place / "initial"
        copy_folder(folder, initial / TREE)
        (initial / "temporary").mkdir()
        return cls(folder, place, initial, why)

    def in_initial(self, name: str) -> Path:
        return within(self.initial / TREE, self.original) / name

    def restore(self, stored: Path) -> None:
        self.copy.restore(stored)

    def store(self, stored: Path) -> None:
        self.copy.store(stored)

    def twin(self, place: Path) -> CopiedFolder:
        return CopiedFolder(self.original, place, self.initial, self.why)

    @property
    def options(self) -> list[str]:
        own = os.pathsep.join(map(str, (self.copy.root, self.shared)))
        return ["--view", str(self.copy.root / "outside"), "--own", own]

    @property
    def environment(self) -> dict[str, str]:
        return {"TMPDIR": str(self.copy.root / "temporary")}
