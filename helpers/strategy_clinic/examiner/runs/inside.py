"""Runs a program on several devices, and on one with the same examples, and records what its replicas hold."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ...base import files
from ...inside.message import words_of
from ...inside.record import IN_A_STEP, TOGETHER, Seen, read_record, record_file
from ...inside.tables import Tables, tables_of
from ...observer.events import ExceptionRaised, Outcome, StrategyMade
from ..cells import Line, lines_of
from ..findings import Location, counted
from ..recording import Recording, Role, observer_failures, stack_of
from .cluster import ELSEWHERE, is_elsewhere, own_tasks, requested_cluster, run_tasks
from .process import RunningProcess
from .program_spec import ProgramSpec
from .sandbox import Sandbox

USUAL_DEVICES, USUAL_STEPS = 2, 6
MOST_STEPS = 60  # that are watched, where runs are known to part later
WORKERS = "multi_worker"  # the strategy whose processes have a part of the replicas each
# What is not seen, in words that follow "Not seen:".
EMULATED = "a TPU: it is emulated, so the step was traced for a TPU and ran on CPU devices"
NOT_DISTRIBUTED = "a second replica: the program makes no strategy with several"
OTHER_PROCESSES = (
    "other processes: the program makes a strategy ({}) whose servers compute the step"
)
ENDS = {
    Outcome.EXITED: "exited with status {}",
    Outcome.KILLED: "was killed, with status {}",
    Outcome.HANGS: "had not ended when the time was over",
}
LONGEST_MESSAGE = 300  # letters of an exception


@dataclass(frozen=True)
class Watched:
    """The run of a program, in one process or in several workers: how each ended, and what the replicas held."""

    recordings: tuple[Recording, ...]
    seen: tuple[Seen, ...]
    is_cut: bool = False  # a failure has ended it in a step

    @property
    def replicas(self) -> int:
        return max(run.replicas for run in self.recordings)

    @property
    def workers(self) -> int:
        return sum(bool(run.task) for run in self.recordings) or 1


class InsideSandbox(Sandbox):
    """A sandbox in which programs run under this watch in place of the examiner's observer."""

    def __init__(self, program: ProgramSpec, steps: int = USUAL_STEPS):
        super().__init__(program)
        self.steps = steps
        self.seen: dict[Recording, tuple[Seen, ...]] = {}  # of each run that has ended

    def command(
        self, events: Path, devices: int, options: Sequence[str], is_forked: bool
    ) -> list[str]:
        python, *words = super().command(events, devices, options, is_forked)
        module = ["-m", "strategy_clinic.inside"]
        path = [str(self.packages / files.PACKAGE.name / "inside" / "__main__.py")]
        place = words.index("--events")
        own = module if is_forked else path
        return [python, *own, "--watched", str(self.steps), *words[place:]]

    def twin(self, name: str) -> "InsideSandbox":
        twin = super().twin(name)
        assert isinstance(twin, InsideSandbox)
        return twin

    def recording(
        self, running: RunningProcess, role: Role, devices: int, status: int | None, task: str = ""
    ) -> Recording:
        """Returns how a run has ended, and keeps what was seen of it."""
        recording = super().recording(running, role, devices, status, task)
        record = Path(record_file(str(running.events)))
        text = record.read_text() if record.exists() else ""
        self.seen[recording] = tuple(read_record(self.told(text)))
        return recording

    def watch(self, devices: int, options: Sequence[str] = ()) -> Watched:
        self.files.restore(self.files.initial)
        return self.watched([self.run(Role.SHOWN, devices, options)])

    def watch_workers(self) -> Watched:
        """Returns the run in as many processes as there are workers, of which each has one replica."""
        self.files.restore(self.files.initial)
        return self.watched(run_tasks(self, WORKERS, Role.SHOWN))

    def watched(self, recordings: Sequence[Recording]) -> Watched:
        """Returns a run; raises KeyboardInterrupt if it was stopped."""
        if self.stopped:
            raise KeyboardInterrupt
        seen = [self.seen_by(worker, run) for worker, run in enumerate(recordings)]
        is_cut = any(map(self.ended_in_a_step, recordings))
        return Watched(tuple(recordings), tuple(each for part in seen for each in part), is_cut)

    def ended_in_a_step(self, run: Recording) -> bool:
        """Tells whether a failure has ended a run in a step. When it ends one worker, others are at another place."""
        if run.task:
            return run.outcome is Outcome.RAISED or run.outcome in ENDS
        return any(each.how == IN_A_STEP for each in self.seen[run])

    def seen_by(self, worker: int, run: Recording) -> Iterator[Seen]:
        """Yields what a worker has seen, with the number of its replica; what all hold together is told by the first."""
        for each in self.seen[run]:
            if each.replica != TOGETHER:
                yield replace(each, replica=each.replica + worker)
            elif not worker:
                yield each


def look_inside(
    program: ProgramSpec,
    devices: int = USUAL_DEVICES,
    steps: int = USUAL_STEPS,
    expected: int = 0,
    cluster: str = "",
) -> Tables:
    """Returns what each replica holds in the first steps; raises UserError if the program cannot be run."""
    sandbox = InsideSandbox(program.checked(), steps)
    with sandbox:
        return tables_in(sandbox, devices, expected, cluster)


def tables_in(sandbox: InsideSandbox, devices: int, expected: int = 0, cluster: str = "") -> Tables:
    """Returns what each replica holds; in the processes of a cluster, if the program is known to ask for one.

    The run on one device needs the number of replicas: if one is expected, both runs go on at once.
    """
    with run_on_one(sandbox, expected) as beside:
        several = watch_all(sandbox, devices, cluster)
        replicas, one = several.replicas, beside.result() if beside else None
    if one is None or replicas != expected:
        one = sandbox.watch(1, options_for(replicas))
    notes = [] if replicas > 1 else [NOT_DISTRIBUTED]
    notes += [*notes_on(several), *notes_on(one)]
    name, records = sandbox.program.name, (several.seen, one.seen)
    tables = tables_of(name, *records, replicas, notes, several.is_cut)
    ends = [*ends_of(several, sandbox), *ends_of(one, sandbox)]
    known = replace(tables, workers=several.workers, ends=tuple(dict.fromkeys(ends)))
    return with_source(known, sandbox)


def around_first(tables: Tables) -> Tables:
    """Returns as many steps as are usual: those that end with the one after the runs part, or the first ones."""
    last = tables.steps.index(tables.first[0]) + 2 if tables.first else 0
    end = min(max(USUAL_STEPS, last), len(tables.steps))
    return replace(tables, steps=tables.steps[max(0, end - USUAL_STEPS) : end])


def watch_all(sandbox: InsideSandbox, devices: int, cluster: str) -> Watched:
    """Returns the run on several devices; that of all workers, if the program alone asks for them."""
    if cluster != WORKERS:
        alone = sandbox.watch(devices)
        if requested_cluster(alone.recordings[0]) != WORKERS:
            return alone
        sandbox.own_tasks = own_tasks(alone.recordings[0], [*sandbox.program.arguments])
    return sandbox.watch_workers()


@contextmanager
def run_on_one(sandbox: InsideSandbox, replicas: int) -> Iterator[Future[Watched] | None]:
    """Starts the run on one device, in a copy of the folder of its own, if the number of replicas is known."""
    if not replicas:
        yield None
        return
    twin = sandbox.twin("one")
    try:
        with ThreadPoolExecutor(1) as pool:
            try:
                yield pool.submit(twin.watch, 1, options_for(replicas))
            except KeyboardInterrupt:
                if twin.running:
                    twin.running.kill()
                raise
    finally:
        twin.files.end()


def options_for(replicas: int) -> list[str]:
    return ["--replicas", str(replicas)] if replicas > 1 else []


def with_source(tables: Tables, sandbox: Sandbox) -> Tables:
    """Returns tables with the lines of the file in which the runs part, or else of the script."""
    program = sandbox.program
    if program.listing:
        code = tuple(line.code for line in program.listing.lines)
        places = tuple(map(name_of, program.listing.lines))
        return replace(tables, path=sandbox.script, source=code, places=places)
    path = Path(tables.place.path if tables.place else program.folder / program.arguments[0])
    lines = lines_of(files.source_text(path)) if path.is_file() else []
    return replace(tables, path=str(path), source=tuple(lines))


def name_of(line: Line) -> str:
    """Returns what the reader calls a line of a cell; nothing for one that is not the reader's."""
    return line.location if line.number else ""


def notes_on(run: Watched) -> Iterator[str]:
    """Yields sentences about what is not seen of a run."""
    made = [each for recording in run.recordings for each in recording.of(StrategyMade)]
    cluster = requested_cluster(run.recordings[0])
    if cluster and cluster != WORKERS:
        yield OTHER_PROCESSES.format(cluster)
    if is_elsewhere(run.recordings[0]):
        yield ELSEWHERE
    if any("TPU" in each.name for each in made):
        yield EMULATED
    yield from observer_failures([*run.recordings])


def ends_of(run: Watched, sandbox: Sandbox) -> Iterator[str]:
    """Yields how a run has failed, with the line of the program."""
    for recording in run.recordings:
        where = (
            f"as {recording.task}"
            if recording.task
            else f"on {counted(recording.devices, 'device')}"
        )
        if raised := recording.last(ExceptionRaised):
            place = sandbox.locate(Location(stack_of(raised)))
            yield f"{where} it ended with {message_of(raised)}" + (f" ({place})" if place else "")
        elif recording.outcome in ENDS:
            yield f"{where} it {ENDS[recording.outcome].format(recording.status)}"


def message_of(raised: ExceptionRaised) -> str:
    """Returns the name of an exception and what it says."""
    _, _, said = raised.traceback.rpartition(f"{raised.error}: ")
    words = words_of(said)[:LONGEST_MESSAGE].rstrip(".")
    return f"{raised.error}: {words}" if words else raised.error
