"""Failure modes: what a notebook's source declares."""

import re
from dataclasses import dataclass

from ..base.errors import UserError, choose
from ..experiments.verdicts import Verdict
from ..experiments.version_bounds import bounds_told, check_bounds, holds_here

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
    """What a mode shows, and when: an empty tuple means under every value of that parameter, no bound in every version."""

    raises: str
    says: str
    strategies: tuple = ()
    devices: tuple = ()
    formats: tuple = ()
    keras: tuple = ()
    since: str = ""
    until: str = ""

    def appears(self, setup) -> bool:
        return self.under(setup) and holds_here(self)

    def under(self, setup) -> bool:
        """Whether it shows under this setup in one version or another."""
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
    """A sentence of a document and the verdict that a run must give it: a word, or one word per Keras generation.

    Where a version has changed the verdict there are two of the same id: one `until` it, the other `since`.
    """

    id: str
    says: str
    verdict: str | dict
    since: str = ""
    until: str = ""

    def expected(self, keras: int) -> str:
        return self.verdict[keras] if isinstance(self.verdict, dict) else self.verdict

    def told(self, keras: int) -> str:
        """The verdict of this run, the other Keras generation's where it differs, and in which versions."""
        words = self.expected(keras)
        if isinstance(self.verdict, dict):
            words = f"{words} on Keras {keras}, {self.verdict[5 - keras]} on Keras {5 - keras}"
        return " ".join(filter(None, [words, bounds_told(self)]))


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

    def side(self, setup) -> str:
        """On which side of a change the versions here are; nothing where no version has changed this setup."""
        known = [each for each in self.symptoms if each.under(setup)]
        now = next((each for each in known if holds_here(each)), None)
        if now is None:
            return "".join(f"works here; it fails {bounds_told(each)}" for each in known[:1])
        if now.until:
            reworded = any(each.since == now.until for each in known)
            how = "it fails in other words from" if reworded else "fails here; fixed upstream in"
            return f"{how} {now.until}{' on' if reworded else ''}"
        reworded = any(each.until == now.since for each in known if now.since)
        how = "it failed in other words before" if reworded else "it fails since"
        return f"{how} {now.since}" if now.since else ""

    def claims_here(self) -> list[Claim]:
        return [claim for claim in self.claims if holds_here(claim)]

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
    """A claim's verdict is one of three words, or one of them per Keras generation; one holds in each version."""
    for each in mode.symptoms + mode.claims:
        check_bounds(mode.id, each)
    for claim in mode.claims:
        for word in [claim.expected(2), claim.expected(3)]:
            choose(f"verdict of {claim.id}", word, TRUTHS)
        parts = [each for each in mode.claims if each.id == claim.id]
        since, until = (
            sorted(getattr(each, name) for each in parts) for name in ("since", "until")
        )
        if since != until or since.count("") != 1:
            raise UserError(
                f"{claim.id} needs one verdict in each version; where one ends (until) another begins (since)."
            )
