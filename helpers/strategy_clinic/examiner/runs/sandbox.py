"""Sandbox: the program runs in it, in its own interpreter under an observer, and changes nothing outside of it."""

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
from ...observer.context import SEED
from ...observer.events import Event, Frame, Outcome
from ...observer.stacks import read_steps
from ...processes import python_process
from ..edits import newline_of
from ..findings import Location
from ..recording import ProcessStacks, Recording, Role, ThreadStack, read_events
from .children import (
    ended_of,
    joined,
    look_for_unobserved,
    processes_of_run,
    unobserved_in_words,
)
from .first_run import FirstRun
from .folder import PREFIX
from .process import RunningProcess, processors
from .process_stacks import ENVIRONMENT, fatal_stacks, take_stacks
from .program_spec import ProgramSpec
from .workspace import workspace

logger = logging.getLogger(__name__)

OFF, ON = ("0", "false"), ("1", "true")  # for TensorFlow
LEGACY = "TF_USE_LEGACY_KERAS"
HASH_SEED = "PYTHONHASHSEED"  # which a forked process cannot choose
# Runs whose counts are in no report.
UNREPORTED = Role.REPEATED, Role.CHANGED, Role.STOPPED, Role.AGAIN


class Sandbox:
    """Every run begins with the files as the reader has them, or as a killed run has left them.

    Runs go on in it one after the other; what runs at the same time has a `twin`.
    """

    def __init__(self, program: ProgramSpec):
        self.temporary = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        self.place = Path(self.temporary.name).resolve()
        self.program, self.processes, self.stopped = program, 0, False
        self.added: dict[str, str] = {}  # to the environment of the program
        self.own_tasks: list[
            list[str]
        ] = []  # the arguments of each, if the program describes its cluster
        self.running: RunningProcess | None = None  # the last one
        self.first = FirstRun(program)
        self.share()
        self.files = workspace(program.folder, self.place)
        for name, text in program.edited:
            path, copied = program.folder / name, self.files.in_initial(name)
            copied.write_text(text, files.encoding_of(path), newline=newline_of(path))
        self.script = ""  # of a program of cells
        if program.listing:
            script = self.files.in_initial(program.listing.file_name)
            script.write_text(program.listing.text)
            self.script = str(script)

    def share(self) -> None:
        """Makes the folder for what runs share with this process: their events, and the observer.

        Beside the observer's package is nothing else that the program's interpreter could import.
        """
        self.shared = self.place / "shared"
        self.packages = self.shared / "packages"
        self.packages.mkdir(parents=True)
        (self.packages / files.PACKAGE.name).symlink_to(files.PACKAGE)

    @property
    def folder(self) -> Path:
        return self.files.folder

    @property
    def originals(self) -> dict[Path, Path]:
        """The paths that events have, with those that their reader knows."""
        script = Path(self.script)
        of_cells = {self.folder / script.name: script} if self.script else {}
        return of_cells | {self.folder: self.files.original}

    def twin(self, name: str) -> "Sandbox":
        """Returns a sandbox for the same program in another copy of its folder, so that two runs can go on at once."""
        twin = copy.copy(self)
        twin.place = self.place / name
        twin.share()
        twin.files = self.files.twin(twin.place)
        return twin

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.files.end()
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
            self.first.is_over |= running.events == self.first.events
        return self.recording(running, role, devices, status)

    def start(
        self,
        devices: int,
        options: Sequence[str],
        more: Mapping[str, str] | None = None,
        arguments: Sequence[str] | None = None,
    ) -> RunningProcess:
        """Starts the program, maybe with other arguments; a forked one has TensorFlow imported already."""
        self.processes += 1
        events = self.shared / f"events-{self.processes}.jsonl"
        environment = {**self.environment(), **(more or {})}
        folder, server = str(self.folder), self.program.fork_server
        if HASH_SEED in self.added:
            server = None
        elif self.first.events:
            server = server or self.first.server(environment)
        else:
            self.first.begin(events, environment, processors() > 1)
        command = self.command(events, devices, options, bool(server))
        if arguments:
            command[-len(self.program.arguments) :] = arguments
        if server:  # in whose processes the first place becomes the program's folder
            paths = (str(self.packages), environment.get("PYTHONPATH"))
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
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
            self.program.keras or (2 if os.environ.get(LEGACY, "").lower() in ON else None),
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
            path.write_text(self.told(path.read_text(errors="replace")))
        return read_events(path)

    def told(self, text: str) -> str:
        """Returns JSON of a run with the reader's own paths in it."""
        for seen, original in self.originals.items():
            text = text.replace(in_json(seen), in_json(original))
        return text

    def locate(self, location: Location) -> Location:
        """Returns a line of the script that was made of cells as its reader has it; any other line as it is."""
        listing = self.program.listing
        return listing.locate(location) if listing and location.file == self.script else location

    def command(
        self, events: Path, devices: int, options: Sequence[str], is_forked: bool
    ) -> list[str]:
        program = self.program
        observer = [str(self.packages / files.PACKAGE.name / "observer" / "__main__.py")]
        if is_forked:
            observer = ["-m", "strategy_clinic.observer"]
        own = ["--events", str(events), "--devices", str(devices), "--seed", str(SEED), *options]
        own += self.files.options
        own += ["--steps", str(program.steps)] if program.steps else []
        own += ["--hold"] if program.edited else []  # as much is compared as there is
        return [program.python, *observer, *own, "--", *program.arguments]

    def has(self, switch: str) -> bool:
        """Tells whether a part of TensorFlow is on that a variable switches; a forked process has imported it already."""
        return not self.program.fork_server and self.environment().get(switch) not in OFF

    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"} | {
            "PYTHONDONTWRITEBYTECODE": "1",
            "CUDA_VISIBLE_DEVICES": "-1",  # what is compared are CPU devices, wherever this runs
            **self.files.environment,
            **self.added,
        }
        if self.program.keras:
            given[LEGACY] = "1" if self.program.keras == 2 else "0"
        usual = ENVIRONMENT | {
            HASH_SEED: "0",
            "MPLBACKEND": "Agg",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        return usual | given


def in_json(path: Path) -> str:
    return json.dumps(str(path))[1:-1]
