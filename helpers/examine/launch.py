"""Runs the program in its own interpreter and a copy of its folder, watched by the observer, and reads what it saw."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.files import HELPERS
from ..base.refusals import Refused
from ..processes import warm
from .facts import Observation, read_facts

PACKAGE = "strategy_clinic_observer"  # what the observer is called in the program's process
# What comes along, as it lies in the clinic: the observer, and what describes a TPU.
OBSERVER_MODULES = (
    "base/privates.py",
    "base/refusals.py",
    "switches/runtime.py",
    "switches/program.py",
    "switches/tpu.py",
    "examine/notes.py",
    "examine/hooks.py",
    "examine/observe.py",
    "examine/observe_variables.py",
    "examine/observe_training.py",
    "examine/observe_tracing.py",
    "examine/observe_files.py",
    "examine/observe_keras.py",
    "examine/observe_tpu.py",
)
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "venv", "__pycache__", "node_modules", ".tox")
LARGEST_FOLDER = 2 << 30  # bytes of a folder that is copied for every run
MOST_OUTPUT = 1 << 20  # bytes of output that are kept: its end
OUTPUT_GRACE = 5  # seconds for the output of a process that has ended


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

    @property
    def name(self) -> str:
        return " ".join(self.words)

    def but(self, **changes) -> "Case":
        return replace(self, **changes)


def require_program(program: Case) -> Case:
    """Refuses, in one sentence, what cannot be run at all."""
    first = program.words[0]
    if first == "-m":
        if len(program.words) < 2:
            raise Refused("-m needs the name of a module, such as: clinic examine -m package.train")
    elif not (program.folder / first).is_file():
        raise Refused(f"There is no file {first!r} in {str(program.folder)!r} to examine.")
    if program.keras not in (None, 2, 3):
        raise Refused(f"keras = {program.keras!r} is not known here; valid: 2, 3.")
    require_tensorflow(program)
    require_small(program.folder)
    return program


def require_tensorflow(program: Case):
    code = "import importlib.util as u; raise SystemExit(u.find_spec('tensorflow') is None)"
    try:
        done = subprocess.run([program.python, "-I", "-c", code], capture_output=True)
    except OSError as error:
        raise Refused(
            f"{program.python!r} cannot be run ({error.strerror}): give another --python."
        ) from None
    if done.returncode:
        raise Refused(
            f"{program.python!r} has no TensorFlow: give the one that the program uses as --python."
        )


def require_small(folder: Path):
    size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in NOT_COPIED(place, folders)]
        size += sum(os.lstat(os.path.join(place, name)).st_size for name in names)
        if size > LARGEST_FOLDER:
            raise Refused(
                f"{str(folder)!r} holds more than {LARGEST_FOLDER >> 30} GiB, and is copied for every run: "
                "examine the program in a folder with only what it needs."
            )


def observer(folder: Path) -> Path:
    """The observer as one file, which needs nothing but Python's own modules and TensorFlow."""
    made, begin = (
        folder / "observer.pyz",
        f"from {PACKAGE}.examine import observe\n\nobserve.main()\n",
    )
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("__main__.py", begin)
        file.writestr(f"{PACKAGE}/__main__.py", begin)
        for room in ("", "base/", "switches/", "examine/"):
            file.writestr(f"{PACKAGE}/{room}__init__.py", "")
        for name in OBSERVER_MODULES:
            file.write(HELPERS / name, f"{PACKAGE}/{name}")
    return made


class Workplace:
    """A copy of the program's folder for one run, or for a run and its restart. The original stays as it is."""

    def __init__(self, program: Case):
        self.held = tempfile.TemporaryDirectory(prefix="clinic-", ignore_cleanup_errors=True)
        self.place = Path(self.held.name).resolve()
        self.program, self.copy = program, self.place / program.folder.name
        shutil.copytree(program.folder, self.copy, symlinks=True, ignore=NOT_COPIED)
        (self.place / "temporary").mkdir()
        self.observer, self.runs, self.stopped = observer(self.place), 0, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.held.cleanup()

    def run(self, role: str, devices: int, *options: str) -> Observation:
        self.runs += 1
        facts = self.place / f"facts-{self.runs}.jsonl"
        began = time.monotonic()
        status, output = self.process(self.command(facts, devices, options))
        found = tuple(self.as_original(each) for each in read_facts(facts))
        if not found and not self.stopped and status is not None:
            last = (output.strip().splitlines() or ["no output"])[-1]
            raise Refused(f"The observer cannot start in {self.program.python!r}: {last}")
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
        observer = ["-m", PACKAGE] if self.program.warm else [str(self.observer)]
        return [self.program.python, *observer, *own, "--", *self.program.words]

    def environment(self) -> dict:
        given = dict(os.environ) | {
            "TMPDIR": str(self.place / "temporary"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if self.program.libraries:
            places = (str(self.observer), *self.program.libraries)
            given["PYTHONPATH"] = os.pathsep.join(places)
        if self.program.keras:
            given["TF_USE_LEGACY_KERAS"] = "1" if self.program.keras == 2 else "0"
        usual = {"PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "2"}
        return usual | given

    def process(self, command: list[str]) -> tuple[int | None, str]:
        """Its exit status, none if it took too long, and the end of what it said."""
        reading, writing = os.pipe()
        with open(os.devnull) as nothing, open(reading, "rb") as stream:
            process = self.started(command, (nothing.fileno(), writing, writing))
            os.close(writing)
            said = bytearray()
            reader = threading.Thread(target=keep_end, args=(stream, said), daemon=True)
            reader.start()
            try:
                status = process.wait(self.program.limit)
            except subprocess.TimeoutExpired:
                status = None
            except KeyboardInterrupt:
                status, self.stopped = None, True
            finally:
                end_group(process)
            reader.join(OUTPUT_GRACE)
        return status, said.decode(errors="replace")

    def started(self, command: list[str], streams: tuple):
        """Forked from a process that has TensorFlow imported, where the program is one of the clinic's own."""
        if self.program.warm:
            return warm.fork(
                self.program.warm, command, self.environment(), str(self.copy), streams
            )
        given = dict(zip(("stdin", "stdout", "stderr"), streams))
        environment = self.environment()
        return subprocess.Popen(
            command, cwd=self.copy, env=environment, start_new_session=True, **given
        )

    def as_original(self, fact):
        """Facts speak of the copy; the reader's files are where they were."""
        if isinstance(fact, str):
            return fact.replace(str(self.copy) + os.sep, str(self.program.folder) + os.sep)
        if isinstance(fact, dict):
            return {key: self.as_original(value) for key, value in fact.items()}
        if isinstance(fact, list):
            return [self.as_original(each) for each in fact]
        return fact


def keep_end(stream, said: bytearray):
    for chunk in iter(lambda: stream.read1(1 << 16), b""):
        said += chunk
        del said[:-MOST_OUTPUT]


def end_group(process):
    """The process with whatever it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
