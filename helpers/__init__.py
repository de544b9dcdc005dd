"""The names that a notebook imports. TensorFlow is imported by what needs it, when it is called."""

from . import checks, compiler, figures, formats, machine
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
    "compiler",
    "experiment",
    "figures",
    "formats",
    "machine",
    "mark",
    "observe",
    "runner",
]
