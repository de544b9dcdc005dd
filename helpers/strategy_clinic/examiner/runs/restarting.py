"""A program that is killed after its first checkpoint and started again where it stood: does it go on as if it had not been?"""

import shutil

from ..recording import Examination, Observation
from ..rules import divergence
from . import cluster
from .sandbox import Case, Workplace

MOST_VALUES = 3  # variables that a start is given the value of, to see whether it misses it


def try_restart(program: Case, found: Examination, tell):
    first = max(found.runs, key=lambda run: run.devices)
    kind = cluster.asked_for(first)
    where = f"in the processes of {kind}" if kind else f"on {first.devices} devices"
    with Workplace(program) as place:
        start = starter(place, kind, first.devices)
        tell(f"running {where}, to be killed after the first checkpoint ...")
        stopped = start("stopped", "--die")
        if stopped.ended != "killed" or not stopped.of("saved"):
            return found.notes.append(
                "it saved no checkpoint, so there was nothing to restart from"
            )
        left = place.place / "left"
        shutil.copytree(place.copy, left, symlinks=True)
        tell("starting it again ...")
        restarted = start("restarted")

        def once_more(*options: str) -> Observation:
            shutil.rmtree(place.copy)
            shutil.copytree(left, place.copy, symlinks=True)
            return start("asked", *options)

        missed = list(missing(stopped, restarted, once_more, tell))
    found.runs.append(restarted.also(*of_before(stopped), *missed))


def starter(place: Workplace, kind: str, devices: int):
    """How it is started where it stands: by itself, or as all tasks of its cluster, of which the first speaks for them."""

    def start(role: str, *options: str) -> Observation:
        if kind:
            return cluster.run_tasks(place, kind, *options)[0].but(role=role)
        return place.run(role, devices, "--seed", *options)

    return start


def of_before(stopped: Observation) -> tuple:
    """What the second start can know of the first: what was saved, and where. Its variables were other objects."""
    gone = {"fact": "saved before", "held": [], "left": []}
    return tuple(each | gone for each in stopped.facts if each["fact"] == "saved")


def missing(stopped: Observation, restarted: Observation, once_more, tell):
    """The numbers that were not saved and without which the second start trains otherwise than with them."""
    for number, value in not_saved(stopped, restarted)[:MOST_VALUES]:
        name = restarted.variable(number)["name"]
        tell(f"starting it again with {name} as it was, {value:g} ...")
        parted = divergence.parting(restarted, once_more("--begin", f"{number}:{value}"))
        if parted and divergence.repeats(restarted, once_more()):
            why = "started again with the value that it had, the training goes elsewhere"
            yield {"fact": "missed", "numbers": [number], "why": why}


def not_saved(stopped: Observation, restarted: Observation) -> list[tuple[int, float]]:
    """Single numbers that were read and changed before the first save, and that the second start makes at the same place."""
    left = [each for each in stopped.last("saved")["left"] if each["read"] and each["changed"]]
    known = [(each["number"], each["now"]) for each in left if each.get("now") is not None]
    return [
        (number, value)
        for number, value in known
        if stopped.variable(number).get("maker") == "user"
        if stopped.variable(number)["at"] == restarted.variable(number).get("at")
    ]
