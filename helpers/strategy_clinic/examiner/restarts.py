"""Compares a program that was killed and started again with the run that was never stopped."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from ..base.files import source_text
from ..observer.events import (
    CallbackState,
    Ended,
    ExceptionRaised,
    Frame,
    GradientsApplied,
    LearningRateWritten,
    Loaded,
    LookedFor,
    OptimizerState,
    OrderDrawn,
    Outcome,
    Owner,
    Part,
    PartUsed,
    Sample,
    Saved,
    SaveKind,
    Stack,
    StepEnded,
    VariableValue,
    VariableWritten,
)
from ..programs.error_text import useful_line
from .after_restart import (
    NUMBER,
    OF_MODEL,
    Key,
    Lost,
    are_alike,
    assignments_of,
    changed_values,
    differing,
    first_common,
    first_number,
    has_consequence,
    is_best_value,
    is_compared,
    is_given_anew,
    is_metric,
    keeps_otherwise,
    lines_of,
    lost_values,
    made_at,
    metric_variables,
    models_agree,
    states_of,
    trains_alike_models,
    variables_made_at,
    without_unstable,
)
from .blame import (
    branch_around,
    called_at,
    from_contents,
    in_one_loop,
    name_of,
    nodes_of_file,
    nodes_under,
    outermost_loop,
    with_keyword,
)
from .divergence import distance, first_divergence, repeats_again, tolerance
from .findings import (
    BeginWith,
    Evidence,
    Finding,
    FollowUp,
    Location,
    Note,
    Text,
    listed,
    once_more,
)
from .hangs import waiting_at
from .history import goes_back, loads_of, optimizers_of, steps_at_end, values_at_end
from .moments import interrupted, saves_of
from .printed import program_files
from .recording import Moment, Recording, Role
from .repair import Source
from .repair_values import kept_beside
from .rule import Rule, Runs, Steps, line_of, place_in_words

RESTART = "restart"
SAME_RATE = 1e-6  # relative
ROUNDING = 1e-5  # of weights after the same steps, relative to the largest entry
LONGEST_MESSAGE = 200
LONGEST_VALUE = 60
MOST_METRICS = 3  # with whose values a restart is made again
ARRAY = re.compile(r"\(.*?\) (\S+) \S+")  # how an array is told: its shape, its norm and its sum
AMID_DATA = Text(
    "the iterator over the data, which a restart begins anew, while the whole run reads on after a save"
)
GENERATOR, OF_NUMPY = re.compile(r"generator \d+ of numpy.random"), "generators of numpy.random"
WHOLE_FILES = (
    "Write each save to a new name, and give it its own name with os.replace when it is complete; CheckpointManager does so, "
    "and BackupAndRestore of Keras 3 keeps the last save but one with double_checkpoint=True."
)
NAMED = r"(?<![\w./]){}(?![\w/]|\.\w)"  # a path in a message, and not a part of one
WITH_FILE = (
    "write {} before the save from which a restart goes on, or go on without it where it is missing"
)
OTHER_END = "started again, its optimizers end"  # how a note begins
GOES_ON = "to end where that run ends, save and load the optimizer and the number of the epoch"
Values = list[tuple[str, tuple[int | None, ...], Sample]]  # name, shape and value


def restarts(recordings: Sequence[Recording], explained: bool) -> Steps:
    """Yields what restarts show; differences in values only if nothing else was found that may explain them."""
    for run in recordings:
        if fails_without_interruption(run, recordings):
            continue
        if fails_in_gap(run, recordings):
            yield note_of_gap(run)
        elif run.role is Role.RESTARTED and run.before and run.whole and run.moment:
            yield from findings_of_restart(run, run.before, run.whole, explained)


def fails_without_interruption(run: Recording, recordings: Sequence[Recording]) -> bool:
    """Tells whether a program that was killed during a save fails as it does after a whole save: no half file is the cause."""
    raised = run.last(ExceptionRaised)
    if run.moment is not Moment.DURING or not raised:
        return False
    others = [
        other.last(ExceptionRaised)
        for other in recordings
        if other.role is Role.RESTARTED and other.moment is not Moment.DURING
    ]
    return any(
        other and (other.error, other.location) == (raised.error, raised.location)
        for other in others
    )


def missing_file(run: Recording) -> str:
    """Returns the file without which a program fails that was started again; nothing if it fails otherwise, or not."""
    raised = run.last(ExceptionRaised)
    if raised is None or run.role is not Role.RESTARTED or run.moment is Moment.DURING:
        return ""
    line = useful_line(raised.traceback)
    looks = [each.path for each in run.of(LookedFor)[::-1] if not each.lists]
    return next((each for each in looks if re.search(NAMED.format(re.escape(each)), line)), "")


def fails_in_gap(run: Recording, recordings: Sequence[Recording]) -> bool:
    """Tells whether a file is missing only just after the first save: a program that is killed later goes on."""
    later = Moment.BETWEEN, Moment.DURING
    return (
        run.moment is Moment.AFTER
        and bool(missing_file(run))
        and any(
            other.role is Role.RESTARTED and other.finished and other.moment in later
            for other in recordings
        )
    )


def note_of_gap(run: Recording) -> Note:
    """Returns the lines between which a kill leaves a save without a file."""
    path, save = missing_file(run), last_saved(run)[1]
    raised = run.last(ExceptionRaised)
    return Note(
        Text(
            f"killed after the save of {save.path} at ",
            line_of(save.location, "a line of a library"),
            f" and before it writes {path}, the program cannot go on: it reads that file at ",
            line_of(raised.location if raised else (), "a line of a library"),
            ", and goes on where it was killed later; write the file before the save, or go on without it where it is missing",
        )
    )


def findings_of_restart(
    run: Recording, stopped: Recording, whole: Recording, explained: bool
) -> Steps:
    if not run.finished:
        if whole.finished:
            yield failure(run, whole)
        return
    if not stopped.of(Saved):
        return
    if begins_from_zero(run, whole):
        yield Note("started again, it begins from zero, without what it has saved")
        return
    found = [] if explained else [*wrong_end(run, whole)]
    if found and (yield from repeats_again(whole)):
        yield from found[:1]
    yield from notes_of(run, whole)


# What it has lost, by what had held it


class Holder(Enum):
    """What had held something that a restart has lost. A mode has a row for each kind that it is about: see `lost`."""

    PYTHON = "a name or an object of the program"
    BEST = "a name whose value the program compares, as with the best one so far"
    RATE = "an optimizer whose rate is set after the save"
    SCHEDULE = "what decides about the rate, where the weights agree"


@dataclass(frozen=True)
class Loss:
    holder: Holder
    location: Stack  # of the line that had to bring it back
    message: str | Text
    fix: str = ""
    metrics: tuple[Lost, ...] = ()  # if nothing but the state of these is lost


def lost(mode: str, holder: Holder) -> Rule:
    """Returns the rule that a mode is what a restart has lost of this kind of holder."""

    def check(runs: Runs) -> Steps:
        others = [each for each in runs.recordings if each.role is Role.COMPARED]
        asked: set[Key] = set()  # the metrics about which one restart has told
        for run, whole in resumed(runs.recordings):
            for loss in FOUND_BY[holder](run, whole, others):
                metrics = {each.held for each in loss.metrics}
                if loss.holder is holder and not metrics:
                    yield finding_of_loss(run, loss, mode)
                elif loss.holder is holder and not metrics <= asked:
                    yield from finding_of_metrics(run, loss.metrics, mode)
                    asked |= metrics

    return Rule(mode, check, explains_divergence=False, last=True)


def lost_value(run: Recording, whole: Recording, others: Sequence[Recording]) -> Iterator[Loss]:
    """Yields the likeliest of the values of Python that a restart has lost."""
    values = without_unstable(lost_values(run, whole, decided_otherwise(run, whole)), others)
    values = sorted(values, key=lambda each: is_metric(run, each))
    if values and has_consequence(run, whole, values, others):
        metrics = tuple(values) if is_metric(run, values[0]) else ()
        yield replace(loss_of_value(run, values[0]), metrics=metrics)


def finding_of_loss(run: Recording, loss: Loss, mode: str) -> Finding:
    return finding(run, loss.location, loss.message, loss.fix, mode)


def finding_of_metrics(run: Recording, metrics: Sequence[Lost], mode: str) -> Steps:
    """Yields the metric from which something follows, or a note if nothing does but the numbers that are printed.

    The restart is made once more for each, which begins with another value then.
    """
    metrics = metrics[:MOST_METRICS]
    keys = [each.held for each in metrics]
    for each in metrics:
        made, value = metric_variables(run, each)[0], first_number(each.right)
        change = BeginWith(made.number, value)
        words = f"again with another {made.name} of {each.held[2]}, {value:g}"
        begun = yield FollowUp(run, change, words)
        if begun is None:
            yield finding_of_loss(run, loss_of_value(run, each), mode)
            return
        if does_otherwise(run, begun, keys):
            again = yield once_more(run)
            if again is not None and not does_otherwise(run, again, keys):
                yield finding_of_loss(run, loss_of_value(run, each), mode)
            return
    names = [part for each in metrics for part in (", ", each.held[2], *line_in_words(each))][1:]
    them = (
        "the values of these metrics begin"
        if len(metrics) > 1
        else "the value of this metric begins"
    )
    yield Note(
        Text(
            *names,
            f": {them} again after a restart, and nothing else follows from that in these runs; save a metric with the "
            "checkpoint if its numbers are compared across restarts",
        )
    )


def line_in_words(lost: Lost) -> tuple[str | Location, ...]:
    made = made_at(lost.held)
    return (" (", Location(made), ")") if made else ()


def does_otherwise(run: Recording, other: Recording, lost: Sequence[Key]) -> bool:
    """Tells whether two restarts train or save otherwise, keep other values than those that are lost, or print other words."""
    is_same = run.outcome is other.outcome and steps_at_end(run) == steps_at_end(other)
    if not is_same or first_divergence(run, other) or other_end(run, other):
        return True
    saves, others = ([each.path for each in saves_of(one)] for one in (run, other))
    words, other_words = ([*map(without_numbers, lines_of(one))] for one in (run, other))
    return saves != others or words != other_words or keeps_otherwise(run, other, lost)


def without_numbers(line: str) -> list[str]:
    return NUMBER.sub("#", line).split()


def lost_rate(run: Recording, whole: Recording, others: Sequence[Recording]) -> Iterator[Loss]:
    """Yields how a restart comes to another learning rate."""
    rate = other_rate(run, whole, others)
    if rate and rate.models_agree:
        kept = [held for held in rate.differing if is_compared(held)]
        kept = [held for held in kept if is_given_anew(held)] or decided_by(whole, rate.right)
        location = next(map(made_at, kept), last_saved(run)[2])
        what = f"what decides about the learning rate is not saved: {rate}, with the same weights"
        yield Loss(Holder.SCHEDULE, location, what)
    elif rate:
        for write in writes_after_save(whole, rate.right)[:1]:
            what = f"the learning rate is set after the checkpoint is saved: {rate}"
            yield Loss(Holder.RATE, write.location, what)


def decided_by(whole: Recording, rate: float) -> list[Key]:
    """Returns the values that a condition reads before this rate is set, and that get their next value after it."""
    return [
        held
        for write in whole.of(LearningRateWritten)
        if same_rate(write.value, rate)
        for branch in map(branch_around, write.location)
        for held in sorted(changed_values(whole))
        if branch and held[2] in map(name_of, nodes_under(branch.test))
        if any(each.lineno > branch.lineno for each in assignments_of(held))
    ]


def decided_otherwise(run: Recording, whole: Recording) -> list[Key]:
    """Returns the values that decide about the last learning rates, where a restart ends after as many steps with others."""
    if steps_at_end(run) != steps_at_end(whole):
        return []
    rates, rights = ([*map(rate_of, optimizers_of(each))] for each in (run, whole))
    return [
        held
        for rate, right in zip(rates, rights)
        if rate is not None and right is not None and not same_rate(rate, right)
        for held in decided_by(whole, right)
    ]


FOUND_BY = {
    Holder.PYTHON: lost_value,
    Holder.BEST: lost_value,
    Holder.RATE: lost_rate,
    Holder.SCHEDULE: lost_rate,
}


def same_rate(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_RATE * abs(one)


def writes_after_save(whole: Recording, rate: float) -> list[LearningRateWritten]:
    """Returns what sets this rate further down in a loop that saves."""
    return [
        write
        for save in whole.of(Saved)
        for write in whole.of(LearningRateWritten, after=save)
        if same_rate(write.value, rate)
        if any(is_below(write.location, save.location[i:]) for i in range(len(save.location)))
    ]


def is_below(stack: Stack, other: Stack) -> bool:
    """Tells whether a line is further down in a loop than another one."""
    return in_one_loop(stack, other) and stack[0].line > other[0].line


@dataclass(frozen=True)
class OtherRate:
    """A restart saves first with another learning rate than all whole runs do after as many updates."""

    updates: int
    rate: float
    right: float
    differing: tuple[Key, ...]  # values that differ then, too
    models_agree: bool

    def __str__(self) -> str:
        return (
            f"after {self.updates} updates it is {self.rate:.4g} where a restart goes on, "
            f"and {self.right:.4g} in the run that was never stopped"
        )


def other_rate(run: Recording, whole: Recording, others: Sequence[Recording]) -> OtherRate | None:
    rates, mine = rates_of(states_saved(whole)), rates_of(states_saved(run))
    key = next((each for each in mine if each in rates), None)
    _, state, rights = first_common(states_of(run), states_of(whole))
    if key is None or not state or mine[key] & rates[key]:
        return None
    saved = [rates_of(states_saved(each)) for each in others]
    known = [each[key] for each in saved if key in each]
    if not known or any(each != rates[key] for each in known):
        return None
    differ, agree = tuple(differing(state, rights)), models_agree(run, whole)
    return OtherRate(key[1], min(mine[key]), min(rates[key]), differ, agree)


def rates_of(states: Iterable[OptimizerState]) -> dict[tuple[str, int], set[float]]:
    """Returns the learning rates that are numbers, by the kinds of the optimizers and their steps."""
    found: dict[tuple[str, int], set[float]] = {}
    for optimizer in states:
        rate = rate_of(optimizer)
        if rate is not None:
            found.setdefault((optimizer.kind, optimizer.steps), set()).add(rate)
    return found


def states_saved(run: Recording) -> list[OptimizerState]:
    """Returns the optimizers as they were when something was saved."""
    return [each for save in run.of(Saved) for each in save.optimizers]


def resumed(recordings: Sequence[Recording]) -> Iterator[tuple[Recording, Recording]]:
    """Yields the restarts that go on from what was saved and end well, each with the whole run.

    They are compared after as many updates: what the whole run trains has to be numbers, and it never goes back.
    """
    for run in recordings:
        whole = run.whole if run.role is Role.RESTARTED and run.finished else None
        is_counted = whole and not whole.trained & whole.not_numbers and not goes_back(whole)
        if whole and is_counted and loads_at_start(run):
            yield run, whole


def loss_of_value(run: Recording, lost: Lost) -> Loss:
    _, owner, name = lost.held
    place = f"{name} of {owner}" if owner else name
    stopped, save, holder = last_saved(run)
    made, beside = made_at(lost.held), saved_beside(lost.held)
    is_saved = lost.is_tensor and holds_variable(stopped, save, made)
    is_early = is_saved and (not lost.is_reset or is_as_saved(lost, run.whole or run))
    reason = "begins again" if lost.is_reset else "is not saved, or before it changes"
    reason = "is saved before it changes" if is_early else reason
    what, value, right = in_numbers(run, lost)
    message = Text(
        place,
        *((" of ", Location(made)) if beside and made else ()),
        f" {reason}: after {lost.updates} updates {what} is {value} where a restart goes on, "
        f"and {right} in the run that was never stopped",
    )
    when = "" if lost.is_reset else " after it has changed"
    fix = f"save {name} with each checkpoint{when}, and begin with the saved value after a restart"
    fix = (
        f"change {name} before the save, or save below the line that changes it"
        if is_early
        else fix
    )
    location = holder if lost.is_tensor else beside or made or holder
    kind = Holder.BEST if is_best_value(lost) else Holder.PYTHON
    return Loss(kind, order_of(save.location) if is_saved else location, message, fix)


def last_saved(run: Recording) -> tuple[Recording, Saved, Stack]:
    """Returns the run before a restart, its last save, and the line that decides what this holds, or else that saves."""
    stopped = run.before or run
    save = stopped.of(Saved)[-1]
    return stopped, save, from_contents(save.made_at, program_files(stopped)) or save.location


def holds_variable(stopped: Recording, save: Saved, made: Stack) -> bool:
    """Tells whether a save has a variable that is made on this line."""
    stacks = map(stopped.location_of, save.variables)
    return bool(made) and any(stack and stack[0][:2] == made[0][:2] for stack in stacks)


def is_as_saved(lost: Lost, whole: Recording) -> bool:
    """Tells whether a value is what the whole run has when it saves after as many updates."""
    saved = dict(states_of(whole)).get(lost.updates, {})
    return are_alike(lost.value, saved.get(lost.held, ""))


def order_of(stack: Stack) -> Stack:
    """Returns the line that gives `fit` the callbacks of which one saves here, or else the line that saves."""
    for i, frame in enumerate(stack):
        if "fit" in called_at(frame):
            return with_keyword(stack[i:], "callbacks")
    return stack


def saved_beside(held: Key) -> Stack:
    """Returns the line that saves another value of the same object by a name, and not this one; nothing if there is none."""
    path, owner, name = held
    if not nodes_of_file(path):
        return ()
    source = Source(source_text(Path(path)))
    for lost in (f"self.{name}", name):
        for _, saves in kept_beside(source, lost):
            return (Frame(path, saves[0].lineno, owner),)
    return ()


def in_numbers(run: Recording, lost: Lost) -> tuple[str, str, str]:
    """Returns what is compared of a value, and how it is: of several variables the first that differs."""
    mine, theirs = (each.split(f"{OF_MODEL} ") for each in (lost.value, lost.right))
    place = next((i for i, pair in enumerate(zip(mine, theirs)) if not are_alike(*pair)), 0)
    names = [each.name for each in variables_made_at(run, lost.held)] if len(mine) > 1 else []
    name = f"its {names[place]}" if len(names) == len(mine) else "a variable of it"
    if mine[place].startswith("() "):
        one, other = (each[place].rpartition(" ")[2] for each in (mine, theirs))
        return name if len(mine) > 1 else "it", one, other
    norm, right = ARRAY.fullmatch(mine[place]), ARRAY.fullmatch(theirs[place])
    if norm and right:
        return f"the norm of {name}" if len(mine) > 1 else "its norm", norm[1], right[1]
    return "it", lost.value[:LONGEST_VALUE], lost.right[:LONGEST_VALUE]


def finding(
    run: Recording, location: Stack, message: str | Text, fix: str = "", mode: str = RESTART
) -> Finding:
    end = "had ended" if run.role is Role.AGAIN else "was killed"
    moment = f" {run.moment.value}" if run.moment else ""
    proof = f"observed {place_in_words(run)}: it {end}{moment}, and was started again in the folder that it left"
    said = message if isinstance(message, Text) else Text(message)
    return Finding(
        mode, Location(location), Evidence.OBSERVED, said, Text(proof), (run.devices,), fix
    )


def failure(run: Recording, whole: Recording) -> Finding | Note:
    """Returns that a program which ends well fails when it was killed and is started again.

    Where Keras writes the file, the program has no part in it: that is a note.
    """
    raised = run.last(ExceptionRaised)
    location = raised.location if raised else waiting_at(run)
    what = f"it {run.outcome.value} with status {run.status}"
    if raised:
        line = useful_line(raised.traceback).removeprefix(f"{raised.error}: ")
        what = f"{raised.error}: {line}"
    elif run.outcome is Outcome.HANGS:
        what = "it does not end"
    message = f"started again, it fails: {what}"[:LONGEST_MESSAGE]
    if run.moment is not Moment.DURING or not saves_of(whole):
        path = missing_file(run)
        fix = WITH_FILE.format(path) if path else ""
        return finding(run, location, message, fix)
    path = interrupted(whole).path
    saves = [save for save in whole.of(Saved) if save.path == path]
    place = saves[0].location if saves else location
    by_keras = any(save.kind is SaveKind.MODEL for save in saves)
    saved = (", saved at ", Location(place), ",") if by_keras and place else ()
    of_path = f" is written under its final name, so that a kill during the save leaves a part of it: {message}"
    if by_keras or (place and "fit" in called_at(place[0])):
        return Note(Text(path, *saved, f"{of_path}. {WHOLE_FILES}"))
    return finding(run, place, f"{path}{of_path}", WHOLE_FILES)


# What it begins with


def begins_from_zero(run: Recording, whole: Recording) -> bool:
    is_next_model = run.steps < whole.steps and trains_alike_models(whole)
    return begins_as_made(run, whole) and not (is_next_model or loads_at_start(run))


def begins_as_made(run: Recording, whole: Recording) -> bool:
    """Tells whether what is trained has the values before the first step that it has in a run from the beginning."""
    mine, theirs = initial_values(run), initial_values(whole)
    if not mine or [shape for _, shape, _ in mine] != [shape for _, shape, _ in theirs]:
        return False
    return furthest(mine, theirs, 0.0) is None


def initial_values(run: Recording) -> Values:
    """Returns what is trained as it was made, as far as the program does not set it before the first update."""
    steps, updates = run.of(StepEnded), run.of(GradientsApplied)
    writes = run.of(VariableWritten, until=updates[0]) if updates else []
    given = {each.number for each in writes if each.writer is Owner.USER}
    return in_order(run, steps[0].initial_values, run.trained - given) if steps else []


def loads_at_start(run: Recording) -> list[Loaded]:
    """Returns what the started program has loaded of what the killed one saved, and not of what it has saved itself."""
    stopped = run.before
    paths = {run.absolute(save.path) for save in stopped.of(Saved)} if stopped else set()
    loads = []
    for event in run.events:
        if isinstance(event, Saved):
            paths.discard(run.absolute(event.path))
        if isinstance(event, Loaded) and run.absolute(event.path) in paths:
            loads.append(event)
    return loads


def in_order(run: Recording, values: Sequence[VariableValue], wanted: frozenset[int]) -> Values:
    """Returns variables in the order in which they were made: a loaded model's are made at other lines."""
    samples = {value.number: value.sample for value in values}
    return [
        (made.name, made.shape, samples[number])
        for number in sorted(wanted & samples.keys())
        if (made := run.variable(number))
    ]


def furthest(one: Values, other: Values, limit: float) -> tuple[str, float] | None:
    """Returns the variable that differs most, and by how much; None if none does, or if they are not the same variables."""
    if [shape for _, shape, _ in one] != [shape for _, shape, _ in other]:
        return None
    apart = [(distance(mine, theirs), name) for (name, _, mine), (_, _, theirs) in zip(one, other)]
    by, name = max(apart, default=(0.0, ""))
    return (name, by) if by > limit else None


def in_words(apart: tuple[str, float]) -> str:
    name, by = apart
    return f"{name} differs by {by:.2g}"


# How it ends


def wrong_end(run: Recording, whole: Recording) -> Iterator[Finding]:
    """Yields what differs at the end, if both have made the same steps and nothing random explains it."""
    if steps_at_end(run) != steps_at_end(whole) or draws(run, whole):
        return
    difference = other_end(run, whole)
    if difference:
        message = f"it does not end as the whole run: {difference}"
        yield finding(run, line_of_update(run), message)


def line_of_update(run: Recording) -> Stack:
    """Returns the line of the first update; that of the last one where the program writes to its weights itself."""
    updates = [each.location for each in run.of(GradientsApplied)[:1]]
    writes = [each for each in run.of(VariableWritten) if each.writer is Owner.USER]
    by_hand = [each.location for each in writes if each.number in run.trained]
    return next(iter([*updates, *by_hand[::-1]]), ())


def other_end(run: Recording, whole: Recording) -> str:
    """Returns how a learning rate, a weight, or what an optimizer remembers differs at the end; nothing if all agree."""
    for mine, theirs in zip(optimizers_of(run), optimizers_of(whole)):
        rate, other = rate_of(mine), rate_of(theirs)
        if rate is not None and other is not None and not same_rate(other, rate):
            return f"the learning rate is {rate:.4g} instead of {other:.4g}"
    apart = furthest(weights_at_end(run), weights_at_end(whole), tolerance(run))
    if apart:
        return in_words(apart)
    slots, other_slots = (
        in_order(
            each,
            values_at_end(each),
            frozenset(n for state in optimizers_of(each) for n in state.variables),
        )
        for each in (run, whole)
    )
    apart = furthest(slots, other_slots, tolerance(run))
    return in_words(apart) if apart else ""


def ends_as_whole(run: Recording) -> bool:
    """Tells whether a restart trains to the weights of the whole run, but for rounding."""
    if run.role is not Role.RESTARTED or run.whole is None:
        return False
    if not (ends_as_trained(run) and ends_as_trained(run.whole)):
        return False
    mine, theirs = weights_at_end(run), weights_at_end(run.whole)
    is_one = bool(mine) and [shape for _, shape, _ in mine] == [shape for _, shape, _ in theirs]
    return is_one and furthest(mine, theirs, ROUNDING) is None


def ends_as_trained(run: Recording) -> bool:
    """Tells whether nothing but optimizers writes to the weights once training has begun, such as the best ones at the end."""
    for first in run.of(GradientsApplied)[:1]:
        writes = run.of(VariableWritten, after=first)
        others = {each.number for each in writes if each.writer is not Owner.OPTIMIZER}
        return not run.trained & others and not loads_of(run, run.trained, after=first)
    return False


def weights_at_end(run: Recording) -> Values:
    return in_order(run, values_at_end(run), run.trained)


def rate_of(state: OptimizerState) -> float | None:
    """Returns the learning rate if it is a number."""
    try:
        return float(state.learning_rate)
    except ValueError:  # the name of a schedule
        return None


def is_only_order(run: Recording, whole: Recording) -> bool:
    """Tells whether the examples and their order are all that a restart begins again."""
    orders = {order_in_words(each) for one in (run, whole) for each in one.of(OrderDrawn)}
    return bool(orders) and {*draws(run, whole)} <= {*orders, AMID_DATA}


def draws(*runs: Recording) -> list[Text]:
    """Returns what training draws at random or takes one after the other: a restart begins these sequences again."""
    found: list[Text] = []
    for run in runs:
        found += map(order_in_words, run.of(OrderDrawn))
        parts = [each for each in run.of(PartUsed) if each.part is Part.RANDOM_NUMBERS]
        found += [Text("numbers in a step (", in_place(each), ")") for each in parts]
        if any(run.maker_of(number) is Owner.RANDOM for number in run.written):
            found.append(Text("seeds of layers"))
        names = [name for ended in run.of(Ended) for name in ended.drawn]
        found += [Text(GENERATOR.sub(OF_NUMPY, name)) for name in names]
        if saves_amid_data(run):
            found.append(AMID_DATA)
    return list(dict.fromkeys(found))


def saves_amid_data(run: Recording) -> bool:
    """Tells whether training goes on with the same iterator after a save: a restart takes its first examples again."""
    saves = saves_of(run)
    return any(
        one.steps < other.steps and one.iterators == other.iterators > 0
        for one, other in itertools.pairwise(saves)
    )


def order_in_words(drawn: OrderDrawn) -> Text:
    return Text("the order of the examples (", in_place(drawn), ")")


def in_place(event: OrderDrawn | PartUsed) -> str | Location:
    return line_of(event.location, "a library")


def notes_of(run: Recording, whole: Recording) -> Iterator[Note]:
    mine, theirs = steps_at_end(run), steps_at_end(whole)
    if mine and Counter(mine) < Counter(theirs):
        yield Note(
            f"started again, it makes the steps of {len(mine)} of {len(theirs)} optimizers of the run that was never stopped, "
            "so weights were not compared"
        )
    elif mine and theirs and mine != theirs:
        yield Note(
            Text(
                f"{OTHER_END} {at_steps(mine)}, and {at_steps(theirs)} in the run that was never stopped",
                *steps_once_more(run, whole),
                f", so weights were not compared; {GOES_ON}",
            )
        )
    elif mine and (drawn := draws(run, whole)) and other_end(run, whole):
        names = dict.fromkeys(drawn)
        listed = [part for name in names for part in (", ", *name)][1:]
        yield Note(
            Text(
                "started again, it ends with other weights than the whole run; what it draws at random may be the reason: ",
                *listed,
            )
        )


def makes_all_steps_again(run: Recording, whole: Recording) -> bool:
    """Tells whether a program goes on from what it has saved and then makes all steps of the whole run, not the rest."""
    mine, theirs, done = steps_at_end(run), steps_at_end(whole), steps_loaded(run)
    if first_epoch(run):
        return False  # a callback has ended `fit` elsewhere
    return any(done) and len(done) == len(theirs) and [*map(sum, zip(done, theirs))] == mine


def first_epoch(run: Recording) -> int:
    """Returns the epoch with which `fit` has begun; 0 if no callback tells."""
    return min((each.epoch for each in run.of(CallbackState) if not each.begins), default=0)


def steps_loaded(run: Recording) -> list[int]:
    """Returns after how many steps was saved what the started program loads last."""
    loads = [run.absolute(load.path) for load in loads_at_start(run)]
    saves = [save for save in run.saves_before_start if run.absolute(save.path) in loads[-1:]]
    return [state.steps for state in saves[-1].optimizers] if saves else []


def steps_once_more(run: Recording, whole: Recording) -> list[str | Location]:
    """Returns words for a program that makes all steps again after what it has loaded, with the line that makes them."""
    if not makes_all_steps_again(run, whole):
        return []
    line = line_of_update(run)
    in_fit = any("fit" in called_at(frame) for frame in line[:1])
    line = line if in_fit else outermost_loop(line)
    return [
        f" (it has loaded what was saved {at_steps(steps_loaded(run))}, and makes all steps of a whole run after that at ",
        line_of(line, "a line of a library"),
        f"{': begin with the saved epoch, by `initial_epoch=`' if in_fit else ''})",
    ]


def at_steps(steps: Sequence[int]) -> str:
    return f"at step{'s' if len(steps) > 1 else ''} {listed([*map(str, steps)])}"
