"""The declaration of a failure mode: its symptoms under each setup and version, and the claims that it tests."""

import re
from dataclasses import dataclass, field

from ..base.errors import UserError, choose
from ..programs.verdicts import Verdict
from ..programs.version_bounds import Bounded, bounds_in_words, check_bounds, holds_here
from ..setups.parameters import Setup

TRUTHS = ("true", "half", "false")
# The five documents whose advice is put to the test, by what each is about.
DOCUMENTS = {
    "000": "weights in strategy.run",
    "001": "checkpoints and apply_gradients",
    "002": "gradient accumulation",
    "003": "TPUStrategy",
    "004": "load_model and MirroredStrategy",
}


@dataclass(frozen=True)
class Symptom:
    """What a mode shows, and when: an empty tuple stands for every value, an empty bound for every version."""

    raises: str
    says: str
    strategies: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()
    formats: tuple[str, ...] = ()
    keras: tuple[int, ...] = ()
    since: str = ""
    until: str = ""

    def under(self, setup: Setup) -> bool:
        """Returns whether it shows under this setup in one version or another."""
        return (
            (not self.strategies or setup.strategy in self.strategies)
            and (not self.devices or setup.devices in self.devices)
            and (not self.formats or setup.save_format in self.formats)
            and (not self.keras or setup.keras in self.keras)
        )

    @property
    def outcome(self) -> str:
        return "silent" if self.raises == "SilentFailure" else "raises"

    def matches(self, verdict: Verdict) -> bool:
        # Where AutoGraph cannot make an exception again, it raises this one, with the name of the other in the message.
        staged = verdict.error == "StagingError" and verdict.message.startswith(f"{self.raises}: ")
        return (verdict.error == self.raises or staged) and bool(
            re.search(self.says, verdict.message)
        )


@dataclass(frozen=True)
class Claim:
    """A sentence of a document and the verdict that a run must give it: a word, or one word per version of Keras.

    Where a version has changed the verdict there are two claims of one id: one `until` it, the other `since`.
    """

    id: str
    says: str
    verdict: str | dict[int, str]
    since: str = ""
    until: str = ""

    def expected(self, keras: int) -> str:
        return self.verdict[keras] if isinstance(self.verdict, dict) else self.verdict

    def in_words(self, keras: int) -> str:
        """Returns the verdict, that of the other version of Keras where it differs, and the versions it holds in."""
        words = self.expected(keras)
        if isinstance(self.verdict, dict):
            words = f"{words} on Keras {keras}, {self.verdict[5 - keras]} on Keras {5 - keras}"
        return " ".join(filter(None, [words, bounds_in_words(self)]))


@dataclass(frozen=True)
class FailureMode:
    """One way to fail. Literals only: the registry reads this declaration without running the page."""

    id: str
    slug: str
    title: str
    sees: str
    fix: str
    document: str
    switches: tuple[str, ...]
    symptoms: tuple[Symptom, ...]
    claims: tuple[Claim, ...]
    prints: str = ""  # what broken.py should print, and fixed.py prints, under every setup
    exercise_prints: str = ""  # what solution.py prints
    observed: tuple[
        str, ...
    ] = ()  # the names in the programs whose variables the picture of the panel shows
    # The strategies and save formats under which the programs have no meaning, each with the reason.
    unavailable: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return self.id.upper()

    @property
    def notebook(self) -> str:
        return f"notebooks/{self.id}_{self.slug}.ipynb"

    @property
    def loud(self) -> str:
        """Whether it raises: 'loud', 'silent', or both in the order of its symptoms."""
        words = ["silent" if symptom.outcome == "silent" else "loud" for symptom in self.symptoms]
        return " or ".join(dict.fromkeys(words))

    def symptom(self, setup: Setup) -> Symptom | None:
        """Returns the symptom that must show under a setup here, or None if it must work."""
        here = (symptom for symptom in self.symptoms if holds_here(symptom))
        return next((symptom for symptom in here if symptom.under(setup)), None)

    def version_note(self, setup: Setup) -> str:
        """Returns which side of a version's change this environment is on, or "" if no version changes this setup."""
        symptoms = [symptom for symptom in self.symptoms if symptom.under(setup)]
        now = next(filter(holds_here, symptoms), None)
        if now is None:
            return f"works here; it fails {bounds_in_words(symptoms[0])}" if symptoms else ""
        if now.until:
            if any(symptom.since == now.until for symptom in symptoms):
                return f"it fails in other words from {now.until} on"
            return f"fails here; fixed upstream in {now.until}"
        if now.since:
            reworded = any(symptom.until == now.since for symptom in symptoms)
            return (
                f"{'it failed in other words before' if reworded else 'it fails since'} {now.since}"
            )
        return ""

    def reason_against(self, setup: Setup) -> str:
        """Returns why the programs have no meaning under a setup, or ""."""
        values = (setup.strategy, setup.save_format)
        return next((self.unavailable[each] for each in values if each in self.unavailable), "")

    def claims_here(self) -> list[Claim]:
        return list(filter(holds_here, self.claims))

    def expects(self, setup: Setup) -> str:
        symptom = self.symptom(setup)
        return symptom.outcome if symptom else "works"

    def expected_symptom(self, verdict: Verdict) -> Symptom | None:
        return self.symptom(verdict.setup) if verdict.subject == "broken" else None

    def agrees(self, verdict: Verdict) -> bool:
        """Returns whether a verdict is as declared; one of a run that is unavailable here always is."""
        symptom = self.expected_symptom(verdict)
        matches = symptom.matches(verdict) if symptom else verdict.outcome == "works"
        return matches or verdict.outcome == "unavailable"

    def expected_outcome(self, verdict: Verdict) -> str:
        """Returns in words what the verdict should be."""
        symptom = self.expected_symptom(verdict)
        return f"{symptom.raises} saying {symptom.says!r}" if symptom else "no failure"


def check_words(mode: FailureMode) -> None:
    """Raises a UserError unless each bound is a release, and each claim has one known verdict in each version."""
    parts: list[Bounded] = [*mode.symptoms, *mode.claims]
    for declared in parts:
        check_bounds(mode.id, declared)
    for claim in mode.claims:
        for keras in (2, 3):
            choose(f"verdict of {claim.id}", claim.expected(keras), TRUTHS)
        same = [other for other in mode.claims if other.id == claim.id]
        since, until = sorted(c.since for c in same), sorted(c.until for c in same)
        if since != until or since.count("") != 1:
            raise UserError(
                f"{claim.id} needs one verdict in each version; where one ends (until) another begins (since)."
            )
