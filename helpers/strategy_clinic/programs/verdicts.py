"""Verdicts: the outcome of a program under a setup, with its evidence, and tables of them."""

from dataclasses import dataclass, field
from typing import Any

from ..base.errors import Unavailable, UserError, choose
from ..base.outcomes import ROWS
from ..setups import strategies
from ..setups.parameters import Setup
from .checks import SilentFailure
from .error_text import last_line
from .run import Run

OUTCOMES = tuple(row.name for row in ROWS)
EVIDENCE = ("executed", "emulated", "compiled", "traced", "recorded")
OUTCOME_OF = {
    Unavailable: "unavailable",
    SilentFailure: "wrong",
    TimeoutError: "hangs",
    ChildProcessError: "crashes",
    Exception: "raises",
}


@dataclass(frozen=True)
class Verdict:
    """An outcome with its setup and its evidence, and the sentence that the run has ended in."""

    subject: str
    setup: Setup
    outcome: str
    evidence: str
    says: str = ""
    error: str = ""
    run: Run = field(default_factory=Run, compare=False, repr=False)

    def __post_init__(self) -> None:
        choose("outcome", self.outcome, OUTCOMES)
        choose("evidence", self.evidence, ("none",) if self.outcome == "unavailable" else EVIDENCE)
        if self.outcome == "unavailable" and not self.says:
            raise UserError("A verdict of 'unavailable' needs its reason.")

    @property
    def message(self) -> str:
        """The whole message of the error, of which `says` is one line."""
        return str(self.run.error or "")

    @property
    def shown_evidence(self) -> str:
        """The evidence for a reader: nothing where nothing has run."""
        return "" if self.evidence == "none" else self.evidence

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("subject", "outcome", "evidence", "says")}


def classify(subject: str, setup: Setup, run: Run) -> Verdict:
    """Returns the verdict on a run: what was raised or printed. What did not run has no evidence."""
    error, evidence = run.error, strategies.TABLE[setup.strategy].evidence
    if error is None:
        return Verdict(subject, setup, "works", evidence, run.printed.strip(), run=run)
    outcome = next(word for kind, word in OUTCOME_OF.items() if isinstance(error, kind))
    if outcome == "unavailable":
        evidence = "none"
    elif outcome == "raises" and evidence == "emulated" and not raised_by_graph(error):
        evidence = "traced"  # refused before anything could be emulated
    return Verdict(subject, setup, outcome, evidence, last_line(error), type(error).__name__, run)


def raised_by_graph(error: Exception) -> bool:
    """Returns whether a running graph has raised the error: then its class is named in tf.errors, in any process."""
    import tensorflow as tf

    return hasattr(tf.errors, type(error).__name__)


def rows(verdicts: list[Verdict]) -> list[list[str]]:
    """Returns a table: a heading, and a row for each setup with the outcome of each program and the evidence."""
    subjects = list(dict.fromkeys(verdict.subject for verdict in verdicts))
    table = [["strategy", "devices", "save format", "Keras", *subjects, "evidence"]]
    for setup in dict.fromkeys(verdict.setup for verdict in verdicts):
        here = {verdict.subject: verdict for verdict in verdicts if verdict.setup == setup}
        outcomes = [here[subject].outcome for subject in subjects]
        table.append([*map(str, setup.as_dict().values()), *outcomes, here[subjects[0]].evidence])
    return table
