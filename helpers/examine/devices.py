"""Silent modes that runs on different numbers of devices show side by side. Rules from runs to findings."""

from . import places
from .compare import SAME, Parting, common_keys, distance
from .facts import Finding, Observation


def batch_grows(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
    """fm21: each step takes in more examples with every device, and the program never asks how many there are."""
    sizes = {run.replicas(): run for run in runs if run.of("batch") and not run.of("asked")}
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
    return run.processes() * max(sum(each["sizes"]) for each in run.of("batch"))


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
                at = places.from_choice(variable["at"])
                return [Finding("fm38", at, says, proof, (one.devices,))]
    return []


def is_one_for_all(variable: dict) -> bool:
    kept = variable.get("copies") and variable.get("reading") != "ON_READ"
    return bool(kept and variable["at"] and "float" in variable["dtype"])


def scaled_gradient(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
    """fm37: with the same examples, the first update on n devices is n times that of one."""
    found = []
    for parting in partings:
        ratio, many = parting.ratio, parting.other.replicas()
        few = parting.one.replicas()
        if (
            ratio
            and many > few
            and abs(ratio - many / few) < 0.02 * many / few
            and same_examples(parting)
        ):
            updates = [each for each in parting.other.of("gradient") if each["at"]]
            if updates:
                says = f"the first update on {many} devices is {ratio:.2f} times that of {few}: each divides by its own part"
                at = places.from_choice(places.from_value(updates[0]["at"], ("gradient",)))
                found.append(Finding("fm37", at, says, parting.words, (few, many)))
    return found[:1]


def same_examples(parting: Parting) -> bool:
    """Whether both were seen to take in as many examples in a step, with optimizers of the same rate."""
    rates = [
        {each["state"]["at"] for each in run.of("updated")} for run in (parting.one, parting.other)
    ]
    counts = [examples_of(run) for run in (parting.one, parting.other)]
    return rates[0] == rates[1] and counts[0] == counts[1] > 0


def examples_of(run: Observation) -> int:
    """In one step of all replicas: as batches were taken, or as models were called."""
    batches = [run.processes() * sum(each["sizes"]) for each in run.of("batch")]
    return max(batches or [each["size"] * each["replicas"] for each in run.of("called")], default=0)
