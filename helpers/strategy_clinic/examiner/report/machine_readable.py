"""An examination for other programs: as JSON, and as SARIF for code scanning."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...base import project
from ..cells import line_in_file
from ..edits import Edit, Repair
from ..findings import Examination, Finding, Location
from .explanation import explanation_of
from .text import code_of, exit_status, fix_of, run_in_words, whole_diff

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

Json = dict[str, Any]


def as_json(examination: Examination) -> Json:
    return {
        "program": examination.program,
        "runs": [
            {
                "devices": run.devices,
                "keras": run.keras,
                "ended": run.outcome.value,
                "seconds": round(run.seconds, 1),
                "role": run.role.value,
                "says": run_in_words(run),
                "discarded": run.discarded,
            }
            for run in examination.runs
        ],
        "findings": [
            finding_as_json(finding) | repair_as_json(examination, finding)
            for finding in examination.findings
        ],
        "unseen": examination.unseen,
        "notes": examination.notes,
        "counts": [each.values for each in examination.counts],
        "failure": failure_as_json(examination),
        "stopped": examination.stopped,
    }


def failure_as_json(examination: Examination) -> Json | None:
    """Returns how a program failed in a way that is none of the modes, and where; None if it did not."""
    if not examination.failure:
        return None
    return {"says": examination.failure, **location_as_json(examination.failed_at)}


def location_as_json(location: Location) -> Json:
    """Returns file, line and code; of a line in a notebook, its cell, too."""
    return {
        "file": location.file,
        **({"cell": location.cell} if location.cell else {}),
        "line": location.line,
        "code": code_of(location),
    }


def finding_as_json(finding: Finding) -> Json:
    """Returns the fields that the documentation names."""
    return {
        "mode": finding.mode,
        **location_as_json(finding.location),
        "says": str(finding.message),
        "proof": str(finding.proof),
        "devices": list(finding.devices),
        "fix": fix_of(finding),
        "notebook": explanation_of(finding.mode).path,
    }


def repairs_of(examination: Examination, finding: Finding) -> list[Repair]:
    key = finding.mode, finding.file, finding.location.cell, finding.line
    repairs = examination.repairs
    return [each for each in repairs if (each.mode, each.file, each.cell, each.line) == key]


def repair_as_json(examination: Examination, finding: Finding) -> Json:
    """Returns the proven repair of a finding as a unified diff, and as edits by line and column; nothing if there is none."""
    fields = [
        {
            "file": repair.path,
            "diff": whole_diff(repair),
            "edits": [
                {**region(edit), "text": repair.as_in_file(edit.text)} for edit in repair.edits
            ],
        }
        for repair in repairs_of(examination, finding)
    ]
    return {"repair": fields[0]} if fields else {}


def region(edit: Edit) -> Json:
    """Returns a part of a file, whose end is behind its last character, as SARIF has it."""
    (line, column), (end_line, end_column) = edit.start, edit.end
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


# SARIF


def as_sarif(examination: Examination, folder: Path) -> Json:
    """Returns one rule for each mode, one result for each finding, and a notification for each note and for a failure.

    Paths are relative to the folder.
    """
    modes = sorted({finding.mode for finding in examination.findings})
    driver = {
        "name": "strategy-clinic",
        "version": project.project()["version"],
        "rules": [sarif_rule(mode) for mode in modes],
        **({"informationUri": project.address()} if project.address() else {}),
    }
    results = [
        {
            "ruleId": finding.mode,
            "ruleIndex": modes.index(finding.mode),
            # What the framework does wrong is no error of the program.
            "level": "warning" if finding.by_framework else "error",
            "message": {"text": f"{finding.message} ({finding.proof})"},
            "locations": sarif_locations(finding.location, folder),
            **sarif_fixes(repairs_of(examination, finding), folder),
        }
        for finding in examination.findings
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "results": results,
                "invocations": [sarif_invocation(examination, folder)],
                "properties": {"counts": [each.values for each in examination.counts]},
            }
        ],
    }


def sarif_invocation(examination: Examination, folder: Path) -> Json:
    """Returns what is said beside the findings: how the program failed, and what could not be seen or compared."""
    notifications: list[Json] = [
        *({"level": "warning", "message": {"text": each}} for each in examination.unseen),
        *({"level": "note", "message": {"text": note}} for note in examination.notes),
    ]
    if examination.failure:
        failure = {
            "level": "error",
            "message": {"text": examination.failure},
            "locations": sarif_locations(examination.failed_at, folder),
        }
        notifications.insert(0, failure)
    return {
        "exitCode": exit_status(examination),
        "executionSuccessful": not examination.failure and not examination.stopped,
        "toolExecutionNotifications": notifications,
    }


def sarif_rule(mode: str) -> Json:
    explanation, notebooks = explanation_of(mode), project.published_notebooks()
    linked = notebooks and explanation.notebook
    page = {"helpUri": f"{notebooks}{explanation.notebook}"} if linked else {}
    return {
        "id": mode,
        "name": explanation.slug,
        "shortDescription": {"text": explanation.title},
        "help": {"text": explanation.fix},
        **page,
    }


def sarif_locations(location: Location, folder: Path) -> list[Json]:
    """Returns the location, if there is one. A notebook's line is counted in its file, which other programs open."""
    if not location:
        return []
    path, line = Path(location.file), location.line
    if location.cell:
        line = line_in_file(path, location.cell, line)
    region = {"region": {"startLine": line}} if line else {}
    return [{"physicalLocation": {**artifact(path, folder), **region}}]


def artifact(path: Path, folder: Path) -> Json:
    inside = path.is_relative_to(folder)
    uri = quote(path.relative_to(folder).as_posix()) if inside else path.as_uri()
    return {"artifactLocation": {"uri": uri}}


def sarif_fixes(repairs: list[Repair], folder: Path) -> Json:
    """Returns the property `fixes` of a result, which a result without a repair in a file of Python has not."""
    fixes = [
        {
            "description": {
                "text": f"removes {repair.mode}, as the same runs of a copy have shown"
            },
            "artifactChanges": [
                {
                    **artifact(Path(repair.path), folder),
                    "replacements": [
                        {
                            "deletedRegion": region(edit),
                            "insertedContent": {"text": repair.as_in_file(edit.text)},
                        }
                        for edit in repair.edits
                    ],
                }
            ],
        }
        for repair in repairs
        if not repair.cell
    ]
    return {"fixes": fixes} if fixes else {}
