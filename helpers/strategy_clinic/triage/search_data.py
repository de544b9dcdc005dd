"""All that triage knows as data for a browser: every expression, weight, wording and description."""

import re
from collections.abc import Callable
from dataclasses import asdict

from ..modes.failure_mode import FailureMode
from . import (
    answer_text,
    classify,
    code_patterns,
    known_errors,
    near,
    phrases,
    releases,
    report_text,
    similarity,
    wordings,
)

FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
# What Python writes otherwise than JavaScript: flags at the beginning, and the two ends of a text.
INLINE = re.compile(r"^\(\?[ims]+\)")
ENDS = {r"\A": r"(?<![\s\S])", r"\Z": r"(?![\s\S])"}
ANY_CASE = re.compile(r"\(\?i:([^()]*)\)")
LONGEST_ENDING = 10  # characters of an ending, and what follows it

Pattern = list[str]


def data(page: Callable[[FailureMode], str]) -> dict[str, object]:
    """Returns what book/static/triage.js answers by; `page` gives the address of the page of a mode."""
    return {
        "number": NUMBERS,
        "proof": classify.PROOF,
        "says": classify.SAYS,
        "words": {
            "none": answer_text.NONE,
            "no_fault": known_errors.NO_FAULT,
            "perhaps": answer_text.PERHAPS,
            "no_wording": answer_text.NO_WORDING,
            "several": answer_text.SEVERAL,
            "paste": answer_text.PASTE,
            "next_of_error": answer_text.NEXT_OF_ERROR,
            "next_of_description": answer_text.NEXT_OF_DESCRIPTION,
        },
        "patterns": patterns(),
        "vocabulary": {name: wordings.read_vocabulary()[name] for name in ("stop", "ideas")},
        "modes": [mode(each, page(each)) for each in wordings.declared_modes().values()],
        "none": wordings.mode_words()[None].descriptions,
        "errors": {each.id: each.url for each in known_errors.known_errors().values()},
        "short_names": releases.SHORT_NAMES,
        "with_keras_3": releases.WITH_KERAS_3,
        "wordings": [wording(each) for each in wordings.wordings()],
        "code": [
            code(words.mode, pattern)
            for words in wordings.mode_words().values()
            for pattern in words.code
        ],
    }


NUMBERS = {
    "longest": report_text.LONGEST,
    "shown": report_text.SHOWN,
    "code_read": report_text.CODE_READ,
    "prose_read": report_text.PROSE_READ,
    "least_prose": report_text.LEAST_PROSE,
    "width": report_text.WIDTH,
    "widths": report_text.WIDTHS,
    "pasted": report_text.PASTED,
    "gap": phrases.GAP,
    "end": phrases.END,
    "stub": phrases.STUB,
    "least_left": phrases.LEAST_LEFT,
    "starts": phrases.STARTS,
    "tries": phrases.TRIES,
    "ending": LONGEST_ENDING,
    "read": near.READ,
    "places": near.PLACES,
    "per_edit": near.PER_EDIT,
    "most_edits": near.MOST_EDITS,
    "name": near.NAME,
    "least": near.LEAST,
    "least_of_words": near.LEAST_OF_WORDS,
    "short": near.SHORT,
    "part": near.PART,
    "half": near.HALF,
    "little": near.LITTLE,
    "mine": near.MINE,
    "clue": near.CLUE,
    "surest": classify.SUREST,
    "unknown": classify.UNKNOWN,
    "last": classify.LAST,
    "release": classify.RELEASE,
    "first": classify.FIRST,
    "most": classify.MOST,
    "description": classify.DESCRIPTION,
    "error": classify.ERROR,
    "hint": classify.HINT,
    "little_part": classify.LITTLE_PART,
    "code": classify.CODE,
    "deepest": code_patterns.DEEPEST,
    "pair": similarity.PAIR,
    "unseen": similarity.UNSEEN,
    "short_text": similarity.SHORT,
    "best": similarity.BEST,
    "quoted": similarity.QUOTED,
    "asked": answer_text.ASKED,
    "runner_up": answer_text.RUNNER_UP,
    "sure": answer_text.SURE,
}


def patterns() -> dict[str, Pattern]:
    dropped = "".join(map(chr, report_text.DROPPED))
    found: dict[str, str | re.Pattern[str]] = {
        "dropped": f"[{re.escape(dropped)}]",
        "ansi": report_text.ANSI,
        "escaped": report_text.ESCAPED,
        "margin": report_text.MARGIN,
        "box": report_text.BOX,
        "break": report_text.BREAK,
        "not_raised": report_text.NOT_RAISED,
        "raised": report_text.RAISED,
        "mentioned": report_text.MENTIONED,
        "warned": report_text.WARNED,
        "frame": report_text.FRAME,
        "blank": report_text.BLANK,
        "fenced": report_text.FENCED,
        "code_line": report_text.CODE_LINE,
        "folders": report_text.FOLDERS,
        "form_line": report_text.form_line(),
        "choice": phrases.CHOICE,
        "ending": rf"^(?:{phrases.ENDING.pattern})",
        "stem_end": phrases.STEM_END,
        "signs": near.SIGNS,
        "named": releases.NAMED,
        "release": releases.RELEASE,
        "run": code_patterns.RUN,
        "function": code_patterns.FUNCTION,
        "word": similarity.WORD,
    }
    return {name: javascript(pattern) for name, pattern in found.items()}


def javascript(pattern: str | re.Pattern[str]) -> Pattern:
    """Returns an expression of Python's as one of JavaScript's, and its flags."""
    compiled = re.compile(pattern)
    source = INLINE.sub("", compiled.pattern)
    for ours, theirs in ENDS.items():
        source = source.replace(ours, theirs)
    source = ANY_CASE.sub(lambda found: f"(?:{in_any_case(found[1])})", source)
    return [source, "".join(letter for flag, letter in FLAGS.items() if compiled.flags & flag)]


def in_any_case(source: str) -> str:
    return re.sub(r"[a-zA-Z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", source)


def mode(declared: FailureMode, page: str) -> dict[str, object]:
    descriptions = wordings.mode_words()[declared.id].descriptions
    return {
        "id": declared.id,
        "title": declared.title,
        "page": page,
        "fix": declared.fix,
        "question": wordings.question_of(declared.id),
        "texts": [declared.title, declared.sees, declared.fix, *descriptions],
    }


def wording(entry: wordings.Wording) -> dict[str, object]:
    """Returns what matters of a wording; what is absent is as in most of them."""
    values = {
        "mode": entry.mode,
        "says": entry.says,
        "symptom": javascript(phrases.expression(entry.symptom)) if entry.symptom else None,
        "sentence": near.phrase_of(entry),
        "unless": entry.unless,
        "proof": "" if entry.proof == "sure" else entry.proof,
        "proves": classify.proves(entry),
        "alone": entry.alone,
        "frame": entry.frame,
        "kind": entry.kind,
        "fixed": entry.fixed,
        "fix": entry.fix,
        "error": entry.error,
        "named": entry.named,
        "releases": entry.releases and asdict(entry.releases),
    }
    return {name: value for name, value in values.items() if value}


def code(mode: str | None, pattern: wordings.CodePattern) -> dict[str, object]:
    parts = ("has", "within", "beside", "unless")
    written = {name: javascript(getattr(pattern, name)) for name in parts}
    return {"mode": mode, "words": pattern.words, **written}
