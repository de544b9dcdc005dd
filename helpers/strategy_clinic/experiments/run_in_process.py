"""One experiment in this process, and what it shows."""

from ..setups import runtime, strategies
from .proofs import Result
from .variable_copies import copies, short_name

SEEN: dict = {}  # what the experiment under way has shown to the figures


def observe(**variables):
    """Notes for the figure on which devices each variable has a copy: observe(loaded=model.variables)."""
    for label, listed in variables.items():
        SEEN[label] = {
            short_name(variable, i): copies(variable) for i, variable in enumerate(listed)
        }


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
