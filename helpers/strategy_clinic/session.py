"""The clinic as a notebook opens it: one failure mode under one setup, and the steps that hold the page to its word.

Every step prints one line that is the same on every machine, with the same facts as JSON beside it for whoever
runs many notebooks. A step that does not find what the mode declares raises Disagreement, and the notebook fails.
"""

import re

from .base.display import report, text_table
from .base.errors import UserError, choose
from .experiments.experiment import recall, run_all
from .experiments.proofs import Proof
from .experiments.verdicts import EVIDENCE, Verdict, rows, verdict, verdicts
from .modes.failure_mode import Claim
from .modes.registry import mode_by_id
from .panel import widgets
from .setups import parameters


class Disagreement(AssertionError):
    """A run and the declaration of its mode say different things."""

    def _render_traceback_(self):
        return [str(self)]


def open(mode, strategy, devices, save_format, keras):  # noqa: A001 - clinic.open is what a notebook calls
    """Opens the clinic on a page: the four parameters are checked, and this kernel is made ready for them."""
    setup = parameters.enter(parameters.Setup(strategy, devices, save_format, keras))
    return Session(mode_by_id(mode), setup)


class Session:
    """A mode, a setup, and the two experiments as soon as they are shown."""

    def __init__(self, mode, setup):
        self.mode, self.setup, self.experiments = mode, setup, {}
        expects = mode.expects(setup)
        self._say("setup", str(setup), parameters=setup.as_dict(), expects=expects)

    def reproduces(self, broken) -> None:
        """The experiment must fail as the mode declares for this setup, or work where it declares no symptom."""
        self.experiments["broken"] = broken
        result = run_all([(broken, self.setup)])[0]
        found = verdict("broken", self.setup, result)
        self._say("reproduced", self._agree(found) + in_numbers(result.value), found)
        if side := self.mode.side(self.setup):
            report(f"{self.mode.name} versions | {side}", mode=self.mode.id, side=side)

    def proves(self, fixed) -> None:
        """Runs the repaired experiment; the values in its proof must be equal."""
        self.experiments["fixed"] = fixed
        found = self._proven("fixed", fixed)
        self._say("fixed", found.says, found)

    def table(self, listed: list) -> None:
        """Shows the verdicts of both experiments under each setup; each must be what the mode declares."""
        found = verdicts(self._both(), listed, recall)
        for each in found:
            if not self.mode.agrees(each):
                step = f"{each.subject} ({each.setup})"
                raise self._disagreement(step, self.mode.expected_of(each), in_short(each))
        report(
            text_table(rows(found)),
            table=[each.as_dict() | {"setup": each.setup.as_dict()} for each in found],
        )

    def panel(self) -> None:
        """The verdict of this setup as card and picture, and controls for every other setup."""
        widgets.panel(self.mode, **self._both(), setup=self.setup)

    def judges(self, found: dict, evidence: str = "executed") -> None:
        """Compares each claim's observations with its declared verdict: all hold, none holds, or some do.

        Every claim is reported before one that is not as declared fails the page.
        """
        choose("evidence", evidence, EVIDENCE)
        wrong = []
        for claim in self.mode.claims_here():
            word, expected = judge(claim, found.pop(claim.id, ())), claim.expected(self.setup.keras)
            told = claim.told(self.setup.keras) if word == expected else word
            facts = {"id": claim.id, "verdict": word, "evidence": evidence}
            report(f"{claim.id} is {told} ({evidence}): {claim.says}", claim=facts)
            wrong += [(claim.id, expected, word)] if word != expected else []
        for each in wrong:
            raise self._disagreement(*each)
        if found:
            raise self._disagreement("claims", "only declared claims", ", ".join(found))

    def exercise(self, attempt) -> None:
        """Says red or green, and why; a red exercise is where the reader starts, so it does not fail the notebook."""
        found = verdict("exercise", self.setup, run_all([(attempt, self.setup)])[0])
        colour = "green" if found.outcome == "works" and found.says else "red"
        says = found.says or "it returns no Proof"
        self._say("exercise", f"{colour}: {says}", found, colour=colour)

    def solution(self, solved) -> None:
        """The solution must turn the exercise green."""
        found = self._proven("solution", solved)
        self._say("solution", f"green: {found.says}", found, colour="green")

    # What the steps share

    def _both(self) -> dict:
        missing = [name for name in ("broken", "fixed") if name not in self.experiments]
        if missing:
            raise UserError(
                f"{self.mode.name} needs both experiments, and {' and '.join(missing)} has not been run: "
                "run the cells above this one first."
            )
        return self.experiments

    def _proven(self, step: str, experiment) -> Verdict:
        found = verdict(step, self.setup, run_all([(experiment, self.setup)])[0])
        if found.outcome != "unavailable" and not (found.outcome == "works" and found.says):
            raise self._disagreement(step, "values that are equal", in_short(found))
        return found

    def _agree(self, found: Verdict) -> str:
        symptom = self.mode.symptom(found.setup)
        if found.outcome == "unavailable":
            return f"not run: {found.says}"
        if symptom is None and found.outcome == "works":
            return f"works under {found.setup}, as declared"
        if symptom is not None and symptom.matches(found):
            return f"{symptom.raises}: {re.search(symptom.says, found.whole).group(0)}"
        raise self._disagreement("reproduce", self.mode.expected_of(found), in_short(found))

    def _disagreement(self, step: str, wanted: str, got: str) -> Disagreement:
        verb = "did not reproduce" if step == "reproduce" else f"disagrees with its run at {step!r}"
        return Disagreement(
            f"{self.mode.name} {verb}: declared {wanted}; the run gave {got}. See {self.mode.notebook}"
        )

    def _say(self, step: str, words: str, found: Verdict | None = None, **facts) -> None:
        """One line; a verdict never stands without the word that says how it was obtained."""
        how = f" ({found.evidence})" if found else ""
        facts |= {"verdict": found.as_dict()} if found else {}
        report(f"{self.mode.name} {step}{how} | {words}", mode=self.mode.id, step=step, **facts)


def judge(claim: Claim, observations) -> str:
    held = [bool(each) for each in observations]
    if not held:
        raise UserError(f"Claim {claim.id} was declared, but no run in this notebook tests it.")
    return "true" if all(held) else "half" if any(held) else "false"


def in_short(found: Verdict) -> str:
    """A verdict in words, for a sentence about what came instead."""
    if found.outcome == "works":
        return "no failure" if found.subject == "broken" else "no proof by values"
    return f"{found.outcome} ({found.error}: {found.says})"


def in_numbers(proof) -> str:
    """The first value of a broken proof that is wrong, beside the right one; three digits, which all machines share."""
    if not isinstance(proof, Proof) or proof.holds:
        return ""
    pairs = zip(in_a_row(proof.got), in_a_row(proof.want), strict=False)
    wrong = [(a, b) for a, b in pairs if abs(a - b) > proof.tolerance * (1 + abs(b))]
    return f" (got {wrong[0][0]:.3g}, expected {wrong[0][1]:.3g})" if wrong else ""


def in_a_row(values) -> list[float]:
    import numpy as np

    return [float(each) for value in values for each in np.ravel(value)]
