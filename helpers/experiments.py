"""Experiments: functions of a setup that run where the setup needs them, here or in processes of their own."""

from dataclasses import dataclass, field
from functools import wraps

from . import runtime, strategies
from .checks import SilentFailure, variable_of
from .refusals import Refused

SEEN: dict = {}  # what the experiment under way has shown to the figures
FOUND: dict = {}  # what this kernel has found, by the experiment's source and setup


@dataclass
class Proof:
    """Two things that must be equal once a failure is repaired. Values decide, not the absence of an exception."""

    what: str
    got: list
    want: list
    tolerance: float = 1e-6

    def __post_init__(self):
        self.got, self.want = as_lists(self.got), as_lists(self.want)
        if not self.want:
            raise Refused(f"The proof that {self.what} compares no values: give it at least one.")

    @property
    def holds(self) -> bool:
        import numpy as np

        pairs = [(np.asarray(got), np.asarray(want)) for got, want in zip(self.got, self.want)]
        same = [
            g.shape == w.shape and np.allclose(g, w, rtol=self.tolerance, atol=self.tolerance)
            for g, w in pairs
        ]
        return len(self.got) == len(self.want) and all(same)


def as_lists(values) -> list:
    """Nested lists of numbers, so that a proof can travel between processes as JSON."""
    import numpy as np

    return [np.asarray(value).tolist() for value in values]


@dataclass
class Result:
    """What one run of an experiment came to: a value or an error, and what it showed on the way.

    A proof that does not hold is a silent failure, whether or not a check has said so.
    """

    value: object = None
    error: Exception | None = None
    seen: dict = field(default_factory=dict)

    def __post_init__(self):
        if isinstance(self.value, Proof) and not self.value.holds:
            self.error = SilentFailure(f"not so: {self.value.what}")

    def unwrap(self):
        if self.error is not None:
            raise self.error
        return self.value


def mark(**groups):
    """Notes for the figure where things are: mark(script={"mean": ["in memory"]})."""
    SEEN.update(groups)


def observe(**variables):
    """Notes for the figure on which devices each variable has a copy: observe(loaded=model.variables)."""
    for label, listed in variables.items():
        mark(
            **{
                label: {
                    short_name(variable, i): copies(variable) for i, variable in enumerate(listed)
                }
            }
        )


def short_name(variable, position: int) -> str:
    return f"{variable.name.split('/')[-1].split(':')[0]} {position}"


def parts_of(weight) -> list:
    """The components of a distributed variable, one per device; of any other, the variable itself."""
    variable = variable_of(weight)
    return list(getattr(variable, "values", None) or [getattr(variable, "_v", variable)])


def copies(weight) -> list[str]:
    return [short_device(part.device) for part in parts_of(weight)]


def short_device(name: str) -> str:
    """'/job:ps/replica:0/task:0/device:CPU:0' becomes 'ps 0 CPU:0', and the only process of a job needs no name."""
    parts = dict(part.split(":", 1) for part in name.strip("/").split("/") if ":" in part)
    job = parts.get("job", "localhost")
    where = "" if job == "localhost" else f"{job} {parts.get('task', '0')} "
    return where + parts.get("device", name or "CPU:0")


def run_here(function, setup) -> Result:
    SEEN.clear()
    try:
        strategies.require(setup)
        runtime.seed()
        result = Result(function(setup))
    except Exception as error:
        result = Result(error=error)
    result.seen = dict(SEEN)
    return result


def run_all(jobs: list) -> list[Result]:
    """Runs (experiment, setup) pairs; those that can share processes are sent to them together."""
    from . import workers

    groups, results = {}, {}
    for i, (_, setup) in enumerate(jobs):
        place = workers.place(setup)
        # A second strategy in a cluster's processes may meet what the first has left behind, and stall.
        groups.setdefault((place, i if place and place[0] else None), []).append(i)
    for (place, _), chosen in groups.items():
        pairs = [jobs[i] for i in chosen]
        done = (
            [run_here(f.body, s) for f, s in pairs]
            if place is None
            else workers.launch(place, pairs)
        )
        results |= dict(zip(chosen, done))
    listed = [results[i] for i in range(len(jobs))]
    FOUND.update(zip(keys(jobs), listed))
    return listed


def recall(jobs: list) -> list[Result]:
    """As run_all, but what this kernel has found for the same source and setup is not run again."""
    wanted = keys(jobs)
    run_all([job for job, key in zip(jobs, wanted) if key not in FOUND])
    return [FOUND[key] for key in wanted]


def keys(jobs: list) -> list[tuple]:
    """Change with anything that an experiment uses, so that an edited helper is never answered from memory."""
    from .definitions import definitions

    sources = {run: definitions([run]) for run in dict.fromkeys(run for run, _ in jobs)}
    return [(run.__name__, sources[run], setup) for run, setup in jobs]


def experiment(function):
    """Marks a function of a setup as an experiment: calling it runs it where the setup needs it to run."""

    @wraps(function)
    def run(setup):
        return run_all([(run, setup)])[0].unwrap()

    run.body = function
    return run
