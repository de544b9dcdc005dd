"""Runs a program on several devices, and on one with the same examples, and records what its replicas hold."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ...base import files
from ...inside.record import Seen, read_record, record_file
from ...inside.tables import Tables, tables_of
from ...observer.events import ExceptionRaised, Outcome, StrategyMade
from ..findings import counted
from ..recording import Recording, Role, observer_failures
from .cluster import requested_cluster
from .program_spec import ProgramSpec
from .sandbox import Sandbox, in_json

USUAL_DEVICES, USUAL_STEPS = 2, 6
EMULATED = "the TPU is emulated: its step was traced for a TPU and ran on CPU devices"
NOT_DISTRIBUTED = "it makes no strategy with several replicas, so there is one column"
WORKERS = "it makes a strategy of several workers ({}), whose processes are not looked into"
FAILED = "on {} it ended with {}: what it did before that is shown"


@dataclass(frozen=True)
class Watched:
    """One run: how it ended, and what its replicas held."""

    recording: Recording
    seen: tuple[Seen, ...]


class InsideSandbox(Sandbox):
    """A sandbox in which programs run under this watch in place of the examiner's observer."""

    def __init__(self, program: ProgramSpec, steps: int = USUAL_STEPS):
        super().__init__(program)
        self.steps = steps

    def command(self, events: Path, devices: int, options: Sequence[str]) -> list[str]:
        python, *words = super().command(events, devices, options)
        module = ["-m", "strategy_clinic.inside"]
        path = [str(self.packages / files.PACKAGE.name / "inside" / "__main__.py")]
        place = words.index("--events")
        own = module if self.program.fork_server else path
        return [python, *own, "--watched", str(self.steps), *words[place:]]

    def twin(self, name: str) -> "InsideSandbox":
        twin = super().twin(name)
        assert isinstance(twin, InsideSandbox)
        return twin

    def watch(self, devices: int, options: Sequence[str] = ()) -> Watched:
        recording = self.run(Role.WATCHED, devices, options)
        assert self.running is not None
        record = Path(record_file(str(self.running.events)))
        text = record.read_text() if record.exists() else ""
        for copied, original in self.originals.items():
            text = text.replace(in_json(copied), in_json(original))
        return Watched(recording, tuple(read_record(text)))


def look_inside(
    program: ProgramSpec,
    devices: int = USUAL_DEVICES,
    steps: int = USUAL_STEPS,
    expected: int = 0,
) -> Tables:
    """Returns what each replica holds in the first steps; raises UserError if the program cannot be run.

    The run on one device needs the number of replicas: if one is expected, both runs go on at once.
    """
    sandbox = InsideSandbox(program.checked(), steps)
    with sandbox:
        with run_on_one(sandbox, expected) as beside:
            several = sandbox.watch(devices)
            replicas, one = several.recording.replicas, beside.result() if beside else None
        if one is None or replicas != expected:
            sandbox.files.restore(sandbox.files.initial)
            one = sandbox.watch(1, options_for(replicas))
        notes = [] if replicas > 1 else [NOT_DISTRIBUTED]
        notes += [*notes_on(several), *notes_on(one)]
        tables = tables_of(program.name, several.seen, one.seen, replicas, notes)
        return with_source(tables, sandbox)


@contextmanager
def run_on_one(sandbox: InsideSandbox, replicas: int) -> Iterator[Future[Watched] | None]:
    """Starts the run on one device, in a copy of the folder of its own, if the number of replicas is known."""
    if not replicas:
        yield None
        return
    twin = sandbox.twin("one")
    twin.files.restore(twin.files.initial)
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(twin.watch, 1, options_for(replicas))
    twin.files.end()


def options_for(replicas: int) -> list[str]:
    return ["--replicas", str(replicas)] if replicas > 1 else []


def with_source(tables: Tables, sandbox: Sandbox) -> Tables:
    """Returns tables with the lines of the file in which the runs part, or else of the script."""
    program = sandbox.program
    if program.listing:
        return replace(tables, path=sandbox.script, source=tuple(program.listing.text.splitlines()))
    path = Path(tables.place.path if tables.place else program.folder / program.arguments[0])
    lines = files.source_text(path).splitlines() if path.is_file() else []
    return replace(tables, path=str(path), source=tuple(lines))


def notes_on(run: Watched) -> Iterator[str]:
    """Yields sentences about what is not seen of a run."""
    recording = run.recording
    cluster, raised = requested_cluster(recording), recording.last(ExceptionRaised)
    if cluster:
        yield WORKERS.format(cluster)
    if any("TPU" in made.name for made in recording.of(StrategyMade)):
        yield EMULATED
    if recording.outcome not in (Outcome.FINISHED, Outcome.STOPPED):
        end = raised.error if raised else recording.outcome.value
        yield FAILED.format(counted(recording.devices, "device"), end)
    yield from observer_failures([recording])
