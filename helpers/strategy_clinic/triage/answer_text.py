"""An answer of triage as lines of text, and as the HTML of a card."""

from collections.abc import Iterator

from ..base import files
from ..base.templates import from_template
from . import classify, wordings

NONE = "none of the modes"
NO_WORDING = "no known wording"
SEVERAL = "wordings of several modes"
ASKED = 0.1  # a mode is asked about from this score on
RUNNER_UP = 0.15  # the second mode is named from this score on


def lines_of(answer: classify.Answer) -> list[str]:
    if answer.mode:
        mode = wordings.declared_modes()[answer.mode]
        return [
            f"{full_name(answer.mode)} ({answer.confidence:.2f}): {mode.title}",
            f"  because {answer.candidates[0].because}",
            f"  fix: {mode.fix}",
            f"  see {files.shown_notebook(notebook_name(answer.mode))}",
            *runner_up(answer),
        ]
    if answer.known and not answer.candidates[0].mode:
        return [f"{NONE} ({answer.confidence:.2f})", *map(nearest, answer.candidates[:2])]
    why = SEVERAL if answer.known else NO_WORDING
    return [f"{why}; {NONE} ({answer.confidence:.2f})", *questions(answer)]


def questions(answer: classify.Answer) -> Iterator[str]:
    """Yields what would tell the likeliest modes from one another."""
    for candidate in answer.candidates:
        if candidate.mode and candidate.score >= ASKED:
            name = f"{full_name(candidate.mode)} ({candidate.score:.2f})"
            yield f"  {wordings.question_of(candidate.mode)} Then {name}: {candidate.because}"


def nearest(candidate: classify.Candidate) -> str:
    if candidate.mode:
        return f"  not enough for {full_name(candidate.mode)}: {candidate.because}"
    return f"  it looks like {candidate.because}"


def runner_up(answer: classify.Answer) -> Iterator[str]:
    for candidate in answer.candidates[1:2]:
        if candidate.score >= RUNNER_UP:
            yield f"  or {full_name(candidate.mode)} ({candidate.score:.2f}), {candidate.because}"


def full_name(mode: str | None) -> str:
    return f"{mode} {wordings.declared_modes()[mode].slug}" if mode else NONE


def notebook_name(mode: str) -> str:
    return f"{mode}_{wordings.declared_modes()[mode].slug}.ipynb"


def card(answer: classify.Answer) -> str:
    """Returns the lines as HTML; all of it is escaped, for a part of it was pasted."""
    head, *rest = lines_of(answer)
    return from_template(
        "triage/templates/card.html",
        mode=answer.mode or "none",
        head=head,
        notebook=notebook_name(answer.mode) if answer.mode else "",
        lines=[line.strip() for line in rest],
    )
