"""The session of a page: one failure mode under one setup, and the steps that compare its runs with its declaration.

Every step shows one line, the same on every machine, with its facts as JSON. A step whose run is not as declared raises
Disagreement, and the notebook fails.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .base.display import report, running_shell, text_table
from .base.errors import UserError, choose
from .experiments.experiment import run_all
from .experiments.extract_source import source_of
from .experiments.proofs import Experiment, Proof, Result
from .experiments.verdicts import EVIDENCE, Verdict, classify, rows
from .modes.failure_mode import Claim, FailureMode
from .modes.registry import mode_by_id
from .panel import figures, widgets
from .programs import run as programs
from .programs.switches import for_setup
from .setups import parameters
from .setups.parameters import Setup


class Disagreement(AssertionError):
    """A run is not as its mode declares."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def open(  # noqa: A001 - clinic.open is what a notebook calls
    mode: str, strategy: str, devices: int, save_format: str, keras: int
) -> "Session":
    """Checks the four parameters, prepares this kernel for them, and returns the session of a page."""
    setup = Setup(strategy, devices, save_format, keras)
    programs.prepare()
    parameters.prepare_kernel(setup)
    session = Session(mode_by_id(mode), setup)
    if shell := running_shell():
        shell.register_magic_function(session.program, "cell", "program")
    return session


PROGRAMS = ("broken", "fixed", "exercise", "solution")
Subject = Experiment | str  # a function of a page, or the text of a program


class Session:
    """A mode, a setup, the programs of its page, and the results of their runs."""

    def __init__(self, mode: FailureMode, setup: Setup) -> None:
        self.mode, self.setup = mode, setup
        self.experiments: dict[str, Subject] = {}
        self.results: dict[tuple[str, str, Setup], Result] = {}
        expects = mode.expects(setup)
        self._report("setup", str(setup), parameters=setup.as_dict(), expects=expects)

    def run(
        self, subjects: Mapping[str, Subject], setups: list[Setup], again: bool = False
    ) -> list[Verdict]:
        """Returns the verdict on each program under each setup, in that order.

        A result is used again as long as the program is the same, or the source of all that an experiment uses.
        """
        sources = {
            name: what if isinstance(what, str) else source_of([what])
            for name, what in subjects.items()
        }
        pairs = [(subject, setup) for setup in setups for subject in subjects]
        keys = [(name, sources[name], setup) for name, setup in pairs]
        missing = {
            key: (subjects[subject], setup)
            for key, (subject, setup) in zip(keys, pairs)
            if again or key not in self.results
        }
        self.results |= self._results(missing)
        return [classify(*pair, self.results[key]) for pair, key in zip(pairs, keys)]

    def _results(
        self, wanted: dict[tuple[str, str, Setup], tuple[Subject, Setup]]
    ) -> dict[tuple[str, str, Setup], Result]:
        texts = {key: what for key, (what, _) in wanted.items() if isinstance(what, str)}
        jobs = [self._job(text, key[2]) for key, text in texts.items()]
        runs = dict(zip(texts, programs.run_programs(jobs)))
        experiments = {
            key: (what, setup) for key, (what, setup) in wanted.items() if not isinstance(what, str)
        }
        results = dict(zip(experiments, run_all(list(experiments.values()))))
        return results | {
            key: programs.result_of(run, self._right(key[0])) for key, run in runs.items()
        }

    def _job(self, text: str, setup: Setup) -> programs.Job:
        return programs.Job(text, setup, self.mode.observed, self.mode.reason_against(setup))

    def _right(self, subject: str) -> str:
        """Returns what a program prints that is right."""
        task = subject in ("exercise", "solution")
        return self.mode.exercise_prints if task else self.mode.prints

    def program(self, line: str, cell: str) -> None:
        """The cell magic `%%program`: runs the cell as a script of its own, with the lines of this setup.

        The broken program must fail as the mode declares, the fixed one and the solution must print what is right.
        """
        subject, text = choose("program", line.strip(), PROGRAMS), f"{cell.strip()}\n"
        self.experiments[subject] = text
        if for_setup(text, self.setup, "CPU") != text:
            print(f"With the lines for {self.setup}.")
        (verdict,) = self.run({subject: text}, [self.setup], again=True)
        print(verdict.result.run.shown(text), end="")
        if subject == "broken":
            self._as_declared(verdict)
        elif subject != "exercise":
            self._require_proof(verdict)
        colour = {"exercise": "green" if verdict.outcome == "works" else "red", "solution": "green"}
        facts = {"colour": colour[subject]} if subject in colour else {}
        self._report(subject, self._judgement(verdict), verdict, **facts)
        note = self.mode.version_note(self.setup)
        if subject == "broken" and note:
            report(f"{self.mode.name} versions | {note}", mode=self.mode.id, side=note)

    def _judgement(self, verdict: Verdict) -> str:
        """Returns in words what a program's run shows."""
        if verdict.outcome == "unavailable":
            return f"not run: {verdict.says}"
        if verdict.outcome == "works":
            return "right"
        what = "wrong" if verdict.outcome == "silent" else verdict.outcome
        right = self._right(verdict.subject).strip().splitlines()
        return f"{what}; it should print: {right[0]}" + (" …" if len(right) > 1 else "")

    def prints(self, texts: Mapping[str, str], setups: Sequence[Setup]) -> dict[str, list[str]]:
        """Runs programs under setups. Returns by name what each printed under each, or the class of its error."""
        pairs = [(name, setup) for name in texts for setup in setups]
        runs = programs.run_programs([self._job(texts[name], setup) for name, setup in pairs])
        words = [type(run.error).__name__ if run.error else run.printed.strip() for run in runs]
        return {
            name: [word for (other, _), word in zip(pairs, words) if other == name]
            for name in texts
        }

    def variants(self, subject: str, line: str, others: Mapping[str, str]) -> dict[str, str]:
        """Returns by name a copy of a program of this page with another text in place of one of its lines."""
        text = self._text_of(subject)
        if text.count(line) != 1:
            raise UserError(
                f"{line!r} stands {text.count(line)} times in {subject}.py, and not once."
            )
        return {name: text.replace(line, other) for name, other in others.items()}

    def _text_of(self, subject: str) -> str:
        text = self.experiments.get(subject)
        if not isinstance(text, str):
            raise UserError(
                f"The cell with the program {subject!r} has not been run: run it first."
            )
        return text

    def placement(self) -> figures.Picture:
        """Draws the devices that hold the variables of the broken program's objects that the mode names."""
        (verdict,) = self.run({"broken": self._text_of("broken")}, [self.setup])
        return figures.placement(verdict.result.observations)

    def reproduces(self, broken: Experiment) -> None:
        """Runs the experiment: it must fail as the mode declares for this setup, or work where no symptom is declared."""
        verdict = self._run_step("broken", broken)
        self._report("broken", self._as_declared(verdict) + wrong_numbers(verdict), verdict)
        if note := self.mode.version_note(self.setup):
            report(f"{self.mode.name} versions | {note}", mode=self.mode.id, side=note)

    def proves(self, fixed: Experiment) -> None:
        """Runs the repaired experiment; the values in its proof must be equal."""
        verdict = self._run_step("fixed", fixed)
        self._require_proof(verdict)
        self._report("fixed", verdict.says, verdict)

    def table(self, setups: list[Setup]) -> None:
        """Shows the verdicts of both experiments under each setup; each must be what the mode declares."""
        verdicts = self.run(self.both(), setups)
        for verdict in verdicts:
            if not self.mode.agrees(verdict):
                step = f"{verdict.subject} ({verdict.setup})"
                raise self._disagreement(
                    step, self.mode.expected_outcome(verdict), summary(verdict)
                )
        facts = [verdict.as_dict() | {"setup": verdict.setup.as_dict()} for verdict in verdicts]
        report(text_table(rows(verdicts)), table=facts)

    def panel(self) -> None:
        """Shows the verdicts of this setup as a card and a picture, and controls for every other setup."""
        both = dict(self.both())
        verdicts = self.run(both, [self.setup])
        texts = {name: text for name, text in both.items() if isinstance(text, str)}
        run = functools.partial(self._run_again, both)
        widgets.show_panel(self.mode, texts, verdicts, run)

    def _run_again(self, subjects: Mapping[str, Subject], setup: Setup) -> list[Verdict]:
        return self.run(subjects, [setup], again=True)

    def judges(self, results: dict[str, Iterable[object]], evidence: str = "executed") -> None:
        """Compares the results of each claim's tests with its declared verdict: all hold, none holds, or some do.

        Every claim is reported before one that is not as declared fails the page.
        """
        choose("evidence", evidence, EVIDENCE)
        undeclared, wrong = dict(results), []
        for claim in self.mode.claims_here():
            truth = truth_of(claim, undeclared.pop(claim.id, ()))
            expected = claim.expected(self.setup.keras)
            words = claim.in_words(self.setup.keras) if truth == expected else truth
            facts = {"id": claim.id, "verdict": truth, "evidence": evidence}
            report(f"{claim.id} is {words} ({evidence}): {claim.says}", claim=facts)
            if truth != expected:
                wrong.append((claim.id, expected, truth))
        if wrong:
            raise self._disagreement(*wrong[0])
        if undeclared:
            raise self._disagreement("claims", "only declared claims", ", ".join(undeclared))

    def exercise(self, attempt: Experiment) -> None:
        """Reports an attempt as red or green, and why; a red one does not fail the notebook, which begins with it."""
        verdict = self._run_step("exercise", attempt)
        colour = "green" if verdict.outcome == "works" and verdict.says else "red"
        says = verdict.says or "it returns no Proof"
        self._report("exercise", f"{colour}: {says}", verdict, colour=colour)

    def solution(self, solved: Experiment) -> None:
        """Runs the solution, which must turn the exercise green."""
        verdict = self._run_step("solution", solved)
        self._require_proof(verdict)
        self._report("solution", f"green: {verdict.says}", verdict, colour="green")

    # What the steps share

    def _run_step(self, subject: str, experiment: Experiment) -> Verdict:
        """Runs an experiment under this setup; only results of the page's two experiments are used again."""
        if subject in ("broken", "fixed"):
            self.experiments[subject] = experiment
            return self.run({subject: experiment}, [self.setup], again=True)[0]
        return classify(subject, self.setup, run_all([(experiment, self.setup)])[0])

    def both(self) -> dict[str, Subject]:
        missing = [name for name in ("broken", "fixed") if name not in self.experiments]
        if missing:
            raise UserError(
                f"{self.mode.name} needs both experiments, and {' and '.join(missing)} has not been run: "
                "run the cells above this one first."
            )
        return {name: self.experiments[name] for name in ("broken", "fixed")}

    def _require_proof(self, verdict: Verdict) -> None:
        proven = verdict.outcome == "works" and verdict.says
        if verdict.outcome != "unavailable" and not proven:
            raise self._disagreement(verdict.subject, "values that are equal", summary(verdict))

    def _as_declared(self, verdict: Verdict) -> str:
        """Returns the outcome in words; raises Disagreement if the mode declares another."""
        if verdict.outcome == "unavailable":
            return f"not run: {verdict.says}"
        if not self.mode.agrees(verdict):
            expected = self.mode.expected_outcome(verdict)
            raise self._disagreement("reproduce", expected, summary(verdict))
        symptom = self.mode.symptom(verdict.setup)
        words = symptom and re.search(symptom.says, verdict.message)
        if not symptom or not words:
            return f"works under {verdict.setup}, as declared"
        return f"{symptom.raises}: {words.group()}"

    def _disagreement(self, step: str, declared: str, run: str) -> Disagreement:
        verb = "did not reproduce" if step == "reproduce" else f"disagrees with its run at {step!r}"
        return Disagreement(
            f"{self.mode.name} {verb}: declared {declared}; the run gave {run}. See {self.mode.notebook}"
        )

    def _report(self, step: str, words: str, verdict: Verdict | None = None, **facts: Any) -> None:
        """Shows one line, in which the evidence stands beside a verdict."""
        evidence = f" ({verdict.evidence})" if verdict else ""
        facts |= {"verdict": verdict.as_dict()} if verdict else {}
        line = f"{self.mode.name} {step}{evidence} | {words}"
        report(line, mode=self.mode.id, step=step, **facts)


def truth_of(claim: Claim, results: Iterable[object]) -> str:
    """Returns whether a claim holds in all runs, in some, or in none; raises a UserError if there is no run."""
    held = list(map(bool, results))
    if not held:
        raise UserError(f"Claim {claim.id} was declared, but no run in this notebook tests it.")
    return "true" if all(held) else "half" if any(held) else "false"


def summary(verdict: Verdict) -> str:
    """Returns an outcome in words, for a sentence that says what was declared instead."""
    if verdict.outcome == "works":
        return "no failure" if verdict.subject == "broken" else "no proof by values"
    return f"{verdict.outcome} ({verdict.error}: {verdict.says})"


def wrong_numbers(verdict: Verdict) -> str:
    """Returns the first wrong value of a proof beside the right one, in three digits, which all machines share."""
    import numpy as np

    proof = verdict.result.value
    if not isinstance(proof, Proof) or proof.holds:
        return ""
    got, want = (
        [float(x) for value in values for x in np.ravel(value)]
        for values in (proof.got, proof.want)
    )
    for a, b in zip(got, want, strict=False):
        if abs(a - b) > proof.tolerance * (1 + abs(b)):
            return f" (got {a:.3g}, expected {b:.3g})"
    return ""
