"""Compares recordings: whether a program repeats itself, and the first step and variable in which two runs differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..observer.events import (
    Ended,
    ModelAnswered,
    Part,
    PartUsed,
    Sample,
    Stack,
    StepEnded,
    VariableValue,
)
from ..observer.replacements import Replacement
from .findings import FollowUp, Replace
from .recording import Recording

SAME = 5e-3  # correct programs agree to 3e-6 on 1, 2 and 4 devices, and with one silent fault to 1e-2 at best
SAME_IN_HALF_PRECISION = 5e-2
ONE_DIRECTION = 0.9  # cosine of two updates: statistics of parts of a batch bend gradients, and so do a few steps in one graph
# Cosine for one variable if nothing has bent its gradient between it and the loss; a few entries agree by chance.
STRAIGHT, ENOUGH_ENTRIES = 0.99, 8
SAME_UPDATE = 1e-4  # relative: rounding makes 1e-6

Key = Hashable
Point = tuple[int, Key]  # a variable after a step
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

    def __str__(self) -> str:
        when = f"in step {self.step}" if self.step else "later"
        counts = f"{self.one.devices} and {self.other.devices} devices"
        if self.one.plain:
            counts += f" with the batches of {self.other.replicas}"
        return f"compared {counts}: {self.name} differs {when}, by {self.distance:.2g}"


def first_divergence(
    one: Recording, other: Recording, ignored: Collection[Point] = ()
) -> Divergence | None:
    """Returns where trained variables first differ, None if they do not or if there is nothing to compare."""
    divergences = (each for point, each in divergences_of(one, other) if point not in ignored)
    return next((each for each in divergences if each.distance > tolerance(one)), None)


def divergent_points(one: Recording, other: Recording, part: float) -> frozenset[Point]:
    """Returns where two runs differ by more than a part of what first_divergence tolerates."""
    least = part * tolerance(one)
    return frozenset(point for point, each in divergences_of(one, other) if each.distance > least)


def divergences_of(one: Recording, other: Recording) -> Iterator[tuple[Point, Divergence]]:
    """Yields how far each trained variable is apart after each step, in the order in which they were made."""
    for (step, values), (_, other_values) in zip(stages(one), stages(other)):
        samples, other_samples = by_key(one, values), by_key(other, other_values)
        for key, (number, sample) in samples.items():
            if key in other_samples and (step or number in one.trained):
                other_number, other_sample = other_samples[key]
                apart = distance(sample, other_sample)
                name = one.name_of(number)
                yield (step, key), Divergence(one, other, step, name, apart, other_number)


def is_finite(recording: Recording) -> bool:
    """Tells whether all values that were compared are numbers."""
    entries = (
        entry
        for _, values in stages(recording)
        for value in values
        if value.number in recording.trained
        for entry in value.sample.entries
    )
    return all(map(math.isfinite, entries))


def stages(recording: Recording) -> list[tuple[int, tuple[VariableValue, ...]]]:
    ended = recording.last(Ended)
    steps = [(step.number, step.values) for step in recording.of(StepEnded)]
    return [*steps, (0, ended.values if ended else ())]


def by_key(recording: Recording, values: Iterable[VariableValue]) -> dict[Key, tuple[int, Sample]]:
    """Returns numbers and samples by keys that two runs share: made at the same lines, of one shape, the first, second, ..."""
    seen: Counter[Key] = Counter()
    found: dict[Key, tuple[int, Sample]] = {}
    for value in sorted(values, key=lambda value: value.number):
        made = recording.variable(value.number)
        key = (made.location[:3], made.shape, made.maker) if made else ()
        seen[key] += 1
        found[key, seen[key]] = value.number, value.sample
    return found


def distance(one: Sample, other: Sample) -> float:
    """Returns how far two samples are apart, relative to the largest entry."""
    if len(one.entries) != len(other.entries) or not one.entries:
        return 0.0 if one == other else math.inf
    size = max(*map(abs, one.entries), *map(abs, other.entries), 1e-3)
    apart = max(abs(a - b) for a, b in zip(one.entries, other.entries)) / size
    if not math.isnan(apart):
        return apart
    return 0.0 if str(one) == str(other) else math.inf


def tolerance(recording: Recording) -> float:
    half = any(made.dtype in ("bfloat16", "float16") for made in recording.variables.values())
    half = half or any(used.part is Part.HALF_PRECISION for used in recording.of(PartUsed))
    return SAME_IN_HALF_PRECISION if half else SAME


# A run and the same run again


def repeats(one: Recording, other: Recording) -> bool:
    """Tells whether a program comes to the same values when it is run twice in the same way."""
    return one.outcome is other.outcome and first_divergence(one, other) is None


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


def depends_on_mean(matched: Recording) -> Generator[FollowUp, Recording | None, bool]:
    """Tells whether a matched run trains as the plain one if its batches have that one's examples several times.

    A step may use the batch size of one replica by itself: it divides by it, or draws as much noise. Then the runs differ though
    the program is right.
    """
    plain: Recording | None = matched.plain
    parts = {Replacement.SAME_EXAMPLES}
    if plain and any(used.part is Part.RANDOM_NUMBERS for used in plain.of(PartUsed)):
        parts.add(Replacement.CONSTANT_NUMBERS)
        change = Replace(frozenset({Replacement.CONSTANT_NUMBERS}))
        plain = yield FollowUp(plain, change, "with constants instead of random numbers")
    same = yield FollowUp(
        matched, Replace(frozenset(parts)), "with the same examples in each part of a batch"
    )
    both = plain is not None and same is not None and plain.finished and same.finished
    return bool(both and plain and same and first_divergence(plain, same) is None)


def effect_of(
    follow_up: FollowUp, *, on_answers: bool = True
) -> Generator[FollowUp, Recording | None, Divergence | ModelAnswered | None]:
    """Asks for a follow-up, and returns what it changes in the training or in a model's answers.

    A difference counts only if the run repeats itself without the change.
    """
    recording = follow_up.recording
    changed = yield follow_up
    if changed is None:
        return None
    effect: Divergence | ModelAnswered | None = first_divergence(recording, changed)
    if effect is None and on_answers:
        effect = first_other_answer(recording, changed)
    if effect is None:
        return None
    again = yield FollowUp(recording, None, "once more, as it was")
    return effect if again and is_deterministic(recording, again) else None


# The first update


def update_ratio(one: Recording, other: Recording) -> float | None:
    """Returns the first update of the other in units of the first one's, if the two have one direction."""
    return ratio_of(*first_updates(one, other))


def straight_update_ratio(one: Recording, other: Recording) -> float | None:
    """Returns the same of the variables that keep their direction, such as those after the last normalization."""
    pairs = [pair for pair in zip(*first_updates(one, other)) if len(pair[0]) >= ENOUGH_ENTRIES]
    kept = [
        (mine, theirs) for mine, theirs in pairs if ratio_of([mine], [theirs], STRAIGHT) is not None
    ]
    return ratio_of([mine for mine, _ in kept], [theirs for _, theirs in kept])


def optimizer_ratio(one: Recording, other: Recording) -> float | None:
    """Returns the same of the means of gradients that optimizers keep, or else of the means of their squares."""
    mine, theirs = optimizer_vectors(one), optimizer_vectors(other)
    common = [key for key in mine if key in theirs]
    signed = [key for key in common if min(mine[key], default=0) < 0]
    kept = signed or common
    ratio = ratio_of([mine[key] for key in kept], [theirs[key] for key in kept])
    return ratio if signed or ratio is None else math.sqrt(ratio)


def optimizer_vectors(recording: Recording) -> dict[Key, Vector]:
    steps = recording.of(StepEnded)
    values = steps[0].optimizer_values if steps else ()
    return {key: sample.entries for key, (_, sample) in by_key(recording, values).items()}


def first_updates(one: Recording, other: Recording) -> tuple[list[Vector], list[Vector]]:
    """Returns the first updates of all variables that both have trained, in one order."""
    mine, theirs = first_update(one), first_update(other)
    common = sorted(mine.keys() & theirs.keys(), key=str)
    return [mine[key] for key in common], [theirs[key] for key in common]


def first_update(recording: Recording) -> Mapping[Key, Vector]:
    """Returns by how much the first step has changed each trained variable."""
    steps = recording.of(StepEnded)
    after = {value.number: value.sample.entries for value in steps[0].values} if steps else {}
    return {
        key: tuple(new - old for new, old in zip(after[number], sample.entries))
        for key, (number, sample) in before_first_update(recording).items()
    }


def before_first_update(recording: Recording) -> Mapping[Key, tuple[int, Sample]]:
    """Returns the values of the trained variables that the first step has changed, before it did."""
    steps = recording.of(StepEnded)
    if not steps:
        return {}
    after = {value.number for value in steps[0].values}
    return by_key(
        recording,
        [
            value
            for value in steps[0].initial_values
            if value.number in recording.trained and value.number in after
        ],
    )


def differs_by_penalty(one: Recording, other: Recording) -> bool:
    """Tells whether the first updates, or the means of gradients, differ by nothing but what a penalty on the weights adds.

    The derivative of a weight's square is a multiple of the weight, and that of its absolute value has its sign.
    """
    weights = {key: sample.entries for key, (_, sample) in before_first_update(one).items()}
    mine, theirs = first_update(one), first_update(other)
    updates = [(mine[key], theirs[key], [weights[key]]) for key in mine if key in theirs]
    kept, others = optimizer_vectors(one), optimizer_vectors(other)
    signed = [key for key, vector in kept.items() if key in others and min(vector, default=0) < 0]
    slots = [
        (kept[key], others[key], [each for each in weights.values() if len(each) == len(kept[key])])
        for key in signed
    ]
    return adds_multiples(updates) or adds_multiples(slots)


def adds_multiples(changes: list[tuple[Vector, Vector, list[Vector]]]) -> bool:
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
    return explained >= ENOUGH_ENTRIES


def size_of(vector: Vector) -> float:
    return math.hypot(*vector)


def cosine(one: Vector, other: Vector) -> float:
    sizes = size_of(one) * size_of(other)
    return sum(a * b for a, b in zip(one, other)) / sizes if sizes else 0.0


def ratio_of(one: list[Vector], other: list[Vector], cosine: float = ONE_DIRECTION) -> float | None:
    """Returns by what factor one list of vectors is the other, None if they have not one direction."""
    mine, theirs = ([entry for vector in side for entry in vector] for side in (one, other))
    dot = sum(a * b for a, b in zip(mine, theirs))
    size, other_size = (sum(a * a for a in side) for side in (mine, theirs))
    if size > 0 and other_size > 0 and dot >= cosine * (size * other_size) ** 0.5:
        return dot / size
    return None
