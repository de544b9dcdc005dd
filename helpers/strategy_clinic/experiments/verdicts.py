"""Verdicts: what came of one experiment under one setup, and the tables that hold them."""

import re
from dataclasses import dataclass, field

from ..base.errors import Unavailable, UserError, choose
from ..base.outcomes import ROWS
from ..setups import strategies
from ..setups.parameters import Setup
from .checks import SilentFailure
from .experiment import run_all
from .proofs import Proof, Result

OUTCOMES = tuple(row.name for row in ROWS)
EVIDENCE = ("executed", "emulated", "compiled", "traced", "recorded")
OUTCOME_OF = (
    (Unavailable, "unavailable"),
    (SilentFailure, "silent"),
    (TimeoutError, "hangs"),
    (ChildProcessError, "crashes"),
)


@dataclass(frozen=True)
class Verdict:
    """An outcome never stands alone: it says under which setup, by which evidence, and in whose words."""

    subject: str
    setup: Setup
    outcome: str
    evidence: str
    says: str = ""
    error: str = ""
    seen: dict = field(default_factory=dict, compare=False)
    whole: str = field(default="", compare=False)  # the message that `says` is the last line of

    def __post_init__(self):
        choose("outcome", self.outcome, OUTCOMES)
        choose("evidence", self.evidence, ("none",) if self.outcome == "unavailable" else EVIDENCE)
        if self.outcome == "unavailable" and not self.says:
            raise UserError("A verdict of 'unavailable' needs its reason.")

    def as_dict(self) -> dict:
        return {
            "subject": self.subject,
            "outcome": self.outcome,
            "evidence": self.evidence,
            "says": self.says,
        }


def last_line(error: Exception) -> str:
    """The useful sentence: errors from traced code begin with 'in user code:' and end with what happened."""
    return without_names(useful_line(in_lines(error)).removeprefix(f"{type(error).__name__}: "))


def useful_line(text: str) -> str:
    """Of an error's text or its traceback: what the compiler or a graph gives as the reason, or else the last line with words."""
    lines = [line.strip() for line in text.splitlines()]
    plain = [
        line for line in map(without_names, lines) if re.search(r"\w", line) and not is_node(line)
    ]
    return compiler_error(lines) or root_error(lines) or (plain[-1] if plain else "")


def in_lines(error: Exception) -> str:
    """What an error says. The text of a KeyError is the repr of its argument, in which line breaks are no line breaks."""
    given = error.args[0] if isinstance(error, KeyError) and error.args else ""
    return given if "\n" in str(given) else str(error)


def is_node(line: str) -> bool:
    """Whether a line says no more than which node of a graph has failed."""
    return line.startswith("[[")


def root_error(lines: list[str]) -> str:
    """One of the root errors that a graph lists. Names of nodes are left out, since they differ from run to run."""
    found = [re.match(r"\(\d+\) [A-Z_]+:\s+(.+)", line) for line in lines]
    return min((re.sub(r" '[\w/]+'", "", each.group(1)) for each in found if each), default="")


def compiler_error(lines: list[str]) -> str:
    """The sentence in which XLA says what it refuses. What follows says where, and repeats it for each replica."""
    found = [
        re.search(r"(Detected unsupported operations .+|Input \d+ to node .+)", line)
        for line in lines
    ]
    return next((each.group(1) for each in found if each), "")


# Where an object or a graph is in memory, and what TensorFlow calls graphs and nodes, is another name in each run.
RUN_NAMES = (
    (r", id=\d+| at 0x[0-9a-f]+| \[Op:__inference\w+\]", ""),
    (r"__inference_(\w+?)_\d+\[[^\]]*\]", r"\1"),
    (r" compatible with node \{\{\w*node [^}]*\}*|(\{\{\w*node [^}]*\}\})+$", ""),
)


def without_names(text: str) -> str:
    for pattern, instead in RUN_NAMES:
        text = re.sub(pattern, instead, text)
    return text.strip()


def verdict(subject: str, setup: Setup, result: Result) -> Verdict:
    """Classifies a result: what was raised, or what was proven; what did not run has no evidence."""
    error, evidence = result.error, strategies.TABLE[setup.strategy].evidence
    if error is None:
        says = result.value.what if isinstance(result.value, Proof) else ""
        return Verdict(subject, setup, "works", evidence, says, "", result.seen)
    outcome = next((word for kind, word in OUTCOME_OF if isinstance(error, kind)), "raises")
    if outcome == "unavailable":
        evidence = "none"
    elif outcome == "raises" and evidence == "emulated" and not while_running(error):
        evidence = "traced"  # refused before anything could be emulated
    name = type(error).__name__
    return Verdict(
        subject, setup, outcome, evidence, last_line(error), name, result.seen, str(error)
    )


def while_running(error: Exception) -> bool:
    """Whether a running graph has raised it: then its class is one of tf.errors, also if it comes from another process."""
    import tensorflow as tf

    return hasattr(tf.errors, type(error).__name__)


def verdicts(experiments: dict, setups: list[Setup], run=run_all) -> list[Verdict]:
    """One verdict for every experiment under every setup, in that order."""
    jobs = [(subject, setup) for setup in setups for subject in experiments]
    results = run([(experiments[subject], setup) for subject, setup in jobs])
    return [verdict(subject, setup, result) for (subject, setup), result in zip(jobs, results)]


def rows(listed: list[Verdict]) -> list[list[str]]:
    """The verdicts of one setup side by side: what it was, one column per experiment, and the evidence."""
    subjects = list(dict.fromkeys(each.subject for each in listed))
    table = [["strategy", "devices", "save format", "Keras", *subjects, "evidence"]]
    for setup in dict.fromkeys(each.setup for each in listed):
        here = {each.subject: each for each in listed if each.setup == setup}
        outcomes = [here[subject].outcome for subject in subjects]
        parameters = [setup.strategy, str(setup.devices), setup.save_format, str(setup.keras)]
        table.append([*parameters, *outcomes, here[subjects[0]].evidence])
    return table
