"""One run of an experiment in this process, and what the experiment observes meanwhile."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..setups import runtime
from ..setups.parameters import Setup
from .proofs import Observations, Result
from .variable_copies import copies, short_name

RECORDER: ContextVar[Observations] = ContextVar("observations of the run that is going on")


def observe(**variables: Any) -> None:
    """Records for the figure on which devices each variable has a copy: observe(loaded=model.variables)."""
    for label, group in variables.items():
        named = {short_name(variable, i): copies(variable) for i, variable in enumerate(group)}
        RECORDER.get({})[label] = named


def run_here(function: Callable[[Setup], Any], setup: Setup) -> Result:
    """Returns what a function returns or raises under a setup, from a fixed random state."""
    observations: Observations = {}
    token = RECORDER.set(observations)
    try:
        setup.require()
        runtime.seed()
        return Result(function(setup), None, observations)
    except Exception as error:
        return Result(None, error, observations)
    finally:
        RECORDER.reset(token)
