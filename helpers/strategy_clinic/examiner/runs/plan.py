"""The whole examination: which runs are made, what is compared, and what comes of it."""

from ...base.errors import UserError
from ..recording import Examination, Observation, troubles_of
from ..rules import devices, divergence, findings
from . import cluster, followups, restarting
from .sandbox import Case, Workplace, require_program

USUAL_COUNTS = (1, 2)
NOT_REPEATED = "it does not repeat itself on the same devices, so its runs were not compared"


def examine(program: Case, counts=USUAL_COUNTS, restart: bool = False, tell=print) -> Examination:
    """Runs the program on every number of devices, and once more as it was, before it is compared with itself.

    Ctrl-C ends it with what is known by then.
    """
    program = require_program(program)
    if not counts or not all(isinstance(each, int) and 1 <= each <= 8 for each in counts):
        raise UserError(
            f"devices = {list(counts)!r} is not known here; valid: whole numbers from 1 to 8."
        )
    return examined(program, sorted(set(counts)), tell, restart)


def examined(program: Case, counts: list[int], tell, restart: bool = False) -> Examination:
    """The same, of a program that can be run, on numbers of devices that there are."""
    found = Examination(program.name)
    partings = []
    try:
        partings = compare_devices(program, counts, found, tell)
        ask_again(program, found, tell)
        if restart:
            restarting.try_restart(program, found, tell)
    except KeyboardInterrupt:
        found.stopped = True
        found.notes.append("stopped before all runs were made")
    found.findings = findings.findings_of(found.runs, partings)
    found.notes += uncompared(found) + unexplained(partings, found)
    found.notes += [f"not everything was seen ({each})" for each in troubles_of(found.runs)]
    found.failure = failure_of(found)
    return found


def unexplained(partings: list, found: Examination) -> list[str]:
    """What two runs differ in although no rule says why."""
    if not partings or any("compared" in each.proof for each in found.findings):
        return []
    first = partings[0]
    one, other = (devices.examples_of(run) for run in (first.one, first.other))
    if one and other and one != other:
        counts = f"{first.one.devices} and {first.other.devices} devices"
        return [
            f"a step takes in {one} and {other} examples on {counts}: these are other trainings"
        ]
    return [f"{first.words}; that is none of the modes by itself"]


def make_run(program: Case, role: str, count: int, found: Examination, tell) -> Observation:
    tell(f"running on {count} device{'s' if count > 1 else ''} ({role}) ...")
    with Workplace(program) as place:
        run = place.run(role, count, "--seed")
    found.runs.append(run)
    tell(f"  {run.ended} after {run.seconds:.1f} s")
    if place.stopped:
        raise KeyboardInterrupt
    return run


def compare_devices(program: Case, counts: list, found: Examination, tell) -> list:
    """The largest number first, since most failures show there; fewer runs where nothing could be compared."""
    first = make_run(program, "watched", counts[-1], found, tell)
    if kind := cluster.asked_for(first):
        return compare_processes(program, kind, found, tell)
    if not comparable(first, found) or len(counts) < 2:
        return []
    others = [make_run(program, "compared", count, found, tell) for count in counts[:-1]]
    partings = [divergence.parting(other, first) for other in others if other.ended == "finished"]
    if not any(partings):
        return []
    again = make_run(program, "again", counts[-1], found, tell)
    found.runs.remove(again)
    if not divergence.repeats(first, again):
        found.notes.append(NOT_REPEATED)
        return []
    return [each for each in partings if each]


def compare_processes(program: Case, kind: str, found: Examination, tell) -> list:
    """What runs alone and asks for several processes is run in them, and compared with one."""
    alone, runs = found.runs[0], run_cluster(program, kind, tell)
    found.runs[:] = runs
    if runs[0].ended == "stopped":  # the first of them is a chief or a worker, and no server
        raise KeyboardInterrupt
    if kind == "parameter_server" or {alone.ended, *(each.ended for each in runs)} != {"finished"}:
        return []
    one = make_run(program, "compared", 1, found, tell) if alone.devices > 1 else alone
    parting = divergence.parting(one, runs[0])
    if parting and not divergence.repeats(runs[0], run_cluster(program, kind, tell)[0]):
        found.notes.append(NOT_REPEATED)
        return []
    return [parting] if parting else []


def run_cluster(program: Case, kind: str, tell) -> list[Observation]:
    tell(f"running in several processes, as {kind} asks for ...")
    with Workplace(program) as place:
        runs = cluster.run_tasks(place, kind)
    for run in runs:
        tell(f"  {run.role} {run.ended} after {run.seconds:.1f} s")
    return runs


def ask_again(program: Case, found: Examination, tell):
    """Whether a variable is missed that no checkpoint holds, and what else the first run has left open."""
    first = found.runs[0]
    for question in followups.questions_of(first) if first.role == "watched" else ():
        tell(f"running {question.words} ...")
        with Workplace(program) as place:
            other = place.run("asked", first.devices, "--seed", *question.options)
        new = question.answer(first, other)
        if new and question.compared and not repeats_itself(program, first, found):
            return
        found.runs[0] = first = first.also(*new)


def repeats_itself(program: Case, first: Observation, found: Examination) -> bool:
    with Workplace(program) as place:
        again = place.run("again", first.devices, "--seed")
    same = divergence.repeats(first, again) and not divergence.answers_part(first, again)
    if not same:
        found.notes.append(NOT_REPEATED)
    return same


def comparable(run: Observation, found: Examination) -> bool:
    if run.ended != "finished":
        return False
    if run.replicas() < 2:
        found.notes.append(
            "it makes no strategy with several replicas, so there are no devices to compare"
        )
        return False
    return True


def failure_of(found: Examination) -> str:
    """A run that ended badly although no mode explains it; a program may count its devices, and refuse to run on fewer."""
    unwell = [each for each in unwell_runs(found) if each.role != "compared"]
    bad = min(unwell, key=lambda run: run.ended != "raised", default=None)  # the others wait for it
    named = {finding.mode for finding in found.findings if finding.proof.startswith("raised")}
    if bad is None or named:
        return ""
    return ended_words(bad)


def uncompared(found: Examination) -> list[str]:
    """The runs on other numbers of devices that ended badly."""
    return [
        f"on {run.devices} device{'s' if run.devices > 1 else ''} it {ended_words(run)}, so it was not compared there"
        for run in unwell_runs(found)
        if run.role == "compared"
    ]


def unwell_runs(found: Examination) -> list[Observation]:
    return [each for each in found.runs if each.ended not in ("finished", "stopped")]


def ended_words(run: Observation) -> str:
    lines = run.last("raised").get("text", run.output).strip().splitlines()
    return f"{run.ended} with status {run.status}: {lines[-1] if lines else 'no output'}"
