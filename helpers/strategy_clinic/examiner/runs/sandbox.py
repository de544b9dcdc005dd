"""Sandbox: a copy of the program's folder, in which the program runs in its own interpreter under an observer."""

import copy
import json
import logging
import os
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...base import files
from ...base.errors import UserError
from ...observer.events import Event, Frame, Outcome
from ...observer.stacks import read_steps
from ...processes import python_process
from ..findings import Location
from ..recording import ProcessStacks, Recording, Role, ThreadStack, read_events
from .children import (
    ended_of,
    joined,
    look_for_unobserved,
    processes_of_run,
    unobserved_in_words,
)
from .folder import PREFIX, WorkingCopy, copy_folder
from .process import RunningProcess
from .process_stacks import ENVIRONMENT, fatal_stacks, take_stacks
from .program_spec import ProgramSpec

logger = logging.getLogger(__name__)

# Runs whose counts are in no report.
UNREPORTED = Role.REPEATED, Role.CHANGED, Role.STOPPED, Role.AGAIN


class Sandbox:
    """The folder is copied once. Every run begins with it as the reader has it, or as a killed run has left it.

    Runs go on in it one after the other; what runs at the same time has a `twin`.
    """

    def __init__(self, program: ProgramSpec):
        self.temporary = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        self.place = Path(self.temporary.name).resolve()
        self.program, self.processes, self.stopped = program, 0, False
        self.running: RunningProcess | None = None  # the last one
        self.initial = self.place / "initial"
        copy_folder(program.folder, self.initial / "program")
        (self.initial / "temporary").mkdir()
        for name, text in program.edited:
            (self.initial / "program" / program.folder.name / name).write_text(text)
        self.script = ""  # of a program of cells
        if program.listing:
            script = self.initial / "program" / program.folder.name / program.listing.file_name
            script.write_text(program.listing.text)
            self.script = str(script)
        self.work_in(self.place)
        # Beside the observer's package is nothing else that the program's interpreter could import.
        self.packages = self.place / "packages"
        self.packages.mkdir()
        (self.packages / files.PACKAGE.name).symlink_to(files.PACKAGE)

    def work_in(self, place: Path) -> None:
        """Gives the runs a copy of the folder in this place, beside which their events are written."""
        place.mkdir(exist_ok=True)
        self.place, self.copy = place, WorkingCopy(place / "copy")
        self.folder = self.copy.root / "program" / self.program.folder.name
        self.originals = {
            self.folder: self.program.folder
        }  # since events have the paths of the copy
        if self.script:
            script = Path(self.script)
            self.originals = {self.folder / script.name: script} | self.originals

    def twin(self, name: str) -> "Sandbox":
        """Returns a sandbox for the same program in another copy of its folder, so that two runs can go on at once."""
        twin = copy.copy(self)
        twin.work_in(self.place / name)
        return twin

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.temporary.cleanup()

    def run(self, role: Role, devices: int, options: Sequence[str] = ()) -> Recording:
        """Runs the program in the folder as it is. Ctrl-C ends the run, and its outcome says so."""
        own = ["--uncounted"] if role in UNREPORTED else []
        running = self.running = self.start(devices, [*own, *options])
        try:
            status = running.wait(self.program.limit)
            if status is None:
                running.stacks = take_stacks(running)
        except KeyboardInterrupt:
            status, self.stopped = None, True
        finally:
            running.end()
        return self.recording(running, role, devices, status)

    def start(
        self, devices: int, options: Sequence[str], more: Mapping[str, str] | None = None
    ) -> RunningProcess:
        """Starts the program; a forked one has TensorFlow imported already."""
        self.processes += 1
        events = self.place / f"events-{self.processes}.jsonl"
        command = self.command(events, devices, options)
        environment = {**self.environment(), **(more or {})}
        folder, server = str(self.folder), self.program.fork_server
        logger.debug("process %d in %s: %s", self.processes, folder, shlex.join(command))
        running = RunningProcess(
            lambda streams: python_process.start(command, environment, folder, streams, server),
            events,
        )
        look_for_unobserved(running)
        return running

    def recording(
        self, running: RunningProcess, role: Role, devices: int, status: int | None, task: str = ""
    ) -> Recording:
        """Returns what an ended process has shown; its status is None if it had to be ended."""
        processes = processes_of_run(running.events, self.read)
        (events, raised, left_out), output = joined(processes), running.output
        logger.debug(
            "%s run on %d devices: status %s, %d events", role.value, devices, status, len(events)
        )
        if not events and not self.stopped and status is not None:
            last = (output.strip().splitlines() or ["no output"])[-1]
            raise UserError(f"The observer cannot start in {self.program.python!r}: {last}")
        ended = ended_of(processes, running.process.pid)
        outcome = ended.outcome if ended else Outcome.KILLED
        if raised and outcome is Outcome.FINISHED:
            outcome = Outcome.RAISED
        if self.stopped or status is None:
            outcome = Outcome.STOPPED if self.stopped else Outcome.HANGS
        return Recording(
            role,
            devices,
            events,
            self.program.keras,
            outcome,
            -1 if status is None else status,
            output,
            time.monotonic() - running.began,
            task,
            read_steps(str(running.events)),
            self.in_program(running.stacks or fatal_stacks(running)),
            unseen=(*left_out, *unobserved_in_words(running.unobserved.values())),
        )

    def in_program(self, stacks: tuple[ProcessStacks, ...]) -> tuple[ProcessStacks, ...]:
        """Returns stacks with the program's own lines, in which are the reader's paths."""
        return tuple(
            replace(
                each,
                threads=tuple(
                    ThreadStack(stack.lines, tuple(filter(None, map(self.own_frame, stack.lines))))
                    for stack in each.threads
                ),
            )
            for each in stacks
        )

    def own_frame(self, frame: Frame) -> Frame | None:
        """Returns a line of the program as its reader has it, None for a line of a library."""
        for copied, path in self.originals.items():
            if frame.path == str(copied) or frame.path.startswith(f"{copied}{os.sep}"):
                return frame._replace(path=f"{path}{frame.path[len(str(copied)) :]}")
        return frame if frame.path == self.program.arguments[0] else None

    def read(self, path: Path) -> tuple[Event, ...]:
        """Reads events, with the reader's own paths in them."""
        if path.exists():
            text = path.read_text(errors="replace")
            for copied, original in self.originals.items():
                text = text.replace(in_json(copied), in_json(original))
            path.write_text(text)
        return read_events(path)

    def locate(self, location: Location) -> Location:
        """Returns a line of the script that was made of cells as its reader has it; any other line as it is."""
        listing = self.program.listing
        return listing.locate(location) if listing and location.file == self.script else location

    def command(self, events: Path, devices: int, options: Sequence[str]) -> list[str]:
        program = self.program
        observer = [str(self.packages / files.PACKAGE.name / "observer" / "__main__.py")]
        if program.fork_server:
            observer = ["-m", "strategy_clinic.observer"]
        own = ["--events", str(events), "--devices", str(devices), "--seed", *options]
        own += ["--steps", str(program.steps)] if program.steps else []
        own += ["--hold"] if program.edited else []  # as much is compared as there is
        return [program.python, *observer, *own, "--", *program.arguments]

    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"} | {
            "TMPDIR": str(self.copy.root / "temporary"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CUDA_VISIBLE_DEVICES": "-1",  # what is compared are CPU devices, wherever this runs
        }
        places = [given.get("PYTHONPATH", "")]
        if self.program.fork_server:  # in whose processes the first becomes the program's folder
            places.insert(0, str(self.packages))
        if any(places):
            given["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        if self.program.keras:
            given["TF_USE_LEGACY_KERAS"] = "1" if self.program.keras == 2 else "0"
        usual = ENVIRONMENT | {
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "Agg",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        return usual | given


def in_json(path: Path) -> str:
    return json.dumps(str(path))[1:-1]
