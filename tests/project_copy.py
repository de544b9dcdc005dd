"""A copy of the project that tests may break: what one has changed is undone for the next, so that one copy serves them all."""

import os
import shutil
import stat
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


class RestoredFolder:
    """A folder that can be made again what it was, in every file and in every folder below it."""

    def __init__(self, folder: Path):
        self.folder = str(folder)
        self.stamps = stamps(self.folder)
        self.contents = {path: Path(path).read_bytes() for path in self.stamps if not is_dir(path)}

    def restore(self) -> list[str]:
        """Undoes what was changed, which it returns: paths that are new, gone or no longer the same."""
        found = stamps(self.folder)
        changed = {path for path, _ in found.items() - self.stamps.items()}
        replaced = [path for path in changed if is_dir(path)]
        for path in changed:
            remove(path)
        gone = self.stamps.keys() & changed | self.stamps.keys() - found.keys()
        if replaced:  # with what was in it
            gone = {path for path in self.stamps if not os.path.lexists(path)}
        for path in sorted(gone):  # a folder before what is in it
            self.write(path)
        return [os.path.relpath(path, self.folder) for path in sorted(changed | gone)]

    def write(self, path: str) -> None:
        """Makes one file or folder as it was, with its old time, so that no later change has the same stamp."""
        was = self.stamps[path]
        if path in self.contents:
            Path(path).write_bytes(self.contents[path])
            os.utime(path, ns=(was[2], was[2]))
        else:
            os.mkdir(path)
        os.chmod(path, stat.S_IMODE(was[0]))
        self.stamps[path] = stamp(os.lstat(path))


def stamps(folder: str) -> dict[str, tuple[int, ...]]:
    """Returns the stamp of everything below a folder; links are not followed."""
    found, folders = {}, [folder]
    for each in folders:
        with os.scandir(each) as inside:
            for entry in inside:
                found[entry.path] = stamp(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Returns what a change of a file changes; the time and size of a folder follow from what is in it."""
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)


def is_dir(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def remove(path: str) -> None:
    if is_dir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
