"""Where a reader brings an error: the command, the box in the first notebook, and the line below an uncaught exception."""

import codecs
import html
import json
import sys
import traceback
from pathlib import Path

from . import triage
from .refusals import Refused

NONE = "none of the modes"
PASTED = "Paste an error with its traceback, as much of it as you have."
# What starts a text that is not UTF-8: Windows writes such when output is redirected.
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


# The command


def answer(file: str, form: str):
    """Prints what triage says about a file, or about the input if the file is `-`."""
    text = decoded(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
    lines = {"words": in_words, "json": in_json, "jsonl": in_lines}[form](text)
    for line in lines:
        print(line)


def decoded(raw: bytes) -> str:
    encoding = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, errors="replace")


def in_words(text: str) -> list[str]:
    return words_of(triage.triage(text))


def in_json(text: str) -> list[str]:
    return [json.dumps(triage.triage(text).as_dict())]


def in_lines(text: str):
    """One answer for each report, as soon as it is known."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            report = report_of(line, number)
            yield json.dumps({"id": report["id"]} | triage.triage(report["text"]).as_dict())


def report_of(line: str, number: int) -> dict:
    try:
        report = json.loads(line)
        report["id"], report["text"] + ""
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused(f"Line {number} is no JSON object with `id` and a text in `text`.") from None
    return report


def words_of(found: triage.Answer) -> list[str]:
    """The card in plain text."""
    if found.mode is None:
        return [f"{NONE} ({found.confidence:.2f})", *map(nearest, found.candidates[:2])]
    mode = triage.catalog()[found.mode]
    lines = [
        f"{named(found.mode)} ({found.confidence:.2f}): {mode['title']}",
        f"  because {found.candidates[0].because}",
        f"  fix: {mode['fix']}",
        f"  see notebooks/{page(found.mode)}",
    ]
    return lines + [
        f"  or {named(each.mode)} ({each.score:.2f}), {each.because}" for each in close(found)
    ]


def nearest(each: triage.Candidate) -> str:
    """What an error that is none of the modes looks like, or comes near to."""
    what = f"not enough for {named(each.mode)}" if each.mode else "it looks like"
    return f"  {what}{':' if each.mode else ''} {each.because}"


def close(found: triage.Answer) -> list[triage.Candidate]:
    """The runner-up, where it is one."""
    return [each for each in found.candidates[1:2] if each.score >= triage.CLOSE]


def named(mode: str | None) -> str:
    return f"{mode} {triage.catalog()[mode]['slug']}" if mode else NONE


def page(mode: str) -> str:
    return f"{mode}_{triage.catalog()[mode]['slug']}.ipynb"


# The box in a notebook


def card(found: triage.Answer) -> str:
    """The card as HTML; all of it is escaped, for a part of it was pasted."""
    from .panel import STYLE, with_code

    head, *rest = words_of(found)
    link = f"<p><a href='{page(found.mode)}'>Open {page(found.mode)}</a></p>" if found.mode else ""
    body = "".join(f"<p>{with_code(line.strip())}</p>" for line in rest)
    return (
        f"{STYLE}<div class='clinic-card' role='status' aria-live='polite' aria-label='Triage' "
        f"data-clinic-mode='{found.mode or 'none'}'><h4>{html.escape(head)}</h4>{link}{body}</div>"
    )


def box():
    """A field for the error, a button, and the card of what it was recognised as."""
    import ipywidgets

    from .panel import show_widget

    field = ipywidgets.Textarea(description="Error", placeholder=PASTED, tooltip=PASTED, rows=8)
    button = ipywidgets.Button(
        description="Which mode is it?", button_style="primary", tooltip="Triage the pasted error"
    )
    shown = ipywidgets.HTML()
    field.layout.width, button.layout.width = "auto", "max-content"
    for name, widget in {"error": field, "triage": button, "answer": shown}.items():
        widget.add_class(f"clinic-{name}")

    def look(_=None):
        shown.value = card(triage.triage(field.value))

    button.on_click(look)
    show_widget(ipywidgets.VBox([field, button, shown]))
    return field, button, shown


# The line below an exception


def after_cell(result):
    """Names the mode of an exception that nobody caught; whatever goes wrong here, the reader's error stays as it is."""
    error = result.error_in_exec or result.error_before_exec
    if isinstance(error, BaseException):
        try:
            line = line_for(error)
        except Exception:
            return
        if line:
            print(line)


def line_for(error: BaseException) -> str:
    found = triage.triage("".join(traceback.format_exception(error)))
    if found.mode is None:
        return ""
    mode = triage.catalog()[found.mode]
    return f"{named(found.mode)}: {mode['title']}. See notebooks/{page(found.mode)}"
