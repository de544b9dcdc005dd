"""Copies of the program's folder, and the copy it runs in, of which only what a run has changed is copied again."""

import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...base.errors import UserError

NOT_COPIED = shutil.ignore_patterns(".git", "__pycache__", "node_modules", ".tox")
PREFIX = "clinic-"  # of the temporary folders in which programs run
ENVIRONMENT = "pyvenv.cfg"  # a file of every virtual environment
MOST_SIBLINGS = 1000  # files and folders beside the program's folder that get a link
LARGEST_FOLDER = 2 << 30  # bytes
MOST_FILES = 100_000  # in it; copying as many takes minutes

Signature = tuple[int, ...]


def require_size(folder: Path) -> None:
    """Raises UserError for a folder that is too large to be copied."""
    size = files = 0
    for place, folders, names in os.walk(folder):
        ignored = not_copied(place, folders)
        folders[:] = [name for name in folders if name not in ignored]
        found = [status_of(os.path.join(place, name)) for name in names]
        size += sum(status.st_size for status in found if status)
        files += len(found)
        if size > LARGEST_FOLDER or files > MOST_FILES:
            limit = f"{MOST_FILES:,} files" if files > MOST_FILES else f"{LARGEST_FOLDER >> 30} GiB"
            raise UserError(
                f"{str(folder)!r} holds more than {limit}, and is copied: "
                "examine the program in a folder with only what it needs."
            )


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


def copy_folder(folder: Path, root: Path) -> None:
    """Copies a folder into a new one, with links to what is beside it, since programs read `../data`."""
    with copying(folder):
        copy_tree(folder, root / folder.name)
        for sibling in itertools.islice(folder.parent.iterdir(), MOST_SIBLINGS):
            if sibling.name != folder.name:
                (root / sibling.name).symlink_to(sibling)


def copy_tree(folder: Path, target: Path) -> None:
    shutil.copytree(folder, target, symlinks=True, ignore=not_copied, copy_function=copy_if_there)


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
