"""Settles a divergence that no rule explains: by runs with one part replaced, as expected, the framework's or the program's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..observer.events import GradientsApplied, Stack, VariableWritten
from ..observer.replacements import Replacement
from .batch_sizes import asked, chosen_sizes
from .divergence import (
    Divergence,
    Point,
    depends_on_mean,
    divergences_of,
    first_divergence,
    is_finite,
    points_of_rounding,
    tolerance,
)
from .findings import (
    DIVERGES,
    FRAMEWORK,
    Answers,
    Evidence,
    Finding,
    FollowUp,
    Location,
    Note,
    Replace,
    Text,
)
from .recording import Recording
from .rule import ModeRules, Runs, Steps
from .suspects import EXPECTED, IN_LOOPS, ROWS, SUSPECTS, Side, Suspect

SMALL = 20  # times the tolerance
# Of the first training: a later one begins with other weights if that has differed.
FIRST_STEP = 1, 1
MOST_LINES = 3  # that are said to have written a variable


def settle(runs: Runs, found: Sequence[Finding], rules: ModeRules) -> Steps:
    """Yields a finding or a note for the first divergence, if no finding explains it."""
    explained = any(finding.mode not in rules.of_other_promises for finding in found)
    for divergence in () if explained else runs.divergences[:1]:
        suspects = sorted([*rules.suspects, *SUSPECTS], key=lambda suspect: suspect.last)
        yield from settle_divergence(divergence, suspects)


def settle_divergence(divergence: Divergence, suspects: Sequence[Suspect]) -> Steps:
    one, other = divergence.one, divergence.other
    if reason := reason_of_other_training(one, other):
        yield Note(reason)
        return
    ignored = yield from points_of_rounding(other)
    if ignored is None:
        yield Note(f"{divergence}; that is none of the modes by itself")
        return
    stable = first_divergence(one, other, ignored)
    if stable is None:
        words = f"{divergence}; so it does if only the last digits of the weights differ"
        yield Note(words, agree=True)
        return
    yield from settle_stable(stable, ignored, suspects)


def settle_stable(
    divergence: Divergence, ignored: Collection[Point], known: Sequence[Suspect]
) -> Steps:
    """Tries each fault of the framework, then all that is expected, then each suspect on top of that."""
    expected = [suspect for suspect in EXPECTED if suspect.applies(divergence)]
    framework = [each for each in known if each.side is Side.FRAMEWORK]
    alone = [[each] for each in framework if expected and each.applies(divergence)]
    loops = [IN_LOOPS] if IN_LOOPS.applies(divergence) else []
    # What shows only after several steps in a graph cannot be compared one step at a time
    is_only_in_loops = bool(loops) and not (
        yield from divergence_without(loops, divergence, ignored)
    )
    one_step = [] if is_only_in_loops else loops
    left = divergence
    for chosen in [*alone, *([expected] if expected else [])]:
        left_now = yield from divergence_without([*one_step, *chosen], divergence, ignored)
        if left_now is None:
            yield verdict(chosen, divergence)
            return
        left = left_now if chosen == expected else left
    if expected and (yield from is_sensitive([*one_step, *expected], left, divergence, ignored)):
        yield verdict(expected, divergence)
        return
    is_small = bool(expected) and is_late_and_small(left, ignored)
    small_is_allowed = bool(expected) and not is_small
    found: Finding | Note = small(left, expected) if is_small else unsettled(left, expected)
    # A last batch may be why runs differ later, where what is expected came first
    possible = [
        suspect
        for suspect in known
        if suspect.applies(divergence) or suspect.applies(left)
        if not (suspect.last and (is_small or is_only_in_loops))
    ]
    for chosen in combined(possible):
        without = [*one_step, *expected, *chosen]
        if (yield from agrees_without(without, divergence, ignored, small_is_allowed)):
            found = verdict([*expected, *chosen], divergence)
            break
    else:
        for suspect in possible if isinstance(found, Finding) else ():
            if (yield from fails_without([*one_step, *expected, suspect], divergence)):
                found = undecided(left, suspect)
    plain, is_program = divergence.one.plain, isinstance(found, Finding) and not found.by_framework
    if plain and is_program and not (yield from depends_on_mean(divergence.one)):
        found = Note(reason_of_other_training(plain, divergence.other))
    yield found


def combined(possible: Sequence[Suspect]) -> Iterator[list[Suspect]]:
    """Yields each suspect, and each fault of the program also together with the repeated rows, which it may hide."""
    first = [each for each in possible if not each.last]
    yield from ([each] for each in first)
    if ROWS in first:
        yield from ([ROWS, each] for each in first if each.side is Side.PROGRAM)
    yield from ([each] for each in possible if each.last)


def divergence_without(
    suspects: Sequence[Suspect], divergence: Divergence, ignored: Collection[Point]
) -> Answers[Divergence | None]:
    """Returns what is left of a divergence in runs with these parts replaced; all of it if they cannot be compared."""
    change = Replace(parts_of(suspects), max(suspect.keras for suspect in suspects))
    words = suspects[-1].words
    one = yield FollowUp(divergence.one, change, words)
    if one is None or not is_whole(one, divergence):
        return divergence
    other = yield FollowUp(divergence.other, change, words)
    if other is None or not is_whole(other, divergence):
        return divergence
    return first_divergence(one, other, ignored)


def fails_without(suspects: Sequence[Suspect], divergence: Divergence) -> Answers[bool]:
    """Tells whether the program fails in the run that would show whether a part of the framework is why runs differ.

    That it fails with another version of Keras says nothing.
    """
    suspect = suspects[-1]
    if suspect.side is not Side.FRAMEWORK or suspect.replacement is None:
        return False
    change = Replace(parts_of(suspects))
    for run in (divergence.one, divergence.other):
        changed = yield FollowUp(run, change, suspect.words)
        if changed is None or not is_whole(changed, divergence):
            return changed is not None and not changed.finished
    return False


def agrees_without(
    suspects: Sequence[Suspect],
    divergence: Divergence,
    ignored: Collection[Point],
    small_is_allowed: bool,
) -> Answers[bool]:
    """Tells whether runs without these parts agree, but for what differs later and may be rounding."""
    left = yield from divergence_without(suspects, divergence, ignored)
    if left is None or small_is_allowed and is_late_and_small(left, ignored):
        return True
    is_later = left.stage > divergence.stage and not any(each.keras for each in suspects)
    return is_later and (yield from is_sensitive(suspects, left, divergence, ignored))


def is_sensitive(
    expected: Sequence[Suspect],
    left: Divergence,
    divergence: Divergence,
    ignored: Collection[Point],
) -> Answers[bool]:
    """Tells whether what is left without these parts is as large if only the last digits of the weights change then."""
    if left is divergence:
        return False
    found = yield from points_of_rounding(divergence.other, parts_of(expected), left.other)
    return found is not None and first_divergence(left.one, left.other, {*ignored, *found}) is None


def is_late_and_small(left: Divergence, ignored: Collection[Point]) -> bool:
    """Tells whether the first step agrees, and all that differs later does so by so little that rounding may be the cause."""
    least = tolerance(left.one)
    return all(
        each.stage > FIRST_STEP and each.distance < SMALL * least
        for point, each in divergences_of(left.one, left.other)
        if each.distance > least and point not in ignored
    )


def parts_of(suspects: Sequence[Suspect]) -> frozenset[Replacement]:
    return frozenset(each.replacement for each in suspects if each.replacement)


def is_whole(recording: Recording, divergence: Divergence) -> bool:
    """Tells whether a run has trained to its end, and to numbers where others have differed; without a limit it may overflow."""
    is_trained = recording.finished and bool(recording.trained)
    return is_trained and is_finite(recording, divergence.stage)


# Runs that are meant to differ


def is_matchable(first: Recording, other: Recording) -> bool:
    """Tells whether the program chose its batches or its rate by the number of replicas, which another run can be given."""
    return first.replicas > other.replicas and bool(
        asked(first) and reason_of_other_training(other, first)
    )


def reason_of_other_training(one: Recording, other: Recording) -> str:
    """Returns why two runs are other trainings by the program's own choice; nothing if they are one."""
    counts = f"{one.devices} and {other.devices} devices"
    if sizes := chosen_sizes(one, other):
        examples = f"{sizes[0]} and {sizes[1]} examples"
        return f"a step takes in {examples} on {counts}: these are other trainings"
    if not asked(one):
        return ""
    if learning_rates(one) != learning_rates(other):
        return f"the program chooses its learning rate by the number of replicas: on {counts} these are other trainings"
    if one.plain or one.examples and other.examples:
        return ""
    return f"the program asks for the number of replicas, and its batches were not seen: on {counts} it may train otherwise"


def learning_rates(recording: Recording) -> set[str]:
    return {update.optimizer.learning_rate for update in recording.of(GradientsApplied)}


# What is reported


def verdict(chosen: Sequence[Suspect], divergence: Divergence) -> Finding | Note:
    """Returns what follows if runs without these parts agree. The last one was decisive."""
    suspect = chosen[-1]
    if suspect.side is Side.EXPECTED:
        parts = " and ".join(each.message for each in chosen)
        words = (
            f"{divergence}; without {parts} the runs agree, and correct programs have these, too"
        )
        return Note(words, agree=True)
    proof = Text(f"{divergence}; {suspect.words} the runs agree")
    devices = divergence.one.devices, divergence.other.devices
    by_framework = suspect.side is Side.FRAMEWORK
    mode = suspect.mode or (FRAMEWORK if by_framework else DIVERGES)
    location, message = Location(suspect.located(divergence)), Text(suspect.message)
    return Finding(
        mode, location, Evidence.COMPARED, message, proof, devices, suspect.fix, by_framework
    )


def small(left: Divergence, expected: Sequence[Suspect]) -> Note:
    parts = " and ".join(each.words for each in expected)
    return Note(
        f"{left}; {parts} the first step agrees, and later differences are as small as rounding makes"
    )


def undecided(left: Divergence, suspect: Suspect) -> Note:
    return Note(
        f"{left}; whether the runs agree {suspect.words} is not known: the program fails in that run"
    )


def unsettled(divergence: Divergence, expected: Sequence[Suspect]) -> Finding:
    """Returns a finding at the line that wrote first what differs first."""
    one, other = divergence.one, divergence.other
    when = f"after {divergence.step_in_words}" if divergence.step else "at the end"
    message = (
        f"{divergence.name} has another value on {other.devices} devices than on {one.devices}, "
        f"first {when}, by {divergence.distance:.2g} of its size"
    )
    lines = writing_lines(divergence)
    without = f" ({' and '.join(each.words for each in expected)})" if expected else ""
    proof: list[str | Location] = [f"{divergence}{without}"]
    if one.examples != other.examples:
        proof.append(f"; a step takes in {one.examples} and {other.examples} examples")
    for stack, word in zip(lines, ["; it is written at ", *[" and at "] * MOST_LINES]):
        proof += [word, Location(stack)]
    location = Location(lines[0] if lines else ())
    devices = one.devices, other.devices
    return Finding(DIVERGES, location, Evidence.COMPARED, Text(message), Text(*proof), devices)


def writing_lines(divergence: Divergence) -> list[Stack]:
    """Returns the lines that write a variable, each once."""
    written = [
        each.location
        for each in divergence.other.of(VariableWritten)
        if each.number == divergence.number and each.location
    ]
    return list({stack[0]: stack for stack in written}.values())[:MOST_LINES]
