"""The names that a notebook imports. TensorFlow is imported by what needs it, when it is called."""

from . import checks, figures, formats, machine
from .checks import SilentFailure
from .experiments import Proof, experiment, mark, observe
from .modes import Claim, FailureMode, Symptom
from .setups import Setup
from .strategies import build as build_strategy
from .strategies import runner

__all__ = [
    "Claim",
    "FailureMode",
    "Proof",
    "Setup",
    "SilentFailure",
    "Symptom",
    "build_strategy",
    "checks",
    "compiler",  # noqa: F822, imported when it is asked for, since it opens notebooks
    "experiment",
    "figures",
    "formats",
    "machine",
    "mark",
    "observe",
    "runner",
]


def load_ipython_extension(shell):
    """After `%load_ext helpers`, an uncaught exception ends with a line that names its mode and notebook."""
    from . import desk

    shell.events.register("post_run_cell", desk.after_cell)


def unload_ipython_extension(shell):
    from . import desk

    shell.events.unregister("post_run_cell", desk.after_cell)
