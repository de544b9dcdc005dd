"""How often triage is right about labelled errors: python tests/score_triage.py FILE.jsonl [--all]

One object per line with `text`, `label` (an id such as FM08, or none), and, where known, `alt_label` or `also` (what is as
right), `kind` (message, traceback or description) and `source`. A report is judged by what is known from anywhere else: wordings
seen only in reports of its own repository are left out, unless --all is given.
"""

import functools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from strategy_clinic.triage import classify, phrases, wordings
from strategy_clinic.triage.wording_index import Knowledge

# Labels of reports that were none of the modes when they were labelled, and are one now.
NEW = {
    "NEW01": "fm31",
    "NEW05": "fm34",
    "NEW14": "fm33",
    "NEW18": "fm32",
    "NEW03": "fm11",
    "NEW13": "fm37",
}
KINDS = ("message", "traceback", "description")
STEPS = 5  # parts of the scale on which confidence is compared with what was right


def wanted(report: dict) -> set:
    also = {mode_of(each) for each in report.get("also", ())}
    if report["label"] != "none":
        return {report["label"].lower(), *also}
    return {None, NEW.get(report.get("alt_label")), *also}


def mode_of(label: str):
    return None if label == "none" else label.lower()


def kind_of(report: dict) -> str:
    """What was pasted: an error with its frames, an error, or neither."""
    text = phrases.clean(report["text"])
    if phrases.FRAME.search(text) or "--->" in text:
        return "traceback"
    return "message" if phrases.RAISED.search(text) or "WARNING" in text else "description"


def known_without(source: str) -> Knowledge:
    """Everything, less what only reports of the same repository have taught; nobody's repository takes nothing away."""
    repository = source.split("#")[0]
    taught = (
        each.origin == "seen" and not set(each.seen) - {repository} for each in wordings.wordings()
    )
    return without(frozenset(number for number, only in enumerate(taught) if only))


@functools.cache
def without(left_out: frozenset) -> Knowledge:
    entries = enumerate(wordings.wordings())
    return Knowledge(tuple(each for number, each in entries if number not in left_out))


def judge(report: dict) -> dict:
    found = classify.triage(report["text"], known_without(report.get("source", "")))
    first = [each.mode for each in found.candidates][:3]
    right = found.mode in wanted(report)
    return {
        "report": report,
        "answer": found,
        "mode": report["label"].lower(),
        "kind": report.get("kind") or kind_of(report),
        "first": right,
        "three": right or bool(wanted(report) & set(first)),
        "claims": report["label"] == "none" and not right,
    }


def share(found: list[dict], name: str) -> str:
    return f"{sum(each[name] for each in found)} of {len(found)}"


def summary(judged: list[dict]) -> str:
    modes = [each for each in judged if each["mode"] != "none"]
    nones = [each for each in judged if each["mode"] == "none"]
    return (
        f"right mode first: {share(modes, 'first')}; among three: {share(modes, 'three')}; "
        f"none of the modes, and one is claimed: {share(nones, 'claims')}"
    )


def calibration(judged: list[dict]):
    """For each part of the scale how sure the answers were and how many were right, and how far apart both are on the mean."""
    apart = 0
    for step in range(STEPS):
        part = [each for each in judged if place(each["answer"].confidence) == step]
        if part:
            sure = sum(each["answer"].confidence for each in part) / len(part)
            right = sum(each["first"] for each in part) / len(part)
            apart += len(part) * abs(sure - right) / len(judged)
            yield f"confidence {sure:.2f}: right {right:.2f}, of {len(part)}"
    yield f"calibration error: {apart:.3f}"


def place(confidence: float) -> int:
    return min(int(confidence * STEPS), STEPS - 1)


def table(judged: list[dict]):
    """How many are right, by kind, and how far confidence can be believed."""
    for kind in KINDS:
        yield f"{kind}: {summary([each for each in judged if each['kind'] == kind])}"
    yield from calibration(judged)
    yield summary(judged)


def read(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line]


def main(path: str, *options: str):
    reports = read(path)
    if "--all" in options:
        reports = [report | {"source": ""} for report in reports]
    judged = [judge(report) for report in reports]
    for each in judged:
        if not each["first"]:
            report, found = each["report"], each["answer"]
            print(report.get("id"), report["label"], "->", found.mode, found.confidence)
    for name in sorted({each["mode"] for each in judged} - {"none"}):
        mine = [each for each in judged if each["mode"] == name]
        print(f"{name}: first {share(mine, 'first')}, among three {share(mine, 'three')}")
    print("\n".join(table(judged)))


if __name__ == "__main__":
    main(*sys.argv[1:])
