"""Plans an examination: which runs are made, which of them are compared, and what is said of those that failed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ...base.errors import UserError
from ...inside.tables import Tables
from ...observer.context import SEED
from ...observer.events import BatchTaken, ExceptionRaised, Outcome
from ...observer.replacements import Replacement
from ...programs.error_text import useful_line
from ...triage import classify
from ..cells import location_in_file
from ..counts import counts_of
from ..divergence import Divergence, Point, first_divergence, unstable_points
from ..engine import NOT_REPEATED, Diagnosis, diagnose, known_so_far, mode_of
from ..findings import (
    BeginWith,
    Change,
    Evidence,
    Examination,
    Finding,
    FollowUp,
    GiveValue,
    Location,
    OnDevices,
    OtherHashes,
    OtherLaterSeeds,
    OtherSeed,
    Replace,
    ResetVariable,
    RunMade,
    ShowMeans,
    Text,
    counted,
)
from ..hangs import abrupt_end, children_in_words, ended_at, is_aborted
from ..moments import (
    has_late_file,
    later_moment,
    means_to_go_on,
    moments_of,
    saves_of,
    usual_moment,
)
from ..recording import OBSERVER_FAILED, Moment, Recording, Role, observer_failures, stack_of
from ..restarts import RESTART, begins_from_zero, fails_in_gap, missing_file
from ..rule import Runs, mode_rules
from ..whose_fault import is_matchable
from .cluster import ELSEWHERE, is_elsewhere, own_tasks, requested_cluster, run_tasks
from .inside import MOST_STEPS, USUAL_DEVICES, USUAL_STEPS, InsideSandbox, around_first, tables_in
from .program_spec import ProgramSpec
from .progress import FindingKnown, Reporter, RunEnded, RunStarted, ignore
from .refused import held_children, require_no_refusal
from .sandbox import HASH_SEED, Sandbox
from .side_by_side import RunBeside, most_beside, runs_beside

USUAL_COUNTS = (1, 2)
MOST_DEVICES = 8
EXAMINED = (Role.WATCHED, Role.COMPARED, Role.TASK)  # other runs only show something about these
MOST_PROCESSES = 5  # that were not examined, and are named
CLUSTERS = {
    "multi_worker": "MultiWorkerMirroredStrategy",
    "parameter_server": "ParameterServerStrategy",
}
NOT_DISTRIBUTED = (
    "it makes no strategy with several replicas, so there are no devices to compare; what it saves, loads and trains was looked "
    "at, and not whether its loss, its data and its model are the right ones"
)
WELL = (Outcome.FINISHED, Outcome.STOPPED)
ONEDNN = (
    "TF_ENABLE_ONEDNN_OPTS"  # an environment variable that TensorFlow reads when it is imported
)
WITHOUT_ONEDNN = (
    f"it fails with oneDNN and finishes without, so it was examined without ({ONEDNN}=0)"
)

WITHDRAWN = "{} at {} was told before all runs were made, and the later ones do not show it"

NEVER_KILLED = {
    Moment.AFTER: "it saved nothing, so there was nothing to restart from",
    Moment.BETWEEN: "it ended before it could be killed between two saves",
    Moment.DURING: "it could not be killed during a save",
}


def examine(
    program: ProgramSpec,
    counts: Sequence[object] = USUAL_COUNTS,
    restart: bool | None = None,
    report: Reporter = ignore,
    show: bool = False,
) -> Examination:
    """Runs the program on each number of devices, and returns what its runs show. Ctrl-C ends it with what is known then.

    A program is also killed and started again: if `restart` is true, at several moments; if it is None, once, where the
    program looked for what it saves before it saved anything. If `show` is true, two more runs, which end after some steps,
    show what each replica holds.
    Raises UserError if the program cannot be run, or if a number of devices is none.
    """
    devices = {count for count in counts if isinstance(count, int) and 1 <= count <= MOST_DEVICES}
    if not devices or len(devices) < len(set(counts)):
        raise UserError(
            f"devices = {list(counts)!r} is not known here; valid: whole numbers from 1 to {MOST_DEVICES}."
        )
    with Sandbox(program.checked()) as sandbox:
        plan = Plan(sandbox, report)
        plan.make_runs(sorted(devices), restart)
        runs = Runs(plan.recordings, plan.divergences, plan.again)
        diagnosis = diagnose(runs, None if plan.stopped else plan.follow_up, tell=plan.tell)
        tables = plan.look_inside(diagnosis) if show else None
        return replace(plan.result(diagnosis), tables=tables)


class Plan:
    """The runs of one examination, in the order in which they are made."""

    def __init__(self, sandbox: Sandbox, report: Reporter = ignore):
        self.sandbox, self.report = sandbox, report
        self.cluster = ""  # the strategy of several processes that the program makes
        self.recordings: list[Recording] = []
        self.again: list[Recording] = []  # of a program that had ended before
        self.divergences: list[Divergence] = []
        self.notes: list[str] = []
        self.unseen: list[str] = []
        self.made: list[tuple[str, Recording]] = []  # all runs, in words
        self.discarded: set[Recording] = set()
        self.repetitions: dict[Recording, Recording] = {}
        self.beside: set[Recording] = set()  # that went on while another run did
        self.left: dict[Recording, Path] = {}  # the folder in which a program was started again
        self.options: dict[Recording, tuple[str, ...]] = {}  # of a matched run
        self.told: dict[tuple[str, str, int, int], Finding] = {}  # while runs were made
        self.stopped = False

    def make_runs(self, counts: list[int], restart: bool | None) -> None:
        """Makes the runs on each number of devices, and restarts: asked for, or where the program means to go on."""
        try:
            self.compare_devices(counts)
            self.tell_what_is_known()
            first = max(self.recordings, key=lambda run: run.devices)
            if restart:
                self.restart(first, moments_of(first))
                self.start_again(first)
            elif restart is None and first.finished and not first.task and means_to_go_on(first):
                self.restart(first, usual_moment(first))
                if any(run.moment is Moment.AFTER and missing_file(run) for run in self.left):
                    self.restart_later(first)
                if any(begins_from_zero(run, first) for run in self.left):
                    self.start_again(first)
        except KeyboardInterrupt:
            self.stopped = True

    def compare_devices(self, counts: list[int]) -> None:
        """Compares runs on several numbers of devices. What may be wrong because two runs went on at once is made again."""
        first, others = self.run_on_devices(counts, most_beside())
        if others is None:
            self.discarded.update(self.recordings)
            self.recordings.clear()
            first, others = self.run_on_devices(counts, 0)
        if self.cluster:
            self.compare_processes(first)
        elif others:
            self.compare(first, [self.matched(first, each) for each in others if each.finished])
        elif first.finished and first.replicas <= 1 and not first.unseen:
            self.notes.append(NOT_DISTRIBUTED)

    def run_on_devices(
        self, counts: list[int], most: int
    ) -> tuple[Recording, list[Recording] | None]:
        """Runs on the largest number first, since most failures show there, and on the others if they can be compared.

        Up to `most` of the others go on beside the first run, from when this makes several replicas. Without others, None says
        that they may be why it failed.
        """
        *fewer, largest = counts
        with self.runs_beside(Role.COMPARED, fewer, most) as beside:
            first = self.run(Role.WATCHED, largest)
            # A run that had not begun when the first one failed does not begin beside a later one.
            is_alone = not first.finished and all([run.cancel() for run in beside.values()])
            if is_alone and self.sandbox.has(ONEDNN) and may_fail_by_onednn(first):
                first = self.without_onednn(first)
            self.cluster = requested_cluster(first)
            self.unseen += [ELSEWHERE] if is_elsewhere(first) else []
            self.sandbox.own_tasks = own_tasks(first, [*self.sandbox.program.arguments])
            if not self.cluster and first.finished and first.replicas > 1:
                self.tell_what_is_known()
                done = self.wait_for(Role.COMPARED, beside)
            else:
                is_clear = self.cluster or first.finished or is_alone
                return first, [] if is_clear or is_error_of_a_mode(first) else None
        return first, [self.other_run(Role.COMPARED, count, done) for count in fewer]

    def without_onednn(self, failed: Recording) -> Recording:
        """Returns the run without oneDNN if that finishes, and makes the later ones without it, too; else the failed run."""
        self.sandbox.added = {ONEDNN: "0"}
        words = f"on {counted(failed.devices, 'device')} (without oneDNN)"
        run = self.run(failed.role, failed.devices, words=words)
        kept = replace(run, with_onednn=failed) if run.finished else failed
        self.recordings[:] = [kept]
        if run.finished:
            self.notes.append(WITHOUT_ONEDNN)
        else:
            self.sandbox.added = {}
            self.discarded.add(run)
        return kept

    @contextmanager
    def runs_beside(
        self, role: Role, counts: Sequence[int], most: int
    ) -> Iterator[dict[int, RunBeside]]:
        """Makes runs beside others. They are discarded until one of them is taken."""
        beside: dict[int, RunBeside] = {}
        try:
            with runs_beside(self.sandbox, role, counts, most) as beside:
                yield beside
        finally:
            for devices, run in beside.items():
                if run.result:
                    self.made.append((description(role, devices, ""), run.result))
                    self.discarded.add(run.result)

    def wait_for(self, role: Role, beside: dict[int, RunBeside]) -> dict[int, Recording]:
        """Returns by number of devices the runs that have finished beside a first one."""
        done: dict[int, Recording] = {}
        for devices, run in beside.items():
            self.report(RunStarted(description(role, devices, "")))
            if recording := run.recording():
                self.report(RunEnded(recording.task, recording.outcome, recording.seconds))
                done[devices] = recording
        return done

    def other_run(self, role: Role, devices: int, done: dict[int, Recording]) -> Recording:
        """Returns the run on another number of devices, which went on beside a first one, or is made now."""
        recording = done.get(devices)
        if recording is None:
            return self.run(role, devices)
        self.beside.add(recording)
        self.discarded.discard(recording)
        if role in EXAMINED:
            self.recordings.append(recording)
        return recording

    def matched(self, first: Recording, other: Recording) -> Recording:
        """Returns the run on fewer devices with the batches of the first, if it has others by the program's own choice.

        Where nobody has seen the batches and both come to the same values, they were the same.
        """
        is_seen = first.examples and other.examples
        if not is_matchable(first, other) or not (is_seen or first_divergence(other, first)):
            return other
        words = f"on {counted(other.devices, 'device')} (with the batches of {counted(first.replicas, 'replica')})"
        options = options_of(OnDevices(other.devices, first.replicas))
        run = self.run(Role.MATCHED, other.devices, *options, words=words)
        if not run.finished:
            self.unseen.append(not_compared(run, words))
            return other
        matched = replace(run, plain=other)
        self.options[matched] = options
        self.recordings.append(matched)
        return other if is_matchable(first, matched) else matched

    def tell_what_is_known(self) -> None:
        """Reports what the runs that were made so far show by themselves."""
        for finding in known_so_far(Runs(self.recordings, self.divergences)):
            self.tell(finding)

    def tell(self, finding: Finding) -> None:
        """Reports a finding, once."""
        located = finding.relocated(self.sandbox.locate)
        if self.told.setdefault(place_of(located), located) is located:
            self.report(FindingKnown(located))

    def compare_processes(self, alone: Recording) -> None:
        """Runs the tasks of a cluster instead of the program alone, and compares several workers with one."""
        self.recordings.clear()
        first = self.run(Role.TASK, 1, cluster=self.cluster)
        finished = all(run.finished for run in (alone, *self.recordings))
        # A program that describes its cluster cannot run alone.
        if finished and self.cluster != "parameter_server" and not self.sandbox.own_tasks:
            one = self.run(Role.COMPARED, 1) if alone.devices > 1 else alone
            self.compare(first, [one])

    def compare(self, run: Recording, others: list[Recording]) -> None:
        """Keeps where the others differ from a run, if that repeats itself."""
        differing = [other for other in others if first_divergence(other, run)]
        unstable = self.unstable_points(run, differing) if differing else frozenset()
        if unstable is not None:
            found = [first_divergence(other, run, unstable) for other in differing]
            self.divergences = [divergence for divergence in found if divergence]
        if differing and not self.divergences:
            self.unseen.append(NOT_REPEATED)

    def unstable_points(
        self, run: Recording, differing: list[Recording]
    ) -> frozenset[Point] | None:
        """Returns where runs on several counts do not repeat themselves; None if nothing of them can be compared."""
        others = [each for each in differing if each in self.beside]
        counts = [other.devices for other in others]
        most = most_beside() if counts else 0
        with self.runs_beside(Role.REPEATED, counts, most) as beside:
            found = [unstable_points(run, self.follow_up(FollowUp(run, None, "")))]
            if found[0] is None:
                return None
            done = self.wait_for(Role.REPEATED, beside)
        for other in others:
            self.repetitions[other] = self.other_run(Role.REPEATED, other.devices, done)
            found.append(unstable_points(other, self.repetitions[other]))
        known = [points for points in found if points is not None]
        return frozenset[Point]().union(*known) if len(known) == len(found) else None

    def restart(self, first: Recording, moments: Mapping[Moment, Sequence[str]]) -> None:
        """Kills the program at each moment, and starts it again in the folder that it has left."""
        if not first.task and not saves_of(first):
            moments = {}
            self.notes.append(NEVER_KILLED[Moment.AFTER])
        for moment, options in moments.items():
            words = f"on {counted(first.devices, 'device')} (killed {moment.value})"
            stopped = self.run_again(first, Role.STOPPED, *options, words=words)
            if stopped.outcome is not Outcome.KILLED:
                self.notes.append(NEVER_KILLED[moment])
                continue
            left = self.sandbox.place / f"left-{moment.name}"
            self.sandbox.files.store(left)
            run = self.run_again(first, Role.RESTARTED, stored=left)
            restarted = replace(run, before=stopped, moment=moment, whole=first)
            self.left[restarted] = left
            self.recordings.append(restarted)

    def restart_later(self, first: Recording) -> None:
        """Makes a restart from a later moment, which tells of a failure from an earlier one, and only if it ends well."""
        known = len(self.recordings)
        self.restart(first, later_moment(first))
        self.recordings[known:] = [run for run in self.recordings[known:] if run.finished]

    def start_again(self, first: Recording) -> None:
        """Starts the program again after a whole run, if no killed run leaves all the files that it looks for."""
        if first.task or not first.finished or not has_late_file(first):
            return
        ended = self.run_again(first, Role.REPEATED)
        if not ended.finished:
            return
        left = self.sandbox.place / "left-ENDED"
        self.sandbox.files.store(left)
        words = f"on {counted(first.devices, 'device')} (started again after it had ended)"
        run = self.run_again(first, Role.AGAIN, stored=left, words=words)
        if run.finished:
            again = replace(run, before=ended, whole=first)
            self.left[again] = left
            self.again.append(again)

    def follow_up(self, follow_up: FollowUp) -> Recording:
        """Makes a run that a rule asks for; raises KeyboardInterrupt if it was stopped."""
        first, change = follow_up.recording, follow_up.change
        if change:
            devices = change.devices if isinstance(change, OnDevices) else 0
            options, words = options_of(change), follow_up.words
            with self.environment_of(change):
                return self.run_again(first, Role.CHANGED, *options, words=words, devices=devices)
        if first not in self.repetitions:
            self.repetitions[first] = self.run_again(first, Role.REPEATED)
        return self.repetitions[first]

    @contextmanager
    def environment_of(self, change: Change) -> Iterator[None]:
        """Makes a run with oneDNN, or with other hashes, if a change asks for it."""
        added = self.sandbox.added
        if isinstance(change, Replace) and change.onednn:
            self.sandbox.added = {}
        if isinstance(change, OtherHashes):
            self.sandbox.added = {**added, HASH_SEED: "1"}
        try:
            yield
        finally:
            self.sandbox.added = added

    def run_again(
        self,
        first: Recording,
        role: Role,
        *options: str,
        words: str = "",
        stored: Path | None = None,
        devices: int = 0,
    ) -> Recording:
        """Runs the program as another run did: alone or in a cluster, from the same state of its folder."""
        devices = devices or first.devices
        cluster, stored = self.cluster if first.task else "", stored or self.left.get(first)
        options = (*self.options.get(first, ()), *options)
        return self.run(role, devices, *options, cluster=cluster, stored=stored, words=words)

    def run(
        self,
        role: Role,
        devices: int,
        *options: str,
        cluster: str = "",
        stored: Path | None = None,
        words: str = "",
    ) -> Recording:
        """Runs the program alone, or as all tasks of a cluster; returns what it, or the first task, has shown.

        The folder is as the reader has it, or as a killed run has left it. Raises KeyboardInterrupt after Ctrl-C.
        """
        sandbox = self.sandbox
        words = words or description(role, devices, cluster)
        self.report(RunStarted(words))
        sandbox.files.restore(stored or sandbox.files.initial)
        recordings = (
            run_tasks(sandbox, cluster, role, options)
            if cluster
            else [sandbox.run(role, devices, options)]
        )
        for recording in recordings:
            require_no_refusal(recording, sandbox.files, self.told_from_program)
            self.report(RunEnded(recording.task, recording.outcome, recording.seconds))
            self.made.append((words, recording))
        if role in EXAMINED:
            self.recordings += recordings
        if sandbox.stopped:
            raise KeyboardInterrupt
        return recordings[0]

    def look_inside(self, diagnosis: Diagnosis) -> Tables | None:
        """Returns what each replica holds around the step in which the runs part; None if the examination was stopped."""
        if self.stopped or diagnosis.stopped:
            return None
        inside = InsideSandbox(self.sandbox.program, steps_until(self.divergences))
        inside.added, inside.first = self.sandbox.added, self.sandbox.first
        with inside:
            try:
                return self.looked(inside, max(self.recordings[0].devices, USUAL_DEVICES))
            except KeyboardInterrupt:
                self.stopped = True
                return None
            finally:
                self.made += [(shown_in_words(run, self.cluster), run) for run in inside.seen]

    def looked(self, inside: InsideSandbox, devices: int) -> Tables:
        """Returns what each replica holds; the run on one device goes on beside the other, if there is room."""
        self.report(RunStarted(f"on {counted(devices, 'device')} and on 1 ({Role.SHOWN.value})"))
        expected = 0 if self.cluster or not most_beside() else self.recordings[0].replicas
        tables = tables_in(inside, devices, expected, self.cluster)
        for run in inside.seen:
            self.report(RunEnded(run.task, run.outcome, run.seconds))
        return around_first(tables)

    # The result

    def told_from_program(self, location: Location) -> Location:
        """Returns a location as a sentence about the program tells it."""
        return self.sandbox.locate(location).seen_from(self.sandbox.program.file)

    def result(self, diagnosis: Diagnosis) -> Examination:
        """Returns the examination, with lines as the reader of the program has them."""
        program, locate = self.sandbox.program, self.sandbox.locate
        failed = failed_run(self.recordings)
        if failed and any(explains(finding, failed) for finding in diagnosis.findings):
            failed = None
        stopped = self.stopped or diagnosis.stopped
        notes = ["stopped before all runs were made"] if stopped else []
        findings = [finding.relocated(locate) for finding in diagnosis.findings]

        told = self.told_from_program
        withdrawn = self.told.keys() - {*map(place_of, findings)}
        notes += [WITHDRAWN.format(each[0], place_told(*each[1:])) for each in sorted(withdrawn)]
        notes += [
            *self.notes,
            *in_words(diagnosis.notes, told),
            *(program.listing.notes if program.listing else ()),
        ]
        used = [recording for _, recording in self.made if recording not in self.discarded]
        unseen = [*self.unseen, *diagnosis.unseen, *uncompared(self.recordings)]
        unseen += [*held_children(used), *unseen_processes(used)]
        unseen += [*map(OBSERVER_FAILED.format, observer_failures(used))]
        return Examination(
            program.name,
            self.recordings,
            findings,
            list(dict.fromkeys(notes)),
            list(dict.fromkeys(unseen)),
            ending(failed) if failed else "",
            locate(failed_at(failed, self.sandbox.script)) if failed else Location(),
            stopped,
            counts=counts_of(self.recordings, told),
            runs=[run_made(*each, each[1] in self.discarded) for each in self.made],
            agreeing=in_words(diagnosis.agreeing, told),
        )


def in_words(sentences: Sequence[str | Text], told: Callable[[Location], Location]) -> list[str]:
    texts = [Text(each) if isinstance(each, str) else each for each in sentences]
    return [str(each.relocated(told)) for each in texts]


def place_of(finding: Finding) -> tuple[str, str, int, int]:
    return finding.mode, finding.file, finding.location.cell, finding.line


def place_told(file: str, cell: int, line: int) -> str:
    return location_in_file(file, cell, line) if cell else f"{file}:{line}"


def shown_in_words(run: Recording, cluster: str) -> str:
    return description(run.role, run.devices, cluster if run.task else "")


def steps_until(divergences: Sequence[Divergence]) -> int:
    """Returns how many steps are shown: the usual ones, or as many as it takes until runs differ."""
    late = [each.step or MOST_STEPS for each in divergences]
    return min(max([USUAL_STEPS, *(step + 1 for step in late)]), MOST_STEPS)


def description(role: Role, devices: int, cluster: str) -> str:
    where = (
        f"in several processes, as {CLUSTERS[cluster]} asks for"
        if cluster
        else f"on {counted(devices, 'device')}"
    )
    return where if role is Role.TASK else f"{where} ({role.value})"


def options_of(change: Change) -> tuple[str, ...]:
    """Returns the observer's options for a change to a run."""
    match change:
        case ResetVariable(number):
            return ("--reset", str(number))
        case GiveValue(source, target):
            return ("--give", f"{source}:{target}")
        case BeginWith(number, value):
            return ("--begin", f"{number}:{value}")
        case OnDevices(_, replicas, replacements):
            as_many = ("--replicas", str(replicas)) if replicas else ()
            return *as_many, *replacing(replacements)
        case OtherSeed():
            return ("--seed", str(SEED + 1))
        case OtherLaterSeeds():
            return ("--reseed",)
        case OtherHashes():
            return ()  # a variable of the environment asks for them
        case ShowMeans():
            return ("--tell",)
        case Replace(replacements, keras):
            return *replacing(replacements), "--keras", str(keras)


def replacing(replacements: Collection[Replacement]) -> tuple[str, ...]:
    names = ",".join(sorted(each.value for each in replacements))
    return ("--replace", names) if names else ()


# What is said of runs that ended badly, and of those that differ


def explains(finding: Finding, failed: Recording) -> bool:
    ended = ended_at(failed)
    last = finding.location.frames[-len(ended) or None :]
    hangs = failed.outcome is Outcome.HANGS and last == ended
    restarted = failed.role is Role.RESTARTED and finding.mode == RESTART
    return finding.evidence is Evidence.RAISED or hangs or restarted


def failed_runs(recordings: list[Recording]) -> list[Recording]:
    return [run for run in recordings if run.outcome not in WELL]


def is_error_of_a_mode(run: Recording) -> bool:
    """Tells whether a run ended with an exception that triage names: TensorFlow's own, which no other process causes."""
    raised = run.last(ExceptionRaised)
    if raised is None:
        return False
    return mode_of(run, raised, classify.triage(raised.traceback).mode, mode_rules()) is not None


def failed_run(recordings: list[Recording]) -> Recording | None:
    """Returns the run whose failure is reported.

    A program may count its devices, and refuse to run on fewer. What half a file does is a finding or a note of its own, as is a
    file that is written after a save.
    """
    failed = [
        run
        for run in failed_runs([each.with_onednn or each for each in recordings])
        if run.role is not Role.COMPARED and run.moment is not Moment.DURING
        if not fails_in_gap(run, recordings)
    ]
    # An exception comes first: what did not raise may have waited for what did.
    return min(failed, key=lambda run: run.outcome is not Outcome.RAISED, default=None)


def may_fail_by_onednn(run: Recording) -> bool:
    """Tells whether a run on several replicas failed as operations of oneDNN do for a part of a batch without examples.

    Some abort, and some return another shape, for which TensorFlow raises an error, or Keras one of its own.
    """
    if run.replicas <= 1 or run.outcome in WELL or is_error_of_a_mode(run):
        return False
    raised = run.last(ExceptionRaised)
    of_tensorflow = raised is not None and raised.error == "InvalidArgumentError"
    return is_aborted(run) or of_tensorflow or any(0 in each.sizes for each in run.of(BatchTaken))


def failed_at(run: Recording, script: str) -> Location:
    """Returns the innermost line of a program's exception; of a program of cells, the innermost that is in a cell."""
    raised = run.last(ExceptionRaised)
    stack = stack_of(raised) if raised else ended_at(run)
    in_cell = next((i for i, frame in enumerate(stack) if frame.path == script), 0)
    return Location(stack[in_cell:])


def uncompared(recordings: list[Recording]) -> list[str]:
    return [
        not_compared(run, f"on {counted(run.devices, 'device')}")
        for run in failed_runs(recordings)
        if run.role is Role.COMPARED
    ]


def not_compared(run: Recording, where: str) -> str:
    return f"{where} it {ending(run)}, so it was not compared there"


def unseen_processes(recordings: list[Recording]) -> list[str]:
    """Returns sentences about some of the processes that were not examined; a pool may have many."""
    found = list(dict.fromkeys(each for run in recordings for each in run.unseen))
    more = len(found) - MOST_PROCESSES
    return [
        *found[:MOST_PROCESSES],
        *([f"so it is with {more} other processes"] if more > 0 else []),
    ]


def run_made(words: str, run: Recording, discarded: bool) -> RunMade:
    return RunMade(
        words, run.role, run.devices, run.outcome, run.seconds, run.keras_used, run.task, discarded
    )


def error_in_words(raised: ExceptionRaised) -> str:
    """Returns the class of an error and what happened, without the arguments that Keras lists after it."""
    line = useful_line(raised.traceback)
    return line if raised.error in line.partition(":")[0] else f"{raised.error}: {line}"


def ending(run: Recording) -> str:
    raised = run.last(ExceptionRaised)
    if not raised and (end := abrupt_end(run)):
        return "; ".join([end, *children_in_words(run)])
    lines = run.output.strip().splitlines()
    last = error_in_words(raised) if raised else lines[-1] if lines else "no output"
    return "; ".join(
        [f"{run.outcome.value} with status {run.status}: {last}", *children_in_words(run)]
    )
