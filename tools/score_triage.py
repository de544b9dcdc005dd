"""How often triage is right about labelled errors: python tools/score_triage.py FILE.jsonl [--all]

One object per line with `text`, `label` (an id such as FM08, or none), and, where known, `alt_label` or `also` (what is as
right), `kind` (message, traceback or description) and `source`. A report is judged by what is known from anywhere else: wordings
seen only in reports of its own repository are left out, unless --all is given.

A mode is `named` by a wording, or `first` or `among three` of the candidates, which are questions where no wording is known.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from strategy_clinic.triage import answer_text, classify, wordings
from strategy_clinic.triage.report_text import RAISED, ReportText, first_frame
from strategy_clinic.triage.wordings import Wording

# Labels of reports that were none of the modes when they were labelled, and are one now.
NEW = {
    "NEW01": "fm31",
    "NEW05": "fm34",
    "NEW14": "fm33",
    "NEW18": "fm32",
    "NEW03": "fm11",
    "NEW13": "fm37",
    "NEW12": "fm45",
}
KINDS = ("message", "traceback", "description")
STEPS = 5  # parts of the scale on which confidence is compared with what was right

Report = dict[str, Any]


def modes_of(report: Report) -> set[str | None]:
    """Returns the right answers."""
    also = {mode_of(label) for label in report.get("also", ())}
    if report["label"] != "none":
        return {mode_of(report["label"]), *also}
    return {None, NEW.get(report.get("alt_label", "")), *also}


def mode_of(label: str) -> str | None:
    return None if label == "none" else label.lower()


def kind_of(report: Report) -> str:
    """Returns what was pasted: an error with its frames, an error, or neither."""
    lines = ReportText(report["text"]).lines
    if first_frame(lines) or "--->" in lines:
        return "traceback"
    return "message" if RAISED.search(lines) or "WARNING" in lines else "description"


def known_without(source: str) -> tuple[Wording, ...]:
    """Returns all wordings but those that only reports of one repository have."""
    repository = source.split("#")[0]
    return tuple(
        entry
        for entry in wordings.wordings()
        if entry.origin != "seen" or set(entry.seen) - {repository}
    )


def judge(report: Report) -> dict[str, Any]:
    answer = classify.triage(report["text"], known_without(report.get("source", "")))
    wanted = modes_of(report)
    modes = [candidate.mode for candidate in answer.candidates]
    is_right = answer.mode in wanted
    return {
        "report": report,
        "answer": answer,
        "mode": report["label"].lower(),
        "kind": report.get("kind") or kind_of(report),
        "right": is_right,
        "first": bool(wanted & {*modes[:1]} - {None}),
        "three": is_right or bool(wanted & {*modes}),
        "claims": report["label"] == "none" and not is_right,
        "asks": answer.mode is None and any(answer_text.questions(answer)),
    }


def share(judged: list[dict[str, Any]], name: str) -> str:
    return f"{sum(each[name] for each in judged)} of {len(judged)}"


def summary(judged: list[dict[str, Any]]) -> str:
    modes = [each for each in judged if each["mode"] != "none"]
    nones = [each for each in judged if each["mode"] == "none"]
    return (
        f"right mode named: {share(modes, 'right')}; first: {share(modes, 'first')}; among three: {share(modes, 'three')}; "
        f"none of the modes, and one is named: {share(nones, 'claims')}, asked about: {share(nones, 'asks')}"
    )


def calibration(judged: list[dict[str, Any]]) -> Iterator[str]:
    """Yields for each part of the scale how sure the answers were and how many were right, and how far apart both are."""
    apart = 0.0
    for step in range(STEPS):
        part = [each for each in judged if place(each["answer"].confidence) == step]
        if part:
            sure = sum(each["answer"].confidence for each in part) / len(part)
            right = sum(each["right"] for each in part) / len(part)
            apart += len(part) * abs(sure - right) / len(judged)
            yield f"confidence {sure:.2f}: right {right:.2f}, of {len(part)}"
    yield f"calibration error: {apart:.3f}"


def place(confidence: float) -> int:
    return min(int(confidence * STEPS), STEPS - 1)


def main(path: str, *options: str) -> None:
    reports = [json.loads(line) for line in Path(path).read_text().splitlines() if line]
    if "--all" in options:
        reports = [report | {"source": ""} for report in reports]
    judged = [judge(report) for report in reports]
    for each in judged:
        if not each["right"]:
            report, answer = each["report"], each["answer"]
            print(report.get("id"), report["label"], "->", answer.mode, answer.confidence)
    for name in sorted({each["mode"] for each in judged} - {"none"}):
        mine = [each for each in judged if each["mode"] == name]
        print(f"{name}: named {share(mine, 'right')}, among three {share(mine, 'three')}")
    for kind in KINDS:
        print(f"{kind}: {summary([each for each in judged if each['kind'] == kind])}")
    print("\n".join(calibration(judged)))
    print(summary(judged))


if __name__ == "__main__":
    main(*sys.argv[1:])
