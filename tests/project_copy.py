"""A copy of the project that tests may break: what one has changed is undone for the next, so that one copy serves them all."""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("notebooks", "helpers", "tests", "upstream", ".github", "book", "replica-cells")
FILES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "README.md",
    "TEACHING.md",
    "pyproject.toml",
)
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
# What `make book` makes, and what no law speaks about.
LEFT_OUT = {"book": {"notebooks"}, "tests": {"programs", "recordings"}}


def copy_project(folder: Path) -> Path:
    """Returns the folder, with a copy of what the laws speak about."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=not_copied)
    for name in FILES:
        shutil.copy2(ROOT / name, folder / name)
    return folder


def not_copied(folder: str, names: list[str]) -> set[str]:
    left = LEFT_OUT.get(os.path.relpath(folder, ROOT), set())
    return NOT_COPIED(folder, names) | (left & set(names))


@dataclass(frozen=True)
class Kept:
    """What a path was when it was kept; of a folder `contents` is None, and only the mode counts."""

    contents: bytes | None
    stamp: tuple[int, ...]


class RestoredFolder:
    """A folder that can be made again what it was, in every file and in every folder below it."""

    def __init__(self, folder: Path):
        self.folder = str(folder)
        self.kept = {path: kept(path) for path, _ in entries(self.folder)}

    def restore(self) -> list[str]:
        """Undoes what was changed, which it returns: paths that are new, gone or no longer the same."""
        found = dict(entries(self.folder))
        changed = {path for path in found if not self.is_kept(path, found[path])}
        for path in changed:
            remove(path)
        gone = self.kept.keys() & changed | self.kept.keys() - found.keys()
        if any(stat.S_ISDIR(found[path].st_mode) for path in changed):  # with what was in it
            gone = {path for path in self.kept if not os.path.lexists(path)}
        for path in sorted(gone):  # a folder before what is in it
            self.write(path)
        return [os.path.relpath(path, self.folder) for path in sorted(changed | gone)]

    def is_kept(self, path: str, status: os.stat_result) -> bool:
        return path in self.kept and self.kept[path].stamp == stamp(status)

    def write(self, path: str) -> None:
        """Makes one file or folder as it was, with its old time, so that no later change has the same stamp."""
        was = self.kept[path]
        if was.contents is None:
            os.mkdir(path)
        else:
            Path(path).write_bytes(was.contents)
            os.utime(path, ns=(was.stamp[2], was.stamp[2]))
        os.chmod(path, stat.S_IMODE(was.stamp[0]))
        self.kept[path] = Kept(was.contents, stamp(os.lstat(path)))


def entries(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yields everything below a folder; links are not followed."""
    with os.scandir(folder) as found:
        for entry in found:
            yield entry.path, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield from entries(entry.path)


def kept(path: str) -> Kept:
    status = os.lstat(path)
    contents = None if stat.S_ISDIR(status.st_mode) else Path(path).read_bytes()
    return Kept(contents, stamp(status))


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Returns what a change of a file changes; the time and size of a folder follow from what is in it."""
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
