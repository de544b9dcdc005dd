"""The declaration of a failure mode: its symptoms under each setup and version."""

import re
from dataclasses import dataclass, field

from ..programs.verdicts import Verdict
from ..programs.version_bounds import bounds_in_words, check_bounds, holds_here
from ..setups.parameters import Setup


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
        return "wrong" if self.raises == "SilentFailure" else "raises"

    def matches(self, verdict: Verdict) -> bool:
        # Where AutoGraph cannot make an exception again, it raises this one, with the name of the other in the message.
        staged = verdict.error == "StagingError" and verdict.message.startswith(f"{self.raises}: ")
        return (verdict.error == self.raises or staged) and bool(
            re.search(self.says, verdict.message)
        )


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
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes of its symptoms, each once, in their order."""
        return tuple(dict.fromkeys(symptom.outcome for symptom in self.symptoms))

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
    """Raises a UserError unless each bound is a release."""
    for symptom in mode.symptoms:
        check_bounds(mode.id, symptom)
