"""An answer of triage as lines of text, and as the HTML of a card."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..base import files
from ..base.templates import from_template
from . import classify, known_errors, wordings

PASTE = "Paste an error with its traceback, as much of it as you have, or say what goes wrong."
NONE = "none of the modes"
NO_WORDING = "no known wording"
PERHAPS = "perhaps "
SEVERAL = "wordings of several modes"
NEXT_OF_ERROR = (
    "next: look for the error's last line in the issues of the package that raised it, with your releases;"
    " paste the rest of the traceback, if there is more"
)
NEXT_OF_DESCRIPTION = (
    "next: paste what was printed, if anything was;"
    " `clinic examine PROGRAM.py` compares your program on one device with itself on several"
)
ASKED = 0.1  # a mode is asked about from this score on
SURE = 0.9  # below this score a known error is only perhaps the cause
RUNNER_UP = 0.15  # the second mode is named from this score on


@dataclass(frozen=True)
class Line:
    """A line of an answer, and the mode whose notebook, or the address of the issue, that belongs to it."""

    text: str
    mode: str | None = None
    url: str = ""


def lines_of(answer: classify.Answer) -> list[str]:
    return [f"{line.text} {line.url}".rstrip() for line in lines(answer)]


def lines(answer: classify.Answer) -> list[Line]:
    if answer.mode:
        first = answer.candidates[0]
        return [
            Line(named(first)),
            Line(f"  because {first.because}"),
            Line(f"  fix: {first.fix or wordings.declared_modes()[answer.mode].fix}"),
            Line(f"  see {files.shown_notebook(notebook_name(answer.mode))}", answer.mode),
            *runner_up(answer),
        ]
    if answer.known and not answer.candidates[0].mode:
        return [Line(none_known(answer)), *nearest(answer)]
    why = SEVERAL if answer.known else NO_WORDING
    asked = list(questions(answer))
    if answer.candidates and answer.candidates[0].score > answer.confidence:
        return [
            Line(f"{why}; perhaps {named(answer.candidates[0])}"),
            *asked,
            Line(f"  or {none(answer)}"),
            *further(answer),
        ]
    return [Line(f"{why}; {none(answer)}"), *asked, *further(answer)]


def further(answer: classify.Answer) -> Iterator[Line]:
    """Yields what to do next about a text that nothing known explains."""
    if not answer.known:
        yield Line(f"  {NEXT_OF_ERROR if answer.is_error else NEXT_OF_DESCRIPTION}")


def named(candidate: classify.Candidate) -> str:
    title = wordings.declared_modes()[candidate.mode or ""].title
    return f"{with_score(candidate)}: {title}"


def with_score(candidate: classify.Candidate) -> str:
    return f"{full_name(candidate.mode)} ({candidate.score:.2f})"


def none(answer: classify.Answer) -> str:
    return f"{NONE} ({answer.confidence:.2f})"


def questions(answer: classify.Answer) -> Iterator[Line]:
    """Yields what would tell the likeliest modes from one another."""
    for candidate in answer.candidates:
        if candidate.mode and candidate.score >= ASKED:
            then = f"Then {with_score(candidate)}: {candidate.because}"
            yield Line(f"  {wordings.question_of(candidate.mode)} {then}", candidate.mode)


def none_known(answer: classify.Answer) -> str:
    first = answer.candidates[0]
    if not first.error:
        return none(answer)
    perhaps = PERHAPS if first.score < SURE else ""
    return f"{none(answer)}: {perhaps}{known_errors.NO_FAULT}"


def nearest(answer: classify.Answer) -> Iterator[Line]:
    for candidate in answer.candidates[:2]:
        if candidate.mode:
            name = full_name(candidate.mode)
            yield Line(f"  not enough for {name}: {candidate.because}", candidate.mode)
        else:
            yield Line(f"  it looks like {candidate.because}")
            yield from repair(candidate)


def runner_up(answer: classify.Answer) -> Iterator[Line]:
    for candidate in answer.candidates[1:2]:
        if candidate.score >= RUNNER_UP:
            yield Line(f"  or {with_score(candidate)}, {candidate.because}", candidate.mode)
            yield from repair(candidate)


def repair(candidate: classify.Candidate) -> Iterator[Line]:
    """Yields what to do about a known error, and its issue; or about what is no mode."""
    if candidate.error:
        yield Line(f"  fix: {candidate.fix}")
        yield Line("  see", url=known_errors.known_errors()[candidate.error].url)
    elif candidate.fix and not candidate.mode:
        yield Line(f"  next: {candidate.fix}")


def full_name(mode: str | None) -> str:
    return f"{mode} {wordings.declared_modes()[mode].slug}" if mode else NONE


def notebook_name(mode: str) -> str:
    return f"{mode}_{wordings.declared_modes()[mode].slug}.ipynb"


def card(answer: classify.Answer) -> str:
    """Returns the lines as HTML; all of it is escaped, for a part of it was pasted."""
    head, *rest = lines(answer)
    return from_template(
        "triage/templates/card.html",
        mode=answer.mode or "none",
        head=head.text,
        lines=[
            (line.text.strip(), notebook_name(line.mode) if line.mode else "", line.url)
            for line in rest
        ],
    )


def empty_card() -> str:
    """Returns the card for a field without a text: what to paste."""
    return from_template("triage/templates/card.html", mode="", head=PASTE, lines=[])
