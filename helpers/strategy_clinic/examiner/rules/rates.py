"""Silent modes of what goes on after a restore or through an input. Rules from runs to findings."""

from ..recording import Finding, Observation
from . import blame
from .silent import each_run, observed


@each_run
def rate_replaced(run: Observation) -> list[Finding]:
    """fm46: an optimizer trains on at the learning rate of a file, and not at the one that it was made with."""
    found = []
    for place, fact in enumerate(run.facts):
        if fact["fact"] != "rate" or not fact["at"] or not was_constant(run.facts[:place], fact):
            continue
        for update in updates_of(run.facts[place:], fact)[:1]:
            if at_rate(update["state"], fact["after"]):
                old, new = f"{fact['after']:.4g}", f"{fact['before']:.4g}"
                says = f"the optimizer was made with the learning rate {new}, and the file has brought {old}"
                proof = observed(f"the next step used {old}", run)
                at = blame.deciding(fact["at"], update["at"])
                found.append(Finding("fm46", at, says, proof, (run.devices,)))
    return found


def was_constant(facts, fact: dict) -> bool:
    """Whether another optimizer took its first step at the rate that was saved: one that was lowered is meant to stay."""
    first = [each for each in facts if each["fact"] == "updated" and not each["state"]["steps"]]
    others = [each for each in first if not is_of(each["state"], fact)]
    saved = [state for each in facts if each["fact"] == "saved" for state in each["optimizers"]]
    return any(
        at_rate(each["state"], fact["after"])
        and any(is_of(each["state"], state) and at_rate(state, fact["after"]) for state in saved)
        for each in others
    )


def updates_of(facts, fact: dict) -> list[dict]:
    return [each for each in facts if each["fact"] == "updated" and is_of(each["state"], fact)]


def is_of(state: dict, other: dict) -> bool:
    """Whether two facts tell of the same optimizer, which may have got slots in between."""
    return bool(set(state["variables"]) & set(other["variables"]))


def at_rate(state: dict, rate: float) -> bool:
    try:
        return abs(float(state["at"]) - rate) <= 1e-6 * abs(rate)
    except ValueError:  # a schedule, told by its name
        return False
