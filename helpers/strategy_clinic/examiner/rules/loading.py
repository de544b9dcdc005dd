"""Silent modes of what is loaded: where it lies then, and how its training goes on. Rules from runs to findings."""

from ..recording import Finding, Observation
from . import blame
from .silent import each_run, named, observed


@each_run
def loaded_outside(run: Observation) -> list[Finding]:
    """fm25: what was saved on several devices takes its own place again, on one of them, as it was loaded outside the scope."""
    found = []
    for place, fact in enumerate(run.facts):
        if fact["fact"] != "loaded" or fact["scope"] or fact["replicas"] < 2 or not fact["at"]:
            continue
        saves = [each for each in saves_before(run, place, fact["path"]) if was_spread(run, each)]
        single = single_in(run, fact)
        if saves and single and not meant(run, fact) and takes_its_place(run, place, saves[-1]):
            says = f"loaded outside the scope: all of its {len(single)} variables are on one device"
            proof = observed(
                f"it was saved from {fact['replicas']} devices, and is used as before", run
            )
            found.append(Finding("fm25", tuple(fact["at"]), says, proof, (run.devices,)))
    return found


def single_in(run: Observation, load: dict) -> list[int]:
    """What was loaded into one device alone; a variable in central storage is one, too, and every replica reads it."""
    return [number for number in load["single"] if not run.is_spread(number)]


def meant(run: Observation, fact: dict) -> bool:
    """Whether the program also loads the same file in the scope: then it knows the difference."""
    return any(each["scope"] and each["path"] == fact["path"] for each in run.of("loaded"))


def takes_its_place(run: Observation, place: int, save: dict) -> bool:
    """Whether what was loaded is trained, or is called on a line that has called what was saved."""
    numbers, held = set(single_in(run, run.facts[place])), set(save["held"])
    trained = any(set(each["state"]["trains"]) & numbers for each in run.of("updated"))
    lines = {tuple(each["at"][0]) for each in called(run.facts, held) if each["at"]}
    again = {tuple(each["at"][0]) for each in called(run.facts[place:], numbers) if each["at"]}
    return trained or bool(lines & again)


def saves_before(run: Observation, place: int, path: str) -> list[dict]:
    saves = [each for each in run.facts if each["fact"] == "saved before"] + [
        each for each in run.facts[:place] if each["fact"] == "saved"
    ]
    return [each for each in saves if each["path"] == path]


def was_spread(run: Observation, save: dict) -> bool:
    return any(run.is_spread(number) for number in save["held"])


@each_run
def other_batch_after_loading(run: Observation) -> list[Finding]:
    """fm26: trained on with more examples in each step than before it was saved, since there are more replicas."""
    found = []
    for save in run.of("saved"):
        place = run.facts.index(save)
        before = called(run.facts[:place], set(save["held"]))
        loads = [
            each
            for each in run.facts[place:]
            if each["fact"] == "loaded" and each["path"] == save["path"]
        ]
        after = called(run.facts[run.facts.index(loads[0]) :], None) if loads and before else []
        for fact in after:
            one, other = before[-1], fact
            same = one["size"] == other["size"] and one["replicas"] < other["replicas"]
            if same and other["at"] and not found and trained_after(run, fact):
                now, then = (each["size"] * each["replicas"] for each in (other, one))
                says = f"a step takes in {now} examples on {other['replicas']} replicas, and {then} before it was saved"
                proof = observed(f"each replica gets {other['size']}, as before", run)
                found.append(
                    Finding("fm26", blame.from_choice(other["at"]), says, proof, (run.devices,))
                )
    return found


def called(facts, numbers: set | None) -> list[dict]:
    models = [each for each in facts if each["fact"] == "called"]
    return [each for each in models if numbers is None or set(each["numbers"]) & numbers]


def trained_after(run: Observation, fact: dict) -> bool:
    later = run.facts[run.facts.index(fact) :]
    updates = [each for each in later if each["fact"] == "updated"]
    return any(set(each["state"]["trains"]) & set(fact["numbers"]) for each in updates)


@each_run
def optimizer_anew(run: Observation) -> list[Finding]:
    """fm29: loaded weights are trained on by an optimizer that starts anew, and is otherwise the one before."""
    found = {}
    for place, fact in enumerate(run.facts):
        if fact["fact"] != "updated" or fact["state"]["steps"] or not fact["state"]["trains"]:
            continue
        trains = set(fact["state"]["trains"])
        loads = [
            each
            for each in run.facts[:place]
            if each["fact"] == "loaded" and trains & set(each["numbers"])
        ]
        for load in loads[-1:]:
            old = [
                state
                for save in saves_before(run, place, load["path"])
                for state in save["optimizers"]
            ]
            alike = [each for each in old if each["steps"] and same_optimizer(each, fact["state"])]
            if alike and load["at"]:
                says = f"the weights were loaded without their optimizer, which was at step {alike[-1]['steps']}"
                proof = observed(f"the next update is step 0 of a new {alike[-1]['kind']}", run)
                at = put_together(run, load) or blame.deciding(load["at"], fact["at"])
                found.setdefault(tuple(at[0]), Finding("fm29", at, says, proof, (run.devices,)))
    return list(found.values())


def put_together(run: Observation, load: dict) -> tuple:
    """Where it was said what a checkpoint holds, if it was saved before a restart: that start has loaded all there was."""
    before = any(each["path"] == load["path"] for each in run.of("saved before"))
    restores = [each for each in run.of("restored") if before and each["path"] == load["path"]]
    return blame.from_caller(restores[-1]["made"]) if restores else ()


def same_optimizer(one: dict, other: dict) -> bool:
    remembers = len(one["variables"]) > 2  # more than a count of steps and a rate
    return remembers and one["kind"] == other["kind"] and one["at"] == other["at"]


@each_run
def restored_too_early(run: Observation) -> list[Finding]:
    """fm35: what was made after a restore did not get the values that the file has for it."""
    found = []
    for each in run.last("ended").get("late", []):
        if each["numbers"] and each["at"]:
            says = f"restored before it was built: {len(each['numbers'])} variables were made later and kept their first values"
            proof = observed(f"{named(run, each['numbers'][0])} is in {each['path']}", run)
            found.append(Finding("fm35", tuple(each["at"]), says, proof, (run.devices,)))
    return found
