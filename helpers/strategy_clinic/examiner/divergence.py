"""Compares recordings: whether a program repeats itself, and the first step and variable in which two runs differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..observer.events import (
    ModelAnswered,
    Part,
    Sample,
    Stack,
    StepEnded,
    VariableValue,
    step_name,
)
from ..observer.replacements import Replacement
from .findings import Answers, Change, FollowUp, Replace, once_more
from .recording import Recording

SAME = 5e-3  # correct programs agree to 3e-6 on 1, 2 and 4 devices, and with one fault that raises nothing to 1e-2 at best
SAME_IN_HALF_PRECISION = 5e-2
SENSITIVE = 0.1  # of the tolerance: what changes by more without a reason is not compared
MOST_UNSTABLE = 0.25  # of the variables after the first step; where more change from run to run, nothing can be compared
ONE_DIRECTION = 0.9  # cosine of two updates: statistics of parts of a batch bend gradients, and so do a few steps in one graph
# Cosine for one variable if nothing has bent its gradient between it and the loss; a few entries agree by chance.
STRAIGHT, ENOUGH_ENTRIES = 0.99, 8
EXACT = 0.9999  # cosine of changes that have one cause
NEAR_UNIT = math.sqrt(2 * (1 - EXACT)) * 1.01
SAME_UPDATE = 1e-4  # relative: rounding makes 1e-6

Key = Hashable
Stage = tuple[int, int]  # a training, and a step of it; zeros for the end
Point = tuple[Stage, Key]  # a variable after a step
Vector = tuple[float, ...]


@dataclass(frozen=True)
class Divergence:
    """Two runs of one program that come to different values, and the first variable that differs."""

    one: Recording
    other: Recording
    step: int  # 0 if they differ only after the recorded steps
    name: str  # of the variable
    distance: float
    number: int = 0  # of the variable in the other run
    training: int = 1  # to which the step belongs

    @property
    def stage(self) -> tuple[float, int]:
        return stage_of_divergence(self.training, self.step)

    @property
    def step_in_words(self) -> str:
        """The step; not all steps of the training before were recorded."""
        is_first = self.training > 1 and self.step == 1
        return step_name(self.training, self.step) + " or before" * is_first

    def __str__(self) -> str:
        when = f"in {self.step_in_words}" if self.step else "after the first steps"
        counts = f"{self.one.devices} and {self.other.devices} devices"
        if self.one.plain:
            counts += f" with the batches of {self.other.replicas} replicas"
        return f"compared {counts}: {self.name} differs {when}, by {self.distance:.2g}"


def stage_of_divergence(training: int, step: int) -> tuple[float, int]:
    """Returns when it shows; the end comes after all recorded steps."""
    return (training, step) if step else (math.inf, 0)


def first_divergence(
    one: Recording, other: Recording, ignored: Collection[Point] = ()
) -> Divergence | None:
    """Returns where trained variables first differ, None if they do not or if there is nothing to compare."""
    divergences = (each for point, each in divergences_of(one, other) if point not in ignored)
    return next((each for each in divergences if each.distance > tolerance(one)), None)


def nudged_run(run: Recording, replaced: Collection[Replacement] = ()) -> FollowUp:
    """Returns the follow-up that shows what changes with the last digits of the weights."""
    change = Replace(frozenset({Replacement.NUDGED_WEIGHTS, *replaced}))
    return FollowUp(run, change, "with other last digits in the weights")


def divergent_points(one: Recording, other: Recording, part: float) -> frozenset[Point]:
    """Returns where two runs differ by more than a part of what first_divergence tolerates."""
    least = part * tolerance(one)
    return frozenset(point for point, each in divergences_of(one, other) if each.distance > least)


def sensitive_points(one: Recording, other: Recording) -> frozenset[Point]:
    """Returns where two runs differ that should agree, by a part of what first_divergence tolerates, and all that follows.

    A weight that has changed by rounding once is another one in all later steps, even where two runs meet by chance.
    """
    least = SENSITIVE * tolerance(one)
    keys: set[Key] = set()
    points: set[Point] = set()
    for point, each in divergences_of(one, other):
        keys |= {point[1]} if each.distance > least else set()
        points |= {point} if point[1] in keys else set()
    return frozenset(points)


def points_of_rounding(
    run: Recording, replaced: Collection[Replacement] = (), without: Recording | None = None
) -> Answers[frozenset[Point] | None]:
    """Returns where a run, or that without the replaced parts, changes with the last digits of the weights; None: unknown."""
    nudged = yield nudged_run(run, replaced)
    if nudged is None or not nudged.finished:
        return None
    return sensitive_points(without or run, nudged)


def divergences_of(one: Recording, other: Recording) -> Iterator[tuple[Point, Divergence]]:
    """Yields how far each trained variable is apart after each step, in the order in which they were made."""
    others = stages(other)
    for stage, values in stages(one).items():
        training, step = stage
        samples, other_samples = by_key(one, values), by_key(other, others.get(stage, ()))
        for key, (number, sample) in samples.items():
            if key in other_samples and (step or number in one.trained):
                other_number, other_sample = other_samples[key]
                apart = distance(sample, other_sample)
                name = one.name_of(number)
                found = Divergence(one, other, step, name, apart, other_number, training)
                yield (stage, key), found


def is_finite(recording: Recording, until: tuple[float, int] = (math.inf, 0)) -> bool:
    """Tells whether all values that were compared, until this stage of a divergence, are numbers."""
    entries = (
        entry
        for stage, values in stages(recording).items()
        for value in values
        if stage_of_divergence(*stage) <= until and value.number in recording.trained
        for entry in value.sample.entries
    )
    return all(map(math.isfinite, entries))


def stages(recording: Recording) -> dict[Stage, tuple[VariableValue, ...]]:
    """Returns the values after each of the recorded steps, and at the end."""
    steps = {(step.training, step.number): step.values for step in recording.of(StepEnded)}
    return {**steps, (0, 0): recording.ended.values}


def by_key(recording: Recording, values: Iterable[VariableValue]) -> dict[Key, tuple[int, Sample]]:
    """Returns numbers and samples by keys that two runs share."""
    keys = recording.keys
    ordered = sorted(values, key=lambda value: value.number)
    return {
        keys[each.number]: (each.number, each.sample) for each in ordered if each.number in keys
    }


def distance(one: Sample, other: Sample) -> float:
    """Returns how far two samples are apart, relative to the largest entry."""
    if len(one.entries) != len(other.entries) or not one.entries:
        return 0.0 if one == other else math.inf
    finite = [all(map(math.isfinite, sample.entries)) for sample in (one, other)]
    if not all(finite):
        return math.inf if any(finite) else 0.0
    size = max(*map(abs, one.entries), *map(abs, other.entries), 1e-3)
    return max(abs(a - b) for a, b in zip(one.entries, other.entries)) / size


def tolerance(recording: Recording) -> float:
    half = any(made.dtype in ("bfloat16", "float16") for made in recording.variables.values())
    half = half or recording.uses(Part.HALF_PRECISION)
    return SAME_IN_HALF_PRECISION if half else SAME


# A run and the same run again


def repeats(one: Recording, other: Recording) -> bool:
    """Tells whether a program comes to the same values when it is run twice in the same way."""
    return one.outcome is other.outcome and first_divergence(one, other) is None


def repeats_again(recording: Recording) -> Answers[bool]:
    """Asks for the same run once more, and tells whether it comes to the same values."""
    again = yield once_more(recording)
    return again is not None and repeats(recording, again)


def unstable_points(one: Recording, other: Recording) -> frozenset[Point] | None:
    """Returns what a run and its repetition cannot be compared by; None if that is too much.

    The gradient of a bias before normalization is 0 but for rounding, and Adam and RMSprop make a whole step of it.
    """
    if repeats(one, other):
        return frozenset()
    unstable = sensitive_points(one, other)
    points = [point for point, _ in divergences_of(one, other)]
    at_first = [point for point in points if point[0] == points[0][0]]
    is_repeated = len(unstable.intersection(at_first)) <= MOST_UNSTABLE * len(at_first)
    return unstable if one.outcome is other.outcome and is_repeated else None


def is_deterministic(one: Recording, other: Recording) -> bool:
    """Tells whether it repeats itself in the outputs of its models, too."""
    return repeats(one, other) and first_other_answer(one, other) is None


def first_other_answer(one: Recording, other: Recording) -> ModelAnswered | None:
    """Returns the first answer of a model that differs in the other run, where it is called by the same lines."""
    mine, others = answers(one), answers(other)
    different = [
        answer
        for key, answer in mine.items()
        if key in others and distance(answer.output, others[key].output) > tolerance(one)
    ]
    return next(iter(different), None)


def answers(recording: Recording) -> dict[tuple[Stack, int], ModelAnswered]:
    """Returns the first, second, ... answer that each stack of lines got."""
    seen: Counter[Stack] = Counter()
    found = {}
    for answer in recording.of(ModelAnswered):
        seen[answer.location] += 1
        found[answer.location, seen[answer.location]] = answer
    return found


def depends_on_mean(matched: Recording) -> Answers[bool]:
    """Tells whether a matched run trains as the plain one if its batches have that one's examples several times.

    A step may use the batch size of one replica by itself: it divides by it, or draws as much noise. Then the runs differ though
    the program is right.
    """
    plain = matched.plain
    parts = {Replacement.SAME_EXAMPLES}
    if plain and plain.uses(Part.RANDOM_NUMBERS):
        parts.add(Replacement.CONSTANT_NUMBERS)
        change = Replace(frozenset({Replacement.CONSTANT_NUMBERS}))
        plain = yield FollowUp(plain, change, "with constants instead of random numbers")
    same = yield FollowUp(
        matched, Replace(frozenset(parts)), "with the same examples in each part of a batch"
    )
    if not plain or not plain.finished or not same or not same.finished:
        return False
    return first_divergence(plain, same) is None


def both_replaced(
    one: Recording, other: Recording, change: Change | None, words: str
) -> Answers[tuple[Recording, Recording] | None]:
    """Asks for two runs with the same change; returns None if one of them is not run to its end."""
    changed = yield FollowUp(one, change, words)
    other_changed = yield FollowUp(other, change, words)
    if changed and changed.finished and other_changed and other_changed.finished:
        return changed, other_changed
    return None


def effect_of(
    follow_up: FollowUp, *, on_answers: bool = True, besides: int = 0
) -> Answers[Divergence | ModelAnswered | None]:
    """Asks for a follow-up, and returns what it changes in the training, `besides` one variable, or in a model's answers.

    A difference counts only if the run repeats itself without the change.
    """
    recording = follow_up.recording
    changed = yield follow_up
    if changed is None:
        return None
    points = divergences_of(recording, changed)
    ignored = {point for point, each in points if each.number == besides}
    effect: Divergence | ModelAnswered | None = first_divergence(recording, changed, ignored)
    if effect is None and on_answers:
        effect = first_other_answer(recording, changed)
    if effect is None:
        return None
    again = yield once_more(recording)
    return effect if again and is_deterministic(recording, again) else None


# The first update of a training


def trainings_of(one: Recording, other: Recording) -> list[int]:
    """Returns the trainings whose first steps are in both recordings."""
    mine, theirs = ({step.training for step in first_steps(each)} for each in (one, other))
    return sorted(mine & theirs)


def update_ratio(
    one: Recording, other: Recording, training: int = 1, least: float = ONE_DIRECTION
) -> float | None:
    """Returns the first update of the other in units of the first one's, if the two have one direction."""
    return ratio_of(*first_updates(one, other, training), least)


def optimizer_ratio(one: Recording, other: Recording, training: int) -> float | None:
    """Returns the same of the means of gradients that optimizers keep, or else of the means of their squares."""
    mine, theirs = optimizer_vectors(one, training), optimizer_vectors(other, training)
    common = [key for key in mine if key in theirs]
    kept_means = means_in(mine)
    means = [key for key in common if key in kept_means]
    kept = means or common
    ratio = ratio_of([mine[key] for key in kept], [theirs[key] for key in kept])
    return ratio if means or ratio is None else math.sqrt(ratio)


def means_in(slots: Mapping[Key, Vector]) -> dict[Key, Vector]:
    """Returns the slots in which an optimizer keeps means of gradients, not of their squares: these it may keep in another."""
    units = {key: unit_of(vector) for key, vector in slots.items()}
    return {key: vector for key, vector in slots.items() if is_mean(key, vector, slots, units)}


def is_mean(
    key: Key, vector: Vector, slots: Mapping[Key, Vector], units: Mapping[Key, Vector]
) -> bool:
    if min(vector, default=0) < 0:
        return True
    if len(vector) < ENOUGH_ENTRIES:
        return False
    squares = tuple(entry * entry for entry in vector)
    unit = unit_of(squares)
    # One entry rules most others out: unit vectors with such a cosine differ by less than NEAR_UNIT in each.
    largest = max(range(len(unit)), key=unit.__getitem__)
    near = (
        slots[other]
        for other, each in units.items()
        if len(each) > largest and abs(each[largest] - unit[largest]) <= NEAR_UNIT and other != key
    )
    return any(cosine(squares, each) >= EXACT for each in near)


def unit_of(vector: Vector) -> Vector:
    """Returns a vector of the same direction with the length 1; one of zeros as it is."""
    size = size_of(vector)
    return tuple(entry / size for entry in vector) if size else vector


def first_steps(recording: Recording) -> list[StepEnded]:
    return [step for step in recording.of(StepEnded) if step.number == 1]


def first_step(recording: Recording, training: int) -> StepEnded | None:
    return next((step for step in first_steps(recording) if step.training == training), None)


def first_change(recording: Recording, training: int) -> StepEnded | None:
    """Returns the first step of a training that changes a weight, after the same values: a learning rate may begin with 0."""
    first = first_step(recording, training)
    if first is None:
        return None
    before = {value.number: value.sample for value in first.initial_values}
    for step in recording.of(StepEnded):
        if step.training == training and any(
            before.get(value.number) not in (None, value.sample) for value in step.values
        ):
            return replace(step, initial_values=first.initial_values)
    return first


def optimizer_vectors(recording: Recording, training: int) -> dict[Key, Vector]:
    step = first_step(recording, training)
    values = step.optimizer_values if step else ()
    return {key: sample.entries for key, (_, sample) in by_key(recording, values).items()}


def first_updates(
    one: Recording, other: Recording, training: int
) -> tuple[list[Vector], list[Vector]]:
    """Returns the first updates of all variables that both have trained, in one order."""
    if number_of_change(one, training) != number_of_change(other, training):
        return [], []
    mine, theirs = first_update(one, training), first_update(other, training)
    common = sorted(mine.keys() & theirs.keys(), key=str)
    return [mine[key] for key in common], [theirs[key] for key in common]


def number_of_change(recording: Recording, training: int) -> int:
    step = first_change(recording, training)
    return step.number if step else 0


def first_update(recording: Recording, training: int) -> Mapping[Key, Vector]:
    """Returns by how much the first step that changes anything has changed each trained variable."""
    step = first_change(recording, training)
    after = {value.number: value.sample.entries for value in step.values} if step else {}
    return {
        key: tuple(new - old for new, old in zip(after[number], sample.entries))
        for key, (number, sample) in before_first_update(recording, training).items()
    }


def before_first_update(recording: Recording, training: int) -> Mapping[Key, tuple[int, Sample]]:
    """Returns the values of the trained variables before the first step that changes anything."""
    step = first_change(recording, training)
    if step is None:
        return {}
    after = {value.number for value in step.values}
    return by_key(
        recording,
        [
            value
            for value in step.initial_values
            if value.number in recording.trained and value.number in after
        ],
    )


def first_gradients(recording: Recording, training: int) -> Mapping[Key, Vector]:
    """Returns what is in proportion to the first gradients: the means of them that an optimizer keeps, or else the update.

    An optimizer that keeps the means of their squares only divides by their roots; the update has the signs.
    """
    updates, kept = first_update(recording, training), optimizer_vectors(recording, training)
    signed = means_in(kept)
    if signed or not any(map(any, kept.values())):
        return signed or updates
    if number_of_change(recording, training) > 1:
        return {}  # what is kept is that of the first step
    pairs = list(zip(updates.items(), kept.values()))
    if len(updates) != len(kept) or any(len(pair[0][1]) != len(pair[1]) for pair in pairs):
        return {}
    return {
        key: tuple(
            math.copysign(math.sqrt(max(square, 0)), change)
            for change, square in zip(update, squares)
        )
        for (key, update), squares in pairs
    }


def growth_ratio(one: Recording, other: Recording, third: Recording, training: int) -> float | None:
    """Returns how much the first gradients change from one run to a third, in units of their change from one to the other.

    None if the changes have not one direction, or if they are small.
    """
    mine, others, thirds = (first_gradients(each, training) for each in (one, other, third))
    common = sorted(mine.keys() & others.keys() & thirds.keys(), key=str)
    before = [entry for key in common for entry in mine[key]]
    change, other_change = (
        [tuple(b - a for a, b in zip(mine[key], after[key])) for key in common]
        for after in (others, thirds)
    )
    size = size_of(tuple(entry for vector in change for entry in vector))
    if len(before) < ENOUGH_ENTRIES or size <= tolerance(one) * size_of(tuple(before)):
        return None
    return ratio_of(change, other_change, EXACT)


def differs_by_penalty(one: Recording, other: Recording, training: int, least: int) -> bool:
    """Tells whether the first updates, or the gradients, differ by nothing but what a penalty on the weights adds.

    The derivative of a weight's square is a multiple of the weight, and that of its absolute value has its sign.
    """
    before = before_first_update(one, training)
    weights = {key: sample.entries for key, (_, sample) in before.items()}
    mine, theirs = first_update(one, training), first_update(other, training)
    updates = [(mine[key], theirs[key], [weights[key]]) for key in mine if key in theirs]
    kept, others = first_gradients(one, training), first_gradients(other, training)
    gradients = [(kept[key], others[key], [*weights.values()]) for key in kept if key in others]
    return adds_multiples(updates, least) or adds_multiples(gradients, least)


def adds_multiples(changes: list[tuple[Vector, Vector, list[Vector]]], least: int) -> bool:
    """Tells whether each pair of changes is equal, or differs in the direction of one of these weights or of its signs."""
    explained = 0
    for one, other, weights in changes:
        difference = tuple(b - a for a, b in zip(one, other))
        if size_of(difference) <= SAME_UPDATE * size_of(one):
            continue
        signs = [tuple(math.copysign(1.0, each) for each in weight) for weight in weights]
        if not any(abs(cosine(difference, each)) >= STRAIGHT for each in [*weights, *signs]):
            return False
        explained += len(difference)
    return explained >= least


def size_of(vector: Vector) -> float:
    return math.hypot(*vector)


def cosine(one: Vector, other: Vector) -> float:
    sizes = size_of(one) * size_of(other)
    return sum(a * b for a, b in zip(one, other)) / sizes if sizes else 0.0


def ratio_of(one: list[Vector], other: list[Vector], least: float = ONE_DIRECTION) -> float | None:
    """Returns by what factor one list of vectors is the other, None if they have not one direction."""
    mine, theirs = (tuple(entry for vector in side for entry in vector) for side in (one, other))
    along = cosine(mine, theirs)
    return along * size_of(theirs) / size_of(mine) if along >= least else None
