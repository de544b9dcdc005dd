"""Recorded runs of programs, so that an examination can be repeated without making its runs.

What `clinic examine` asks its sandbox for is a run: of a program, on some devices, with options of the observer, in a
folder as it was or as a killed run has left it. `RecordingSandbox` keeps each of them in a file, and `ReplayedSandbox`
answers from the file: what is compared, diagnosed and asked for is then decided anew, by the code as it is now. A file holds one
examination, and begins with what its runs follow from:

    program   a hash of the files of the program's folder and of how it is run
    observer  a hash of the modules of the observer, without comments and docstrings
    versions  of TensorFlow and Keras

Runs of another program, observer or version are out of date: they are not replayed. A run that was not recorded raises
`NotRecorded`."""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import io
import json
import lzma
import re
import shutil
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

from statements import statements
from strategy_clinic.base.errors import UserError
from strategy_clinic.base.files import PACKAGE, ROOT
from strategy_clinic.examiner.reading import from_json, reader_of
from strategy_clinic.examiner.recording import Recording, Role
from strategy_clinic.examiner.runs import cluster, plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.examiner.runs.workspace import Workspace
from strategy_clinic.observer.events import plain

# The entries of a sample, in the line of an event: a quotation mark in a text is written with a backslash.
ENTRIES = re.compile(r'(?<="entries": \[)[^]]+')
UNREAD = ("__pycache__", ".pytest_cache")  # folders that no run depends on
PACKAGES = ("tensorflow", "keras")
INSTALLED = sysconfig.get_paths()
OBSERVER = (
    ROOT / "tests" / "recordings" / "observer.txt"
)  # the Python of the recordings, and the hash


class NotRecorded(BaseException):
    """A run is asked for that no recording holds. The examiner, which goes on after an error of a rule, may not go on here."""


@dataclass(frozen=True)
class Header:
    """What recorded runs follow from."""

    program: str
    observer: str
    versions: str

    @classmethod
    def of(cls, program: ProgramSpec) -> Header:
        return cls(hash_of_program(program), hash_of_observer(), versions())

    def differs_from(self, other: Header) -> list[str]:
        """Returns the names of what is not the same."""
        fields = dataclasses.fields(self)
        return [f.name for f in fields if getattr(self, f.name) != getattr(other, f.name)]


def hash_of_program(program: ProgramSpec) -> str:
    how = (*program.arguments, program.keras, program.steps, program.edited)
    parts = [repr(how), program.listing.text if program.listing else ""]
    for path in sorted(program.folder.rglob("*")):
        name = path.relative_to(program.folder)
        if path.is_file() and not set(UNREAD) & set(name.parts):
            parts += [str(name), hashlib.sha256(path.read_bytes()).hexdigest()]
    folder = str(program.folder)
    return digest(part.replace(folder, "FOLDER") for part in parts)


@functools.cache
def hash_of_observer() -> str:
    """Returns a hash of all modules that run in a program's process, which changes with their code only.

    Each Python writes code in its own way: on another one than that of the recordings, this is the hash that was found there.
    """
    python, known = OBSERVER.read_text().split()
    return found_hash() if python == this_python() else known


def found_hash() -> str:
    modules = sorted(modules_from(PACKAGE / "observer"))
    return digest(f"{path.relative_to(PACKAGE)} {code_of(path)}" for path in modules)


def this_python() -> str:
    return "{}.{}".format(*sys.version_info)


def modules_from(folder: Path) -> set[Path]:
    """Returns the modules of a package and what they import from beside it, and so on."""
    found, new = set[Path](), set(folder.rglob("*.py"))
    while new:
        path = new.pop()
        found.add(path)
        new |= imported_by(path) - found
    return found


def imported_by(path: Path) -> set[Path]:
    """Returns the modules of this package that a module imports by a relative name."""
    found = set()
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            candidates = [place, *(place / alias.name for alias in node.names)]
            found |= {
                each.with_suffix(".py") for each in candidates if each.with_suffix(".py").exists()
            }
    return found


def code_of(path: Path) -> str:
    """Returns the code of a module without comments and docstrings."""
    tree = ast.parse(path.read_text())
    for node in statements(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


@functools.cache
def versions() -> str:
    return ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)


def digest(parts: Iterator[str] | Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# Files


@dataclass
class Recorded:
    """The runs of one examination: each key is what was asked for, in the order in which it was."""

    header: Header
    runs: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Recorded:
        header, runs = contents(path).split(b"\n", 1)
        return cls(Header(**json.loads(header)), [(key, each) for key, each in json.loads(runs)])

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = dataclasses.asdict(self.header), self.runs
        text = "\n".join(json.dumps(each, separators=(",", ":")) for each in lines)
        path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def header_of(path: Path) -> Header:
    """Returns the first line of a file; of one that lies by itself, no other line is read."""
    if path.exists():
        with lzma.open(path) as file:
            return Header(**json.loads(file.readline()))
    return Header(**json.loads(contents(path).split(b"\n", 1)[0]))


def contents(path: Path) -> bytes:
    """Returns what a file holds, which lies by itself or in the archive of its folder."""
    if path.exists():
        return lzma.decompress(path.read_bytes())
    return members(archive_of(path))[path.stem]


def is_recorded(path: Path) -> bool:
    return path.exists() or path.stem in members(archive_of(path))


def archive_of(path: Path) -> Path:
    return path.parent.with_name(f"{path.parent.name}.tar.xz")


@functools.lru_cache(2)
def members(archive: Path) -> dict[str, bytes]:
    """Returns the files in an archive; none if there is no archive."""
    if not archive.exists():
        return {}
    with tarfile.open(archive) as tar:
        found = {each.name: tar.extractfile(each) for each in tar.getmembers()}
        return {name: file.read() for name, file in found.items() if file}


def pack(folder: Path, names: Collection[str]) -> None:
    """Puts the files of a folder into its archive, which then has these names. What they have in common is stored once."""
    archive = folder.with_name(f"{folder.name}.tar.xz")
    files = {path.stem: contents(path) for path in folder.glob("*.xz")}
    kept = {name: text for name, text in {**members(archive), **files}.items() if name in names}
    with tarfile.open(archive, "w:xz", preset=9 | lzma.PRESET_EXTREME) as tar:
        for name, text in sorted(kept.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    members.cache_clear()
    shutil.rmtree(folder, ignore_errors=True)


def to_plain(recording: Recording) -> dict[str, Any]:
    """Returns a run as JSON has it; its events are lines.

    Nearly all numbers are entries of samples, from 32 bits, which nine digits tell apart: with all digits of a Python
    number, the files would be half as large again.
    """
    fields = {f.name: getattr(recording, f.name) for f in dataclasses.fields(recording)}
    lines = "\n".join(event.to_json() for event in recording.events)
    fields["events"] = ENTRIES.sub(in_nine_digits, lines)
    kept: dict[str, Any] = json.loads(json.dumps(fields, default=plain))
    return kept


def in_nine_digits(entries: re.Match[str]) -> str:
    numbers = [float(f"{each:.9g}") for each in json.loads(f"[{entries[0]}]")]
    return json.dumps(numbers)[1:-1]


def from_plain(fields: Mapping[str, Any]) -> Recording:
    events = tuple(map(from_json, fields["events"].splitlines()))
    recording: Any = reader_of(Recording)({**fields, "events": ()})
    return dataclasses.replace(recording, events=events)


def key_of(sandbox: Sandbox, state: str, *words: object) -> str:
    """Returns in words what is asked for: where a run begins, and how it is made."""
    return " ".join(map(str, (state, *words, *(f"{k}={v}" for k, v in sandbox.added.items()))))


# Paths


def places_of(sandbox: Sandbox) -> dict[str, str]:
    """Returns the paths that differ between two examinations of the same program, with the words that stand for them."""
    return {
        str(sandbox.place): "{place}",
        str(sandbox.program.folder): "{folder}",
        INSTALLED["purelib"]: "{packages}",
        INSTALLED["stdlib"]: "{python}",
        str(ROOT): "{root}",
    }


def translated(value: Any, words: Mapping[str, str]) -> Any:
    """Returns plain data in which texts are replaced by others, the longest first."""
    if isinstance(value, str):
        for old, new in sorted(words.items(), key=lambda pair: -len(pair[0])):
            value = value.replace(old, new)
    if isinstance(value, list):
        return [translated(each, words) for each in value]
    if isinstance(value, dict):
        return {name: translated(each, words) for name, each in value.items()}
    return value


# Sandboxes


class RecordingSandbox(Sandbox):
    """Keeps every run that it makes in a file, which is written at the end if none has failed."""

    def __init__(self, program: ProgramSpec, path: Path):
        self.path, self.recorded = path, Recorded(Header.of(program))
        super().__init__(program)
        self.files = Remembering(self.files)  # type: ignore[assignment]

    def keep(self, key: str, recordings: list[Recording]) -> None:
        words = places_of(self)
        kept = [translated(to_plain(each), words) for each in recordings]
        self.recorded.runs.append((translated(key, words), kept))

    def run(self, role: Role, devices: int, options: Sequence[str] = ()) -> Recording:
        recording = super().run(role, devices, options)
        self.keep(key_of(self, self.files.state, role.value, devices, *options), [recording])
        return recording

    def run_tasks(self, strategy: str, role: Role, options: Sequence[str]) -> list[Recording]:
        recordings = cluster.run_tasks(self, strategy, role, options)
        self.keep(key_of(self, self.files.state, role.value, strategy, *options), recordings)
        return recordings

    def __exit__(self, kind: object, *others: object) -> None:
        super().__exit__(kind, *others)
        if kind is None and not self.stopped:
            self.recorded.write(self.path)


class Remembering:
    """A workspace that knows what the next run begins with."""

    def __init__(self, files: Workspace):
        self.files, self.state = files, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)

    def restore(self, stored: Path) -> None:
        self.state = stored.name
        self.files.restore(stored)


class ReplayedSandbox(Sandbox):
    """Answers with recorded runs. It has a folder for nothing but a script that is made of cells."""

    def __init__(self, program: ProgramSpec, recorded: Recorded):
        self.temporary = tempfile.TemporaryDirectory(prefix="clinic-")
        self.place = Path(self.temporary.name).resolve()
        self.program, self.stopped, self.added = program, False, {}
        self.files = ReplayedFiles(program.folder, self.place)  # type: ignore[assignment]
        self.script = ""
        if program.listing:
            script = self.files.in_initial(program.listing.file_name)
            script.write_text(program.listing.text)
            self.script = str(script)
        self.back = {word: path for path, word in places_of(self).items()}
        self.left = list(recorded.runs)

    def take(self, key: str) -> list[Recording]:
        wanted = translated(key, places_of(self))
        for position, (each, runs) in enumerate(self.left):
            if each == wanted:
                del self.left[position]
                return [from_plain(translated(run, self.back)) for run in runs]
        raise NotRecorded(f"{self.program.name}: no recording of the run: {wanted}")

    def run(self, role: Role, devices: int, options: Sequence[str] = ()) -> Recording:
        return self.take(key_of(self, self.files.state, role.value, devices, *options))[0]

    def run_tasks(self, strategy: str, role: Role, options: Sequence[str]) -> list[Recording]:
        return self.take(key_of(self, self.files.state, role.value, strategy, *options))

    def has(self, switch: str) -> bool:
        return not self.program.fork_server

    def __exit__(self, *_: object) -> None:
        self.temporary.cleanup()


class ReplayedFiles:
    """In place of a workspace: only what a run begins with matters."""

    why, read_only = "", ()

    def __init__(self, folder: Path, place: Path):
        self.folder = self.original = folder
        self.initial, self.state = place / "initial", ""

    def in_initial(self, name: str) -> Path:
        path = Path(f"{self.initial}{self.folder / name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def restore(self, stored: Path) -> None:
        self.state = stored.name

    def store(self, stored: Path) -> None:
        pass

    def end(self) -> None:
        pass


# Examinations


def stale(path: Path, program: ProgramSpec) -> list[str]:
    """Returns why a file cannot be replayed for a program; an empty list if it can."""
    if not is_recorded(path):
        return ["not recorded"]
    return header_of(path).differs_from(Header.of(program))


@contextmanager
def sandboxes(make: Callable[[ProgramSpec], Sandbox]) -> Iterator[None]:
    """Gives the examiner other sandboxes, whose runs are made one after the other."""
    with ExitStack() as stack:
        patch = functools.partial(mock.patch.object, plan)
        stack.enter_context(patch("Sandbox", make))
        stack.enter_context(patch("most_beside", lambda: 0))
        stack.enter_context(patch("run_tasks", run_tasks))
        yield


def run_tasks(sandbox: Any, strategy: str, role: Role, options: Sequence[str]) -> list[Recording]:
    run: Callable[..., list[Recording]] = getattr(sandbox, "run_tasks", None) or functools.partial(
        cluster.run_tasks, sandbox
    )
    return run(strategy, role, options)


def replay(path: Path, program: ProgramSpec) -> ReplayedSandbox:
    """Returns a sandbox that answers from a file; raises UserError if that is out of date."""
    if reasons := stale(path, program):
        raise UserError(f"{path.name} is out of date ({', '.join(reasons)}): record it again.")
    return ReplayedSandbox(program, Recorded.read(path))


if __name__ == "__main__":  # before programs are recorded again
    OBSERVER.write_text(f"{this_python()} {found_hash()}\n")
