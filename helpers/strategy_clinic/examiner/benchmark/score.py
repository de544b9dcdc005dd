"""How well the examiner knows the clinic's own modes: one line for each patient, totals, and the file that keeps the score."""

import ast
import hashlib
import json
from dataclasses import dataclass

from ...base.files import PACKAGE, modules_in, write_whole
from ..recording import Examination, Finding, troubles_of
from ..runs.sandbox import OBSERVER_MODULES
from .programs import Patient

# What finds a mode, beside the observer; the other rooms of the examiner are how it is told.
JUDGES = (
    "examiner/recording.py",
    "examiner/benchmark/programs.py",
    *modules_in("examiner/rules"),
    *modules_in("examiner/runs"),
)
UNAVAILABLE = "unavailable"
SCORE_FILE = PACKAGE / "examiner" / "benchmark" / "score.json"


@dataclass(frozen=True)
class Score:
    patient: Patient
    findings: tuple[Finding, ...]
    ended: str
    troubles: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        return any(each.mode == self.patient.mode for each in self.findings)

    @property
    def on_line(self) -> bool:
        lines = [each.line for each in self.findings if each.mode == self.patient.mode]
        return self.patient.guilty in lines

    @property
    def accused(self) -> bool:
        return not self.patient.sick and self.ended != "raised" and bool(self.findings)

    @property
    def word(self) -> str:
        if self.ended == UNAVAILABLE:
            return UNAVAILABLE
        if self.patient.sick:
            return "on the line" if self.on_line else "named" if self.named else "missed"
        return "ACCUSED" if self.accused else "healthy" if self.ended == "finished" else "FAILED"


def score_of(patient: Patient, found: Examination) -> Score:
    first = found.runs[0]
    refused = first.last("raised").get("error") == "Unavailable"  # as the clinic says it
    ended = UNAVAILABLE if refused else first.ended
    return Score(patient, tuple(found.findings), ended, troubles_of(found.runs))


# Words


def score_line(score: Score) -> str:
    patient, setup = score.patient, score.patient.setup
    said = ", ".join(f"{each.mode} at line {each.line}" for each in score.findings) or "nothing"
    wrong = patient.sick and not score.on_line
    word = score.word + (f" (guilty: {patient.guilty})" if wrong else "")
    trouble = "".join(f"  TROUBLE {each}" for each in score.troubles)
    place = f"Keras {setup.keras}  {setup.strategy} x{setup.devices}"
    return (
        f"{patient.mode} {patient.subject:7} {place:28} {word:12} {said}  [{score.ended}]{trouble}"
    )


def score_totals(scores: list[Score]) -> str:
    scores = [each for each in scores if each.word != UNAVAILABLE]
    words = [each.word for each in scores]
    sick = [each for each in scores if each.patient.sick]
    lines = words.count("on the line")
    named, well = lines + words.count("named"), len(scores) - len(sick)
    failed = f", {words.count('FAILED')} failed" if "FAILED" in words else ""
    healthy = f"{words.count('ACCUSED')} of {well} healthy accused{failed}"
    return f"{named} of {len(sick)} named, {lines} on the line; {healthy}"


# The file


def examiner_now() -> str:
    """Changes with whatever the examiner's code does; comments and layout are none of it."""
    named = (*JUDGES, *OBSERVER_MODULES)
    texts = [ast.dump(ast.parse((PACKAGE / name).read_text())) for name in named]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def kept_score() -> dict:
    return json.loads(SCORE_FILE.read_text())


def keep_score(keras: int, scores: list[Score]):
    """One generation of Keras, every mode under its own setup."""
    sick = {each.patient.mode: each.word for each in scores if each.patient.sick}
    well = {
        f"{each.patient.mode} {each.patient.subject}": each.word
        for each in scores
        if not each.patient.sick and each.word != "healthy"
    }
    found = {
        "examiner": examiner_now(),
        "total": score_totals(scores),
        "sick": sick,
        "not healthy": well,
    }
    known = kept_score() if SCORE_FILE.exists() else {}
    write_whole(
        SCORE_FILE, json.dumps(known | {f"keras {keras}": found}, indent=1, sort_keys=True) + "\n"
    )
