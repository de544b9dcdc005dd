"""Experiments: functions of a setup that run where the setup needs them, here or in processes of their own."""

from functools import wraps

from . import workers
from .extract_source import definitions
from .proofs import Result
from .run_in_process import run_here

FOUND: dict = {}  # what this kernel has found, by the experiment's source and setup


def run_all(jobs: list) -> list[Result]:
    """Runs (experiment, setup) pairs; those that can share processes are sent to them together."""
    results = {}
    for (place, _), chosen in grouped(jobs).items():
        pairs = [jobs[i] for i in chosen]
        here = place is None
        done = [run_here(f.body, s) for f, s in pairs] if here else workers.launch(place, pairs)
        results |= dict(zip(chosen, done))
    listed = [results[i] for i in range(len(jobs))]
    FOUND.update(zip(keys(jobs), listed))
    return listed


def grouped(jobs: list) -> dict[tuple, list[int]]:
    """Which jobs run together: those of one place, but in a cluster each by itself."""
    groups = {}
    for i, (_, setup) in enumerate(jobs):
        place = workers.place(setup)
        # A second strategy in a cluster's processes may meet what the first has left behind, and stall.
        groups.setdefault((place, i if place and place[0] else None), []).append(i)
    return groups


def recall(jobs: list) -> list[Result]:
    """As run_all, but what this kernel has found for the same source and setup is not run again."""
    wanted = keys(jobs)
    run_all([job for job, key in zip(jobs, wanted) if key not in FOUND])
    return [FOUND[key] for key in wanted]


def keys(jobs: list) -> list[tuple]:
    """What a result is kept under: the experiment's name, the source of all that it uses, and the setup."""
    sources = {run: definitions([run]) for run in dict.fromkeys(run for run, _ in jobs)}
    return [(run.__name__, sources[run], setup) for run, setup in jobs]


def experiment(function):
    """Marks a function of a setup as an experiment: calling it runs it where the setup needs it to run."""

    @wraps(function)
    def run(setup):
        return run_all([(run, setup)])[0].unwrap()

    run.body = function
    return run
