"""Failure modes: what a notebook's source declares."""

import re
from dataclasses import dataclass

from ..base import files
from ..base.refusals import choose
from .verdicts import Verdict

TRUTHS = ("true", "half", "false")
# The five documents whose advice is put to the test, by what each is about.
DOCUMENTS = {
    "000": "weights in strategy.run",
    "001": "checkpoints and apply_gradients",
    "002": "gradient accumulation",
    "003": "TPUStrategy",
    "004": "load_model and MirroredStrategy",
}
BEING_RENDERED: dict = {}  # a declaration that is newer than the catalog


@dataclass(frozen=True)
class Symptom:
    """What a mode shows, and when: an empty tuple means under every value of that parameter."""

    raises: str
    says: str
    strategies: tuple = ()
    devices: tuple = ()
    formats: tuple = ()
    keras: tuple = ()

    def appears(self, setup) -> bool:
        limits = [(self.strategies, setup.strategy), (self.devices, setup.devices)]
        limits += [(self.formats, setup.save_format), (self.keras, setup.keras)]
        return all(not allowed or value in allowed for allowed, value in limits)

    @property
    def outcome(self) -> str:
        return "silent" if self.raises == "SilentFailure" else "raises"

    def matches(self, found: Verdict) -> bool:
        return found.error == self.raises and re.search(self.says, found.whole) is not None


@dataclass(frozen=True)
class Claim:
    """A sentence of a document and the verdict that a run must give it: a word, or one word per Keras generation."""

    id: str
    says: str
    verdict: str | dict

    def expected(self, keras: int) -> str:
        return self.verdict[keras] if isinstance(self.verdict, dict) else self.verdict

    def told(self, keras: int) -> str:
        """The verdict of this run, and the other Keras generation's where it differs."""
        if not isinstance(self.verdict, dict):
            return self.verdict
        return f"{self.verdict[keras]} on Keras {keras}, {self.verdict[5 - keras]} on Keras {5 - keras}"


@dataclass(frozen=True)
class FailureMode:
    """One way to fail. Literals only: the catalog reads this declaration without running the notebook."""

    id: str
    slug: str
    title: str
    sees: str
    fix: str
    document: str
    switches: tuple[str, ...]
    symptoms: tuple[Symptom, ...]
    claims: tuple[Claim, ...]
    since: str = ""

    @property
    def name(self) -> str:
        return self.id.upper()

    @property
    def notebook(self) -> str:
        return f"notebooks/{self.id}_{self.slug}.ipynb"

    @property
    def loud(self) -> str:
        words = ["silent" if each.outcome == "silent" else "loud" for each in self.symptoms]
        return " or ".join(dict.fromkeys(words))

    def symptom(self, setup) -> Symptom | None:
        """The symptom that must show under a setup; None means that it must work."""
        return next((symptom for symptom in self.symptoms if symptom.appears(setup)), None)

    def expects(self, setup) -> str:
        symptom = self.symptom(setup)
        return symptom.outcome if symptom else "works"

    def agrees(self, found: Verdict) -> bool:
        """Whether a verdict is what the mode declares; what cannot run here is neither right nor wrong."""
        symptom = self.symptom(found.setup) if found.subject == "broken" else None
        if found.outcome == "unavailable":
            return True
        return symptom.matches(found) if symptom else found.outcome == "works"

    def expected_of(self, found: Verdict) -> str:
        """In words, what a verdict should have been."""
        symptom = self.symptom(found.setup) if found.subject == "broken" else None
        return f"{symptom.raises} saying {symptom.says!r}" if symptom else "no failure"


def check_words(mode: FailureMode) -> None:
    """A claim's verdict is one of three words, or one of them per Keras generation."""
    for claim in mode.claims:
        for word in [claim.expected(2), claim.expected(3)]:
            choose(f"verdict of {claim.id}", word, TRUTHS)


def mode_by_id(identity: str) -> FailureMode:
    """A mode as the catalog has it, or as it is being rendered."""
    known = files.read_catalog() | BEING_RENDERED
    return from_plain(known[choose("failure mode", identity, known)])


def all_declared() -> list[FailureMode]:
    return [from_plain(each) for each in files.read_catalog().values()]


def from_plain(known: dict) -> FailureMode:
    """A mode out of JSON, which knows neither tuples nor numbers as keys."""
    claims = [Claim(**each | {"verdict": by_keras(each["verdict"])}) for each in known["claims"]]
    symptoms = [Symptom(**tuples(each)) for each in known["symptoms"]]
    listed = {"symptoms": tuple(symptoms), "claims": tuple(claims)}
    return FailureMode(**tuples(known) | listed)


def tuples(known: dict) -> dict:
    return {key: tuple(each) if isinstance(each, list) else each for key, each in known.items()}


def by_keras(verdict: str | dict) -> str | dict:
    return verdict if isinstance(verdict, str) else {int(k): word for k, word in verdict.items()}
