"""Checks fm59: one of several workers has ended, and the others wait in a step for it, or give up after a time limit."""

from ...examiner.blame import from_loop
from ...examiner.findings import Evidence, Finding, Location, Text, counted
from ...examiner.hangs import hangs, has_ended, leaves_early, missing_in_words
from ...examiner.recording import Recording, stack_of
from ...examiner.rule import Runs, Steps, reclassify, rule_of_runs
from ...observer.events import ExceptionRaised, Stack

TIMED_OUT = "Collective has timed out"


@reclassify("fm59")
def of_one_worker(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> None:
    """Names no mode: the exception of one worker does not say what the others did. The rules below look at all of them."""


@rule_of_runs("fm59")
def others_wait(runs: Runs) -> Steps:
    if leaves_early(runs.recordings):
        yield from hangs(runs.recordings, "fm59")


@rule_of_runs("fm59")
def others_give_up(runs: Runs) -> Steps:
    """Yields a finding for the first worker that a time limit has ended in a step, while another has come to its end."""
    tasks = [run for run in runs.recordings if run.task]
    for run in tasks:
        raised = run.last(ExceptionRaised)
        if raised and is_in_step(raised) and any(map(has_ended, tasks)):
            stack = stack_of(raised)
            ended = "; ".join(missing_in_words(tasks, ()))
            message = Text(f"{run.task} gives up in a step at ", Location(stack), f"; {ended}")
            proof = Text(f"raised on {counted(run.devices, 'device')}: {raised.error}: {TIMED_OUT}")
            place = Location(from_loop(stack))
            yield Finding("fm59", place, Evidence.RAISED, message, proof, (run.devices,))
            return


def is_in_step(raised: ExceptionRaised) -> bool:
    """Tells whether a time limit has ended a step, and not a save."""
    return TIMED_OUT in raised.traceback and "/checkpoint/" not in raised.traceback
