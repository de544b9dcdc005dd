"""Failure modes: what a notebook declares, and the steps that hold it to its word.

Every step prints one line that is the same on every machine, with the same facts as JSON beside it for whoever
runs many notebooks. A step that does not find what the mode declares raises Disagreement, and the notebook fails.
"""

import re
from contextlib import contextmanager
from dataclasses import dataclass

from ..base.refusals import Refused, choose
from ..base.reports import report, text_table
from ..switches import setups
from .experiments import recall, run_all
from .proofs import Result
from .verdicts import EVIDENCE, Verdict, rows, verdict, verdicts

TRUTHS = ("true", "half", "false")


class Disagreement(AssertionError):
    """A run and the declaration of its mode say different things."""

    def _render_traceback_(self):
        return [str(self)]


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

    # The steps of a notebook

    def setup(self, strategy, devices, save_format, keras):
        """Checks the four parameters, makes the kernel ready for them and says what will be run."""
        made = setups.enter(setups.Setup(strategy, devices, save_format, keras))
        self._say("setup", str(made), parameters=made.as_dict(), expects=self.expects(made))
        return made

    @contextmanager
    def reproduces(self, setup):
        """The block must fail as the mode declares for this setup, or work where it declares no symptom."""
        result = Result()
        try:
            yield
        except Exception as error:
            result = Result(error=error)
        found = verdict("broken", setup, result)
        self._say("reproduced", self._agree(found), found)

    def proves(self, fixed, setup) -> None:
        """Runs the repaired experiment; the values in its proof must be equal."""
        found = self._proven("fixed", fixed, setup)
        self._say("fixed", found.says, found)

    def table(self, broken, fixed, listed) -> None:
        """Shows the verdicts of both experiments under each setup; each must be what the mode declares."""
        found = verdicts({"broken": broken, "fixed": fixed}, listed, recall)
        for each in found:
            if not self.agrees(each):
                raise self._disagreement(
                    f"{each.subject} ({each.setup})", self._expected(each), in_short(each)
                )
        report(
            text_table(rows(found)),
            table=[each.as_dict() | {"setup": each.setup.as_dict()} for each in found],
        )

    def judges(self, setup, found: dict, evidence: str = "executed") -> None:
        """Compares each claim's observations with its declared verdict: all hold, none holds, or some do."""
        choose("evidence", evidence, EVIDENCE)
        for claim in self.claims:
            word = self._judge(claim, found.pop(claim.id, ()))
            if word != claim.expected(setup.keras):
                raise self._disagreement(claim.id, claim.expected(setup.keras), word)
            facts = {"id": claim.id, "verdict": word, "evidence": evidence}
            line = f"{claim.id} is {claim.told(setup.keras)} ({evidence}): {claim.says}"
            report(line, claim=facts)
        if found:
            raise self._disagreement("claims", "only declared claims", ", ".join(found))

    def exercise(self, attempt, setup) -> None:
        """Says red or green, and why; a red exercise is where the reader starts, so it does not fail the notebook."""
        found = verdict("exercise", setup, run_all([(attempt, setup)])[0])
        colour = "green" if found.outcome == "works" and found.says else "red"
        self._say("exercise", f"{colour}: {self._reason(found)}", found, colour=colour)

    def solution(self, solved, setup) -> None:
        """The solution must turn the exercise green."""
        found = self._proven("solution", solved, setup)
        self._say("solution", f"green: {found.says}", found, colour="green")

    def agrees(self, found: Verdict) -> bool:
        """Whether a verdict is what the mode declares; what cannot run here is neither right nor wrong."""
        symptom = self.symptom(found.setup) if found.subject == "broken" else None
        if found.outcome == "unavailable":
            return True
        return symptom.matches(found) if symptom else found.outcome == "works"

    # What they share

    def _expected(self, found: Verdict) -> str:
        symptom = self.symptom(found.setup) if found.subject == "broken" else None
        return f"{symptom.raises} saying {symptom.says!r}" if symptom else "no failure"

    def _proven(self, step: str, experiment, setup) -> Verdict:
        found = verdict(step, setup, run_all([(experiment, setup)])[0])
        if found.outcome != "unavailable" and not (found.outcome == "works" and found.says):
            raise self._disagreement(step, "values that are equal", in_short(found))
        return found

    def _agree(self, found: Verdict) -> str:
        symptom = self.symptom(found.setup)
        if found.outcome == "unavailable":
            return f"not run: {found.says}"
        if symptom is None and found.outcome == "works":
            return f"works under {found.setup}, as declared"
        if symptom is not None and symptom.matches(found):
            return f"{symptom.raises}: {re.search(symptom.says, found.whole).group(0)}"
        raise self._disagreement("reproduce", self._expected(found), in_short(found))

    @staticmethod
    def _judge(claim: Claim, observations) -> str:
        held = [bool(each) for each in observations]
        if not held:
            raise Refused(f"Claim {claim.id} was declared, but no run in this notebook tests it.")
        return "true" if all(held) else "half" if any(held) else "false"

    @staticmethod
    def _reason(found: Verdict) -> str:
        return found.says or "it returns no Proof"

    def _disagreement(self, step: str, wanted: str, got: str) -> Disagreement:
        verb = "did not reproduce" if step == "reproduce" else f"disagrees with its run at {step!r}"
        return Disagreement(
            f"{self.name} {verb}: declared {wanted}; the run gave {got}. See {self.notebook}"
        )

    def _say(self, step: str, words: str, found: Verdict | None = None, **facts) -> None:
        """One line; a verdict never stands without the word that says how it was obtained."""
        how = f" ({found.evidence})" if found else ""
        facts |= {"verdict": found.as_dict()} if found else {}
        report(f"{self.name} {step}{how} | {words}", mode=self.id, step=step, **facts)


def in_short(found: Verdict) -> str:
    """A verdict in words, for a sentence about what came instead."""
    if found.outcome == "works":
        return "no failure" if found.subject == "broken" else "no proof by values"
    return f"{found.outcome} ({found.error}: {found.says})"


def check_words(mode: FailureMode) -> None:
    """A claim's verdict is one of three words, or one of them per Keras generation."""
    for claim in mode.claims:
        for word in [claim.expected(2), claim.expected(3)]:
            choose(f"verdict of {claim.id}", word, TRUTHS)
