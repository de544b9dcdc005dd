"""How often triage is right about labelled errors: python tests/score_triage.py FILE.jsonl [--all]

One object per line with `text`, `label` (an id such as FM08, or none), and, where known, `alt_label` and `source`. A report
is judged by what is known from anywhere else: wordings seen only in reports of its own repository are left out, unless
--all is given.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from helpers.triage import answer, known

sys.path.insert(0, str(Path(__file__).parents[1]))


# Labels of reports that were none of the modes when they were labelled, and are one now.
NEW = {
    "NEW01": "fm31",
    "NEW05": "fm34",
    "NEW14": "fm33",
    "NEW18": "fm32",
    "NEW03": "fm11",
    "NEW13": "fm37",
}


def wanted(report: dict) -> set:
    if report["label"] != "none":
        return {report["label"].lower()}
    return {None, NEW.get(report.get("alt_label"))}


def known_without(source: str) -> list:
    """Everything, less what only reports of the same repository have taught; nobody's repository takes nothing away."""
    repository = source.split("#")[0]
    return [
        each for each in known.wordings() if each.origin != "seen" or set(each.seen) - {repository}
    ]


def judge(report: dict) -> dict:
    found = answer.triage(report["text"], known_without(report.get("source", "")))
    first = [each.mode for each in found.candidates][:3]
    right = found.mode in wanted(report)
    return {
        "report": report,
        "answer": found,
        "mode": report["label"].lower(),
        "first": right,
        "three": right or bool(wanted(report) & set(first)),
        "claims": report["label"] == "none" and not right,
    }


def share(found: list[dict], name: str) -> str:
    return f"{sum(each[name] for each in found)} of {len(found)}"


def main(path: str, *options: str):
    reports = [json.loads(line) for line in Path(path).read_text().splitlines() if line]
    if "--all" in options:
        reports = [report | {"source": ""} for report in reports]
    judged = [judge(report) for report in reports]
    modes = [each for each in judged if each["mode"] != "none"]
    nones = [each for each in judged if each["mode"] == "none"]
    for each in judged:
        if not each["first"]:
            report, answer = each["report"], each["answer"]
            print(report.get("id"), report["label"], "->", answer.mode, answer.confidence)
    for name in sorted(Counter(each["mode"] for each in modes)):
        mine = [each for each in modes if each["mode"] == name]
        print(f"{name}: first {share(mine, 'first')}, among three {share(mine, 'three')}")
    print(f"right mode first: {share(modes, 'first')}; among three: {share(modes, 'three')}")
    print(f"none of the modes, and one is claimed: {share(nones, 'claims')}")


if __name__ == "__main__":
    main(*sys.argv[1:])
