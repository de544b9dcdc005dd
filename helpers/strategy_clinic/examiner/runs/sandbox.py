"""Runs the program in its own interpreter and a copy of its folder, watched by the observer, and reads what it saw."""

import itertools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

from ...base import files
from ...base.errors import UserError
from ...processes import python_process
from ..recording import Observation, read_facts
from .process import Running

OBSERVER = "strategy_clinic_observer"  # what the observer is called in the program's process
# What comes along, as it lies in the clinic: the observer, and what describes a TPU.
OBSERVER_MODULES = (
    "base/package_versions.py",
    "base/tf_internals.py",
    "base/errors.py",
    "setups/runtime.py",
    "setups/tpu_graph.py",
    "setups/tpu.py",
    *files.modules_in("observer"),
)
NOT_COPIED = shutil.ignore_patterns(".git", "__pycache__", "node_modules", ".tox")
ENVIRONMENT = "pyvenv.cfg"  # what lies in a virtual environment, whatever its name
MOST_BESIDE = 1000  # files and folders beside that of the program, which it may reach by `..`
LARGEST_FOLDER = 2 << 30  # bytes of a folder that is copied for every run
NOTHING_MORE: dict = {}


@dataclass(frozen=True)
class Case:
    """What is examined: a script or a module, its arguments, and how it is run."""

    words: tuple[str, ...]  # train.py --epochs 1, or -m package.train
    folder: Path
    python: str = sys.executable
    keras: int | None = None
    limit: float = 600
    steps: int = 0
    libraries: tuple[str, ...] = ()  # folders whose files are not the program's own
    warm: str | None = None  # the socket of a process that it is forked from
    brought: Path | None = None  # the script, where it does not lie in the folder

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def script(self) -> Path:
        return self.brought or self.folder / self.words[0]

    def but(self, **changes) -> "Case":
        return replace(self, **changes)


def require_program(program: Case) -> Case:
    """Refuses, in one sentence, what cannot be run at all."""
    first, *others = program.words
    if first == "-m":
        if not others:
            raise UserError(
                "-m needs the name of a module, such as: clinic examine -m package.train"
            )
    elif not program.script.is_file():
        raise UserError(f"There is no file {first!r} in {str(program.folder)!r} to examine.")
    else:
        program = program.but(words=(script_in(program.folder, first), *others))
    if program.keras not in (None, 2, 3):
        raise UserError(f"keras = {program.keras!r} is not known here; valid: 2, 3.")
    require_tensorflow(program)
    require_small(program.folder)
    return program


def script_in(folder: Path, name: str) -> str:
    """As it is found from a copy of the folder: one that lies in it, in the copy; another, where it is."""
    path = (folder / name).absolute()
    path = Path(os.path.normpath(path))
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def require_tensorflow(program: Case):
    code = "import importlib.util as u; raise SystemExit(u.find_spec('tensorflow') is None)"
    try:  # not where the program lies, whose files may bear TensorFlow's name
        done = subprocess.run([program.python, "-c", code], cwd=os.sep, capture_output=True)
    except OSError as error:
        raise UserError(
            f"{program.python!r} cannot be run ({error.strerror}): give another --python."
        ) from None
    if done.returncode:
        raise UserError(
            f"{program.python!r} has no TensorFlow: give the one that the program uses as --python."
        )


def require_small(folder: Path):
    size = 0
    for place, folders, names in os.walk(folder):
        stay = left_behind(place, folders)
        folders[:] = [each for each in folders if each not in stay]
        size += sum(os.lstat(os.path.join(place, name)).st_size for name in names)
        if size > LARGEST_FOLDER:
            raise UserError(
                f"{str(folder)!r} holds more than {LARGEST_FOLDER >> 30} GiB, and is copied for every run: "
                "examine the program in a folder with only what it needs."
            )


def observer(folder: Path) -> Path:
    """The observer as one file, which needs nothing but Python's own modules and TensorFlow."""
    made, begin = (
        folder / "observer.pyz",
        f"from {OBSERVER}.observer import main\n\nmain.main()\n",
    )
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("__main__.py", begin)
        file.writestr(f"{OBSERVER}/__main__.py", begin)
        for room in ("", "base/", "setups/"):
            file.writestr(f"{OBSERVER}/{room}__init__.py", "")
        for name in OBSERVER_MODULES:
            file.write(files.PACKAGE / name, f"{OBSERVER}/{name}")
    return made


def copy_folder(folder: Path, copy: Path):
    """With links to what lies beside it, since programs say `../data`. Pipes and sockets are no files, and stay away."""
    try:
        shutil.copytree(folder, copy, symlinks=True, ignore=left_behind)
    except (shutil.Error, OSError) as error:
        many = isinstance(error, shutil.Error)
        first = "{0!r} in it: {2}".format(*error.args[0][0]) if many else error
        raise UserError(
            f"{str(folder)!r} cannot be copied, to run the program there: {first}."
        ) from None
    for each in itertools.islice(folder.parent.iterdir(), MOST_BESIDE):
        if each.name != copy.name:
            (copy.parent / each.name).symlink_to(each)


def left_behind(place: str, names: list[str]) -> set[str]:
    paths = {name: os.path.join(place, name) for name in names}
    special = {name for name, path in paths.items() if not is_copied(path)}
    special |= {
        name for name, path in paths.items() if os.path.isfile(os.path.join(path, ENVIRONMENT))
    }
    return special | set(NOT_COPIED(place, names))


def is_copied(path: str) -> bool:
    kind = os.lstat(path).st_mode
    return stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)


class Workplace:
    """A copy of the program's folder for one run, or for a run and its restart. The original stays as it is."""

    def __init__(self, program: Case):
        self.held = tempfile.TemporaryDirectory(prefix="clinic-", ignore_cleanup_errors=True)
        self.place = Path(self.held.name).resolve()
        self.program, self.copy = program, self.place / "copy" / program.folder.name
        copy_folder(program.folder, self.copy)
        if program.brought:
            shutil.copy(program.brought, self.copy / program.words[0])
        (self.place / "temporary").mkdir()
        self.observer, self.runs, self.stopped = observer(self.place), 0, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.held.cleanup()

    def run(self, role: str, devices: int, *options: str) -> Observation:
        facts, began = self.new_facts(), time.monotonic()
        command = self.command(facts, devices, options)
        running = Running(lambda streams: self.started(command, streams))
        try:
            status = running.wait(self.program.limit)
        except KeyboardInterrupt:
            status, self.stopped = None, True
        finally:
            running.end()
        return self.observation(role, devices, facts, running.output, status, began)

    def new_facts(self) -> Path:
        self.runs += 1
        return self.place / f"facts-{self.runs}.jsonl"

    def observation(self, role, devices, facts: Path, output: str, status, began) -> Observation:
        found = tuple(self.as_original(each) for each in read_facts(facts))
        if not found and not self.stopped and status is not None:
            last = (output.strip().splitlines() or ["no output"])[-1]
            raise UserError(f"The observer cannot start in {self.program.python!r}: {last}")
        ended = next((each["how"] for each in found[::-1] if each["fact"] == "ended"), "killed")
        ended = "stopped" if self.stopped else "hangs" if status is None else ended
        seconds = time.monotonic() - began
        keras = self.program.keras
        return Observation(
            role, devices, found, keras, -1 if status is None else status, ended, output, seconds
        )

    def command(self, facts: Path, devices: int, options) -> list[str]:
        own = ["--facts", str(facts), "--devices", str(devices), *options]
        own += ["--steps", str(self.program.steps)] if self.program.steps else []
        own += [word for each in self.program.libraries for word in ("--library", each)]
        observer = ["-m", OBSERVER] if self.program.warm else [str(self.observer)]
        return [self.program.python, *observer, *own, "--", *self.program.words]

    def environment(self) -> dict:
        given = {word: value for word, value in os.environ.items() if word != "TF_CONFIG"} | {
            "TMPDIR": str(self.place / "temporary"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CUDA_VISIBLE_DEVICES": "-1",  # what is compared are CPU devices, wherever this runs
        }
        if self.program.libraries or self.program.warm:
            own = () if self.program.libraries else (given.get("PYTHONPATH", ""),)
            places = (str(self.observer), *self.program.libraries, *own)
            given["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        if self.program.keras:
            given["TF_USE_LEGACY_KERAS"] = "1" if self.program.keras == 2 else "0"
        usual = {"PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "2"}
        return usual | given

    def started(self, command: list[str], streams: tuple, given: dict = NOTHING_MORE):
        """Forked from a process that has TensorFlow imported, where the program is one of the clinic's own."""
        environment = self.environment() | given
        return python_process.start(
            command, environment, str(self.copy), streams, self.program.warm
        )

    def as_original(self, fact):
        """Facts speak of the copy; the reader's files are where they were."""
        if isinstance(fact, str):
            if self.program.brought:
                fact = fact.replace(
                    str(self.copy / self.program.words[0]), str(self.program.brought)
                )
            return fact.replace(str(self.copy) + os.sep, str(self.program.folder) + os.sep)
        if isinstance(fact, dict):
            return {key: self.as_original(value) for key, value in fact.items()}
        if isinstance(fact, list):
            return [self.as_original(each) for each in fact]
        return fact
