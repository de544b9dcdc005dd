"""Runs of experiments, each in the process that its setup needs."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from ..setups.parameters import Setup
from . import workers
from .proofs import Experiment, Result
from .run_in_process import run_here


def experiment(function: Callable[[Setup], Any]) -> Experiment:
    """Makes an experiment of a function of a setup: a call of it runs it where the setup needs it to run."""

    @wraps(function)
    def run(setup: Setup) -> Any:
        return run_all([(marked, setup)])[0].unwrap()

    marked = cast(Experiment, run)
    marked.body = function
    return marked


def run_all(jobs: list[tuple[Experiment, Setup]]) -> list[Result]:
    """Runs each experiment under its setup, together those that can share processes; returns a result for each."""
    groups: dict[tuple[workers.Place | None, int | None], list[int]] = {}
    for number, (_, setup) in enumerate(jobs):
        place = workers.place_of(setup)
        # A second strategy in a cluster's processes may meet what the first has left behind, and stall.
        alone = number if place and place.strategy else None
        groups.setdefault((place, alone), []).append(number)
    results: dict[int, Result] = {}
    for (place, _), numbers in groups.items():
        group = [jobs[number] for number in numbers]
        done = (
            workers.launch(place, group) if place else [run_here(run.body, s) for run, s in group]
        )
        results |= zip(numbers, done)
    return [results[number] for number in range(len(jobs))]
