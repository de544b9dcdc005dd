"""Silent modes that runs on different numbers of devices show side by side. Rules from runs to findings."""

import itertools

from ..recording import Finding, Observation
from . import blame, divergence, means
from .divergence import SAME, Parting, common_keys, distance

COMPARED = "watched", "compared"  # runs of the program as it is, from its beginning
NEAR = 0.1  # of a factor, which is 1 in a healthy program and at least 2 in a sick one


def batch_grows(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
    """fm21: each step takes in more examples with every device, and the program never asks how many there are."""
    sizes = {run.replicas(): run for run in runs if largest_batch(run) and not run.of("asked")}
    few, many = min(sizes, default=1), max(sizes, default=1)
    if few == many:
        return []
    one, other = (largest_batch(sizes[each]) for each in (few, many))
    made = sizes[many].last("by_function")
    if not made or one == other:
        return []
    inside = [
        each for each in sizes[many].of("batched") if each["size"] * many == other and each["at"]
    ]
    at = tuple(inside[-1]["at"] if inside else made["at"])
    says = f"each replica takes a whole batch: a step has {one} examples on {few} devices and {other} on {many}"
    return [Finding("fm21", at, says, f"compared {few} and {many} devices", (few, many))]


def largest_batch(run: Observation) -> int:
    """Examples in a step: as batches were taken, or else as every replica's dataset was batched; 0 where neither was seen."""
    taken = [sum(each["sizes"]) for each in run.of("batch")]
    return run.processes() * max(
        taken or [run.replicas() * each for each in given_sizes(run)[-1:]], default=0
    )


def given_sizes(run: Observation) -> list[int]:
    """The sizes of batches in functions that make a dataset for a replica."""
    asking = [list(each["at"][0]) for each in run.of("by_function") if each["at"]]
    return [
        each["size"] for each in run.of("batched") if any(list(at) in asking for at in each["at"])
    ]


def processes_apart(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
    """fm38 over processes: what a strategy holds once for all of them has another value in each."""
    workers = [run for run in runs if run.role.startswith("worker ") and run.ended == "finished"]
    for one, other in zip(workers, workers[1:]):
        mine, theirs = (run.last("ended").get("values", {}) for run in (one, other))
        keys, others = common_keys(one, mine), common_keys(other, theirs)
        for key in [each for each in keys if each in others]:
            variable = one.variable(keys[key])
            apart = distance(mine[str(keys[key])], theirs[str(others[key])])
            if is_one_for_all(variable) and apart > SAME:
                says = f"{variable['name']} has another value in each of {len(workers)} processes"
                proof = f"compared {one.role} and {other.role}: {apart:.2g} of its size apart at the end"
                at = blame.from_choice(variable["at"])
                return [Finding("fm38", at, says, proof, (one.devices,))]
    return []


def is_one_for_all(variable: dict) -> bool:
    kept = variable.get("copies") and variable.get("reading") != "ON_READ"
    return bool(kept and variable["at"] and "float" in variable["dtype"])


def scaled_gradient(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
    """fm37: with the same examples, the first update on n devices is n times that of one, or what an optimizer keeps of it is."""
    for one, other in itertools.permutations([run for run in runs if run.role in COMPARED], 2):
        few, many = one.replicas(), other.replicas()
        what = grown(one, other, many / few) if many > few and same_examples(one, other) else ""
        updates = [each for each in other.of("gradient") if each["at"]] if what else []
        if updates:
            says = f"{what} on {many} devices, with the same examples: each divides by its own part"
            line = means.into_step(updates[0]["at"], "gradient")
            at = means.from_mean(blame.from_value(line, ("gradient",)))
            words = [each.words for each in partings if (each.one, each.other) == (one, other)]
            proof = next(iter(words), f"compared {few} and {many} devices, in the first step")
            return [Finding("fm37", at, says, proof, (few, many))]
    return []


def grown(one: Observation, other: Observation, factor: float) -> str:
    """What has become this many times as much, if anything has."""
    ratios = {
        "the first update is {:.2f} times as much": divergence.update_ratio(one, other),
        "the first update of what keeps its direction is {:.2f} times as much": divergence.straight_ratio(
            one, other
        ),
        "the gradients that the optimizer keeps are {:.2f} times as much": divergence.slots_ratio(
            one, other
        ),
    }
    for what, ratio in ratios.items():
        if ratio and abs(ratio - factor) < NEAR * factor:
            return what.format(ratio)
    return ""


def same_examples(one: Observation, other: Observation) -> bool:
    """Whether both were seen to take in as many examples in a step, with optimizers of the same rate."""
    rates = [{each["state"]["at"] for each in run.of("updated")} for run in (one, other)]
    counts = [examples_of(run) for run in (one, other)]
    return rates[0] == rates[1] and counts[0] == counts[1] > 0


def examples_of(run: Observation) -> int:
    """In one step of all replicas: as batches were taken, or as models were called."""
    batches = [run.processes() * sum(each["sizes"]) for each in run.of("batch")]
    return max(batches or [each["size"] * each["replicas"] for each in run.of("called")], default=0)
