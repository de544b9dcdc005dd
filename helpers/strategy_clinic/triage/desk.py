"""Where a reader brings an error: the command, the box in the first notebook, and the line below an uncaught exception."""

import codecs
import json
import sys
from pathlib import Path

from ..base.errors import UserError
from ..base.templates import from_template
from . import classify, exception_text, wordings

NONE = "none of the modes"
NO_WORDING = "no wording that I know"
TOO_LITTLE = "a wording that I know, and little else that speaks for it"
ASKED = 0.05  # a mode is asked about from this probability on
PASTED = "Paste an error with its traceback, as much of it as you have, or say what goes wrong."
# What starts a text that is not UTF-8: Windows writes such when output is redirected.
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}

# The command


def answer_file(file: str, form: str):
    """Prints what triage says about a file, or about the input if the file is `-`."""
    text = decoded(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
    lines = {"words": card_lines, "json": in_json, "jsonl": json_lines}[form](text)
    for line in lines:
        print(line)


def decoded(raw: bytes) -> str:
    encoding = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, errors="replace")


def card_lines(text: str) -> list[str]:
    return words_of(classify.triage(text))


def in_json(text: str) -> list[str]:
    return [json.dumps(classify.triage(text).as_dict())]


def json_lines(text: str):
    """One answer for each report, as soon as it is known."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            report = report_of(line, number)
            yield json.dumps({"id": report["id"]} | classify.triage(report["text"]).as_dict())


def report_of(line: str, number: int) -> dict:
    try:
        report = json.loads(line)
        report["id"], report["text"] + ""
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"Line {number} is no JSON object with `id` and a text in `text`."
        ) from None
    return report


def words_of(found: classify.Answer) -> list[str]:
    """The card in plain text."""
    if found.mode is None and (not found.known or found.candidates[0].mode):
        why = TOO_LITTLE if found.known else NO_WORDING
        return [f"{why}; {NONE} ({found.confidence:.2f})", *questions(found)]
    if found.mode is None:
        return [f"{NONE} ({found.confidence:.2f})", *map(nearest, found.candidates[:2])]
    mode = wordings.declared_modes()[found.mode]
    lines = [
        f"{full_name(found.mode)} ({found.confidence:.2f}): {mode['title']}",
        f"  because {found.candidates[0].because}",
        f"  fix: {mode['fix']}",
        f"  see notebooks/{notebook_name(found.mode)}",
    ]
    return lines + [
        f"  or {full_name(each.mode)} ({each.score:.2f}), {each.because}" for each in close(found)
    ]


def questions(found: classify.Answer):
    """What would tell the likeliest modes from one another, for a reader to answer."""
    for each in found.candidates:
        if each.mode and each.score >= ASKED:
            yield f"  {wordings.what_to_ask(each.mode)} Then {full_name(each.mode)} ({each.score:.2f}): {each.because}"


def nearest(each: classify.Candidate) -> str:
    """What an error that is none of the modes looks like, or comes near to."""
    what = f"not enough for {full_name(each.mode)}" if each.mode else "it looks like"
    return f"  {what}{':' if each.mode else ''} {each.because}"


def close(found: classify.Answer) -> list[classify.Candidate]:
    """The runner-up, where it is one."""
    return [each for each in found.candidates[1:2] if each.score >= classify.CLOSE]


def full_name(mode: str | None) -> str:
    return f"{mode} {wordings.declared_modes()[mode]['slug']}" if mode else NONE


def notebook_name(mode: str) -> str:
    return f"{mode}_{wordings.declared_modes()[mode]['slug']}.ipynb"


# The box in a notebook


def card(found: classify.Answer) -> str:
    """The card as HTML; all of it is escaped, for a part of it was pasted."""
    head, *rest = words_of(found)
    return from_template(
        "triage/templates/card.html",
        mode=found.mode or "none",
        head=head,
        notebook=notebook_name(found.mode) if found.mode else "",
        lines=[line.strip() for line in rest],
    )


def box():
    """A field for the error, a button, and the card of what it was recognised as."""
    import ipywidgets

    from ..panel.cards import show_widget

    field = ipywidgets.Textarea(description="Error", placeholder=PASTED, tooltip=PASTED, rows=8)
    button = ipywidgets.Button(
        description="Which mode is it?", button_style="primary", tooltip="Triage the pasted error"
    )
    shown = ipywidgets.HTML()
    field.layout.width, button.layout.width = "auto", "max-content"
    for name, widget in {"error": field, "triage": button, "answer": shown}.items():
        widget.add_class(f"clinic-{name}")

    def look(_=None):
        shown.value = card(classify.triage(field.value))

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
    found = classify.triage(exception_text.text_of(error))
    if found.mode is None:
        return ""
    mode = wordings.declared_modes()[found.mode]
    return f"{full_name(found.mode)}: {mode['title']}. See notebooks/{notebook_name(found.mode)}"


def name_errors(shell):
    """From now on an uncaught exception ends with a line that names its mode and notebook."""
    shell.events.register("post_run_cell", after_cell)


def leave_errors(shell):
    shell.events.unregister("post_run_cell", after_cell)
