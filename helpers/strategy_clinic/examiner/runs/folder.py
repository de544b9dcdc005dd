"""Copies of the program's folder, and the copy it runs in, of which only what a run has changed is copied again."""

import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...base.errors import UserError

NOT_COPIED = shutil.ignore_patterns(".git", "__pycache__", "node_modules", ".tox")
PREFIX = "clinic-"  # of the temporary folders in which programs run
ENVIRONMENT = "pyvenv.cfg"  # a file of every virtual environment
MOST_SIBLINGS = 1000  # files and folders beside the program's folder that get a link
LARGEST_FILE = 16 << 20  # bytes; a larger one gets a link
LARGEST_FOLDER, MOST_FILES = 2 << 30, 100_000  # copying as many takes minutes
LARGEST_PART, MOST_FILES_OF_A_PART = (
    256 << 20,
    10_000,
)  # of a folder in it; a larger one gets a link

Signature = tuple[int, ...]


def require_size(folder: Path) -> None:
    """Raises UserError for a folder that is too large to be copied."""
    size = files = 0
    linked = large_folders(folder)
    for status in files_in(folder, linked):
        size, files = size + bytes_to_copy(status), files + 1
        if size > LARGEST_FOLDER or files > MOST_FILES:
            limit = f"{MOST_FILES:,} files" if files > MOST_FILES else f"{LARGEST_FOLDER >> 30} GiB"
            raise UserError(
                f"{str(folder)!r} holds more than {limit}, and is copied: "
                "examine the program in a folder with only what it needs."
            )


def files_in(folder: Path, but: Collection[str] = ()) -> Iterator[os.stat_result]:
    """Yields the states of all files that are copied with a folder, but those in some folders in it."""
    for place, folders, names in os.walk(folder):
        ignored = not_copied(place, folders) | (set(but) if place == str(folder) else set())
        folders[:] = [name for name in folders if name not in ignored]
        found = [status_of(os.path.join(place, name)) for name in names]
        yield from filter(None, found)


def bytes_to_copy(status: os.stat_result) -> int:
    return status.st_size if status.st_size <= LARGEST_FILE else 0


def large_folders(folder: Path) -> list[str]:
    """Returns the names of folders in a folder that get a link: of data, of the runs of a tracker, of an environment."""
    return [
        entry.name
        for entry in os.scandir(folder)
        if entry.is_dir(follow_symlinks=False) and is_large(Path(entry.path))
    ]


def is_large(folder: Path) -> bool:
    size = 0
    for number, status in enumerate(files_in(folder), 1):
        size += bytes_to_copy(status)
        if size > LARGEST_PART or number > MOST_FILES_OF_A_PART:
            return True
    return False


def not_copied(place: str, names: list[str]) -> set[str]:
    """Returns which of the names in a folder are caches, virtual environments, pipes, sockets, devices or copies of this kind.

    The program may lie in the folder for temporary files itself, where the copy is made.
    """
    paths = {name: os.path.join(place, name) for name in names}
    is_temporary = os.path.realpath(place) == os.path.realpath(tempfile.gettempdir())
    return set(NOT_COPIED(place, names)) | {
        name
        for name, path in paths.items()
        if not is_copied(status_of(path))
        or os.path.isfile(os.path.join(path, ENVIRONMENT))
        or (is_temporary and name.startswith(PREFIX))
    }


def is_copied(status: os.stat_result | None) -> bool:
    kinds = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK
    return status is not None and stat.S_IFMT(status.st_mode) in kinds


def status_of(path: str) -> os.stat_result | None:
    """Returns None for what another process has removed since its folder was listed."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def copy_if_there(source: str, target: str) -> None:
    """Copies a file that may have been removed; a large one gets a link."""
    status = status_of(source)
    if status and status.st_size > LARGEST_FILE:
        os.symlink(source, target)
        return
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


@contextmanager
def copying(folder: Path) -> Iterator[None]:
    """Turns what goes wrong in copying a folder into a UserError."""
    try:
        yield
    except OSError as error:
        many = isinstance(error, shutil.Error)
        reason = "{0!r} in it: {2}".format(*error.args[0][0]) if many else error
        raise UserError(
            f"{str(folder)!r} cannot be copied, to run the program there: {reason}."
        ) from None


def copy_folder(folder: Path, root: Path) -> Path:
    """Copies a folder to its path in another root, with links to what is beside it and beside each folder above it.

    So the program finds what it reads by `..`. Returns the copy.
    """
    target = within(root, folder)
    with copying(folder):
        target.parent.mkdir(parents=True)
        copy_tree(folder, target, linked=large_folders(folder))
        for path in (folder, *folder.parents[:-1]):
            for sibling in itertools.islice(path.parent.iterdir(), MOST_SIBLINGS):
                if sibling != path:
                    within(root, sibling).symlink_to(sibling)
    return target


def within(root: Path, path: Path) -> Path:
    """Returns where an absolute path lies in another root."""
    return root / path.relative_to(path.anchor)


def copy_tree(folder: Path, target: Path, linked: Collection[str] = ()) -> None:
    def ignored(place: str, names: list[str]) -> set[str]:
        return not_copied(place, names) | (set(linked) if place == str(folder) else set())

    shutil.copytree(folder, target, symlinks=True, ignore=ignored, copy_function=copy_if_there)
    for name in linked:
        (target / name).symlink_to(folder / name)


class WorkingCopy:
    """A copy of a folder's tree for runs. It is restored before each run to a stored tree."""

    def __init__(self, root: Path):
        self.root = root
        self.stored: Path | None = None  # what it was restored to last
        self.signatures: dict[str, Signature] = {}  # of its files after that

    def restore(self, stored: Path) -> None:
        """Makes the copy equal to a stored tree. Only what has changed since the last time is copied."""
        if stored != self.stored:
            self.signatures = {}
        with copying(self.root):
            self.root.mkdir(exist_ok=True)
            self.remove_changed()
            missing = [
                name for name in signatures_in(stored) if not os.path.lexists(self.root / name)
            ]
            for name in missing:  # a folder before what is in it
                copy_one(stored / name, self.root / name)
            for name in reversed(missing):  # a folder that is read-only becomes so at the end
                shutil.copystat(stored / name, self.root / name, follow_symlinks=False)
            self.stored, self.signatures = stored, signatures_in(self.root)

    def remove_changed(self) -> None:
        with tempfile.TemporaryDirectory(dir=self.root.parent, ignore_cleanup_errors=True) as trash:
            for number, (name, signature) in enumerate(signatures_in(self.root).items()):
                if self.signatures.get(name) != signature:
                    move_away(self.root / name, Path(trash, str(number)))

    def store(self, stored: Path) -> None:
        """Stores the tree as it is now, to be restored later."""
        with copying(self.root):
            copy_tree(self.root, stored)
            self.stored, self.signatures = stored, signatures_in(self.root)


def signatures_in(root: Path) -> dict[str, Signature]:
    """Returns what changes when a program changes a file, for each path in a tree."""
    found: dict[str, Signature] = {}
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            if status := status_of(path):
                found[os.path.relpath(path, root)] = signature_of(status)
    return found


def signature_of(status: os.stat_result) -> Signature:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    return (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def move_away(path: Path, target: Path) -> None:
    if os.path.lexists(path):  # its folder may have been moved already
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)  # a folder that cannot be written to cannot be moved
        path.rename(target)


def copy_one(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        target.mkdir()
    else:
        shutil.copyfile(source, target, follow_symlinks=False)
