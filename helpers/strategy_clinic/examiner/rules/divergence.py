"""Runs side by side: what of a program repeats itself, and the first step and quantity in which two runs part."""

from dataclasses import dataclass

from ..recording import Observation

SAME = 5e-3  # healthy programs agree to 3e-6 over 1, 2 and 4 devices, and with one silent fault to 1e-2 at best
SAME_IN_HALF = 5e-2  # in 16 bits
ALIKE = 0.9  # cosine of two updates: statistics of parts of a batch bend gradients, and so do a few steps in one graph
# Cosine for one variable whose gradient nothing has bent between it and the loss; a few entries agree by chance.
STRAIGHT, ENOUGH_ENTRIES = 0.99, 8


@dataclass(frozen=True)
class Parting:
    """Two runs of one program that come to other values, first of all to these."""

    one: Observation
    other: Observation
    step: int  # 0 where they part after the steps that are kept
    variable: dict
    apart: float

    @property
    def words(self) -> str:
        when = f"in step {self.step}" if self.step else "later"
        counts = f"{self.one.devices} and {self.other.devices} devices"
        return (
            f"compared {counts}: {self.variable.get('name', '?')} parts {when}, by {self.apart:.2g}"
        )


def common_keys(run: Observation, numbers) -> dict:
    """Variables as both runs have them: made at the same line, of the same shape, the first, the second, ..."""
    seen, found = {}, {}
    for number in sorted(map(int, numbers)):
        variable = run.variable(number)
        where = tuple(map(tuple, variable.get("at", [])[:3]))
        key = (where, tuple(variable.get("shape", [])), variable.get("maker"))
        seen[key] = seen.get(key, 0) + 1
        found[(*key, seen[key])] = number
    return found


def distance(one: list, other: list) -> float:
    """How far two samples are apart, relative to the size of the larger one."""
    if len(one) != len(other) or not one:
        return 0.0 if one == other else float("inf")
    size = max(max(map(abs, one[1:])), max(map(abs, other[1:])), 1e-3)
    found = max(abs(a - b) for a, b in zip(one[1:], other[1:])) / size
    return found if found == found else (0.0 if str(one) == str(other) else float("inf"))


def stages(run: Observation) -> list[tuple[int, dict]]:
    steps = [(each["number"], each["values"]) for each in run.of("step")]
    return [*steps, (0, run.last("ended").get("values", {}))]


def parting(one: Observation, other: Observation) -> Parting | None:
    """Where trained variables part first; None if they do not, or if there is nothing to compare."""
    limit = SAME_IN_HALF if half(one) else SAME
    trained = trained_numbers(one)
    for (step, left), (_, right) in zip(stages(one), stages(other)):
        mine, theirs = common_keys(one, left), common_keys(other, right)
        common = [key for key in mine if key in theirs]  # in the order in which they were made
        for key in common:
            if step or mine[key] in trained:
                apart = distance(left[str(mine[key])], right[str(theirs[key])])
                if apart > limit:
                    return Parting(one, other, step, one.variable(mine[key]), apart)
    return None


def half(run: Observation) -> bool:
    return any(each["dtype"] in ("bfloat16", "float16") for each in run.of("variable"))


def trained_numbers(run: Observation) -> set[int]:
    return {number for each in run.of("updated") for number in each["state"]["trains"]}


def update_ratio(one: Observation, other: Observation) -> float | None:
    """The first update of the other in units of the first one's, if the two have one direction."""
    return ratio_of(*first_updates(one, other))


def straight_ratio(one: Observation, other: Observation) -> float | None:
    """The same of those variables alone that each keep their direction, such as what comes after the last normalization."""
    pairs = [each for each in zip(*first_updates(one, other)) if len(each[0]) >= ENOUGH_ENTRIES]
    kept = [each for each in pairs if ratio_of(*[[side] for side in each], STRAIGHT) is not None]
    return ratio_of([left for left, _ in kept], [right for _, right in kept])


def first_updates(one: Observation, other: Observation) -> tuple[list, list]:
    """Of what both have trained in their first steps, in one order."""
    if not one.of("step") or not other.of("step"):
        return [], []
    left, right = update(one), update(other)
    common = sorted(left.keys() & right.keys(), key=str)
    return [left[key] for key in common], [right[key] for key in common]


def ratio_of(left: list, right: list, alike: float = ALIKE) -> float | None:
    """By what factor one list of vectors is the other, if they have one direction."""
    left, right = ([value for vector in each for value in vector] for each in (left, right))
    dot, a, b = (
        sum(x * y for x, y in zip(*each)) for each in ((left, right), (left, left), (right, right))
    )
    return dot / a if a > 0 and b > 0 and dot >= alike * (a * b) ** 0.5 else None


def slots_ratio(one: Observation, other: Observation) -> float | None:
    """The same of the means of gradients that optimizers keep."""
    kept = [next(iter(run.of("step")), {}).get("slots", {}) for run in (one, other)]
    left, right = (
        {key: slots[str(n)][1:] for key, n in common_keys(run, slots).items()}
        for run, slots in zip((one, other), kept)
    )
    signed = [key for key in left.keys() & right.keys() if min(left[key], default=0) < 0]
    return ratio_of([left[key] for key in signed], [right[key] for key in signed])


def update(run: Observation) -> dict:
    """By how much the first step has changed each variable."""
    step = run.of("step")[0]
    trained = trained_numbers(run)
    before = [n for n in step.get("before", {}) if int(n) in trained]
    known = {n: step["values"][n] for n in before if n in step["values"]}
    return {
        key: [a - b for a, b in zip(known[str(n)][1:], step["before"][str(n)][1:])]
        for key, n in common_keys(run, known).items()
    }


def answers_part(one: Observation, other: Observation) -> dict:
    """The first thing that a model says otherwise in the other run, where it is asked on the same way."""
    limit = SAME_IN_HALF if half(one) else SAME
    mine, theirs = answers_given(one), answers_given(other)
    for key in [each for each in mine if each in theirs]:
        if distance(mine[key]["values"], theirs[key]["values"]) > limit:
            return mine[key]
    return {}


def answers_given(run: Observation) -> dict:
    """By the lines that led to it, the first, the second, ... of what models said."""
    found = {}
    for each in run.of("answered"):
        way = str(each["at"])
        found[way, sum(key[0] == way for key in found)] = each
    return found


def repeats(one: Observation, other: Observation) -> bool:
    """Whether a program comes to the same values when it is run twice in the same way."""
    return one.ended == other.ended and parting(one, other) is None
