"""The session of a page: one failure mode under one setup, and the steps that compare its runs with its declaration.

Every step shows one line, the same on every machine, with its facts as JSON. A step whose run is not as declared raises
Disagreement, and the notebook fails.
"""

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .base import files
from .base.display import report, running_shell, text_table
from .base.errors import UserError, choose
from .inside.tables import Tables
from .modes.failure_mode import FailureMode
from .modes.registry import mode_by_id
from .panel import figures, step_figure, widgets
from .programs import run as programs
from .programs.switches import for_setup
from .programs.text import SUBJECTS, without_notes
from .programs.verdicts import Verdict, classify, rows
from .setups import parameters
from .setups.parameters import Setup

NBGRADER = "NBGRADER_EXECUTION"  # the variable by which nbgrader says what it is doing


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
    session.begin()
    if shell := running_shell():
        shell.register_magic_function(session.program, "cell", "program")
        if NBGRADER in os.environ:
            from .workshop import nbgrader

            nbgrader.prepare(shell, session.keep, os.environ[NBGRADER])
    return session


def program_in(cell: str) -> str:
    """Returns the program of a cell as its file has it, without the comment of the page."""
    return without_notes(f"{cell.strip()}\n")


class Session:
    """A mode, a setup, the programs of its page, and the results of their runs."""

    def __init__(self, mode: FailureMode, setup: Setup) -> None:
        self.mode, self.setup = mode, setup
        self.texts: dict[str, str] = {}  # of the programs in the cells that have been run
        self.runs: dict[tuple[str, str, Setup], programs.Run] = {}
        self.shows_inside = False  # whether the page has shown what replicas hold

    def begin(self) -> None:
        """Shows the setup of the page."""
        expects = self.mode.expects(self.setup)
        self._report("setup", str(self.setup), parameters=self.setup.as_dict(), expects=expects)

    def run(
        self, texts: Mapping[str, str], setups: Sequence[Setup], again: bool = False
    ) -> list[Verdict]:
        """Returns the verdict on each program under each setup, in that order.

        The run of a program that has run under a setup is used again, unless another run is asked for.
        """
        wanted = [(subject, text, setup) for setup in setups for subject, text in texts.items()]
        missing = [key for key in dict.fromkeys(wanted) if again or key not in self.runs]
        runs = programs.run_programs([self._job(text, setup) for _, text, setup in missing])
        for key, run in zip(missing, runs):
            self.runs[key] = programs.judged(run, self._right(key[0]))
        return [classify(key[0], key[2], self.runs[key]) for key in wanted]

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
        subject, text = choose("program", line.strip(), SUBJECTS), program_in(cell)
        self.texts[subject] = text
        if for_setup(text, self.setup, "CPU") != text:
            print(f"With the lines for {self.setup}.")
        (verdict,) = self.run({subject: text}, [self.setup], again=True)
        print(verdict.run.shown(for_setup(text, self.setup)), end="")
        if subject != "exercise":
            self._require_as_declared(verdict, subject)
        colour = {"exercise": "green" if verdict.outcome == "works" else "red", "solution": "green"}
        facts = {"colour": colour[subject]} if subject in colour else {}
        self._report(subject, self._judgement(verdict), verdict, **facts)
        note = self.mode.version_note(self.setup)
        if subject == "broken" and note:
            report(f"{self.mode.name} versions | {note}", mode=self.mode.id, side=note)

    def keep(self, line: str, cell: str) -> None:
        """The cell magic `%%program` while nbgrader grades: keeps the program, which the graded cell runs."""
        self.texts[choose("program", line.strip(), SUBJECTS)] = program_in(cell)

    def _judgement(self, verdict: Verdict) -> str:
        """Returns in words what a program's run shows."""
        if verdict.outcome == "unavailable":
            return f"not run: {verdict.says}"
        if verdict.outcome == "works":
            return "right"
        right = self._right(verdict.subject).strip().splitlines()
        return f"{verdict.outcome}; it should print: {right[0]}" + (" …" if len(right) > 1 else "")

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
        if subject not in self.texts:
            raise UserError(
                f"The cell with the program {subject!r} has not been run: run it first."
            )
        return self.texts[subject]

    def placement(self) -> figures.Picture:
        """Draws the devices that hold the variables of the broken program's objects that the mode names."""
        (verdict,) = self.run({"broken": self._text_of("broken")}, [self.setup])
        return figures.placement(verdict.run.observations)

    def inside(self, setup: Setup) -> figures.Picture:
        """Draws what each replica holds in a step of both programs under a setup, beside one device."""
        from .examiner.frontends.page_tables import tables_of_all

        self.shows_inside = True
        return step_figure.draw(tables_of_all(self.both(), setup))

    def _look(self, subject: str, setup: Setup) -> Tables:
        from .examiner.frontends.page_tables import tables_of

        return tables_of(self._text_of(subject), setup)

    def table(self, setups: list[Setup]) -> None:
        """Shows the verdicts on both programs under each setup; each must be what the mode declares."""
        verdicts = self.run(self.both(), setups)
        for verdict in verdicts:
            self._require_as_declared(verdict, f"{verdict.subject} ({verdict.setup})")
        facts = [verdict.as_dict() | {"setup": verdict.setup.as_dict()} for verdict in verdicts]
        report(text_table(rows(verdicts)), table=facts)

    def panel(self) -> None:
        """Shows the verdicts of this setup as a card and a picture, and controls for every other setup."""
        both = self.both()
        verdicts = self.run(both, [self.setup])
        run = functools.partial(self._run_again, both)
        look = self._look if self.shows_inside else None
        widgets.show_panel(self.mode, both, verdicts, run, look)

    def _run_again(self, texts: Mapping[str, str], setup: Setup) -> list[Verdict]:
        return self.run(texts, [setup], again=True)

    def grade_exercise(self, hint: bool = False) -> None:
        """Grades the exercise that was run last, as `clinic grade` does; raises AssertionError unless it is green.

        Shows a hint for a usual mistake, or, if asked for one, the hint for the exercise as it was handed out.
        """
        from .workshop import hints
        from .workshop.grade import grade_program

        if hint:
            return print(f"{self.mode.name} hint: {hints.first_hint(self.mode.id)}")
        grade = grade_program(self.mode, self._text_of("exercise"))
        print(f"{self.mode.name} exercise: {grade.result}: {grade.says}")
        if grade.result != "green":
            raise AssertionError(grade.says)

    # What the steps share

    def both(self) -> dict[str, str]:
        """Returns the broken and the fixed program; raises a UserError if a cell with one has not been run."""
        return {subject: self._text_of(subject) for subject in ("broken", "fixed")}

    def _require_as_declared(self, verdict: Verdict, step: str) -> None:
        if not self.mode.agrees(verdict):
            raise self._disagreement(step, self.mode.expected_outcome(verdict), summary(verdict))

    def _disagreement(self, step: str, declared: str, run: str) -> Disagreement:
        return Disagreement(
            f"{self.mode.name} disagrees with its run at {step!r}: declared {declared}; the run gave {run}. "
            f"See {files.shown_notebook(Path(self.mode.notebook).name)}"
        )

    def _report(self, step: str, words: str, verdict: Verdict | None = None, **facts: Any) -> None:
        """Shows one line, in which the evidence stands beside a verdict."""
        evidence = f" ({verdict.shown_evidence})" if verdict and verdict.shown_evidence else ""
        facts |= {"verdict": verdict.as_dict()} if verdict else {}
        line = f"{self.mode.name} {step}{evidence} | {words}"
        report(line, mode=self.mode.id, step=step, **facts)


def summary(verdict: Verdict) -> str:
    """Returns an outcome in words, for a sentence that says what was declared instead."""
    if verdict.outcome == "works":
        return "no failure"
    return f"{verdict.outcome} ({verdict.error}: {verdict.says})"
