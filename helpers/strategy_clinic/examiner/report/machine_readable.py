"""An examination for other programs: as JSON, and as SARIF for code scanning."""

from pathlib import Path
from typing import Any

from ...base import project
from ..cells import line_in_file
from ..findings import Examination, Finding, Location
from .explanation import explanation_of
from .text import code_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

Json = dict[str, Any]


def as_json(examination: Examination) -> Json:
    return {
        "program": examination.program,
        "runs": [
            {
                "devices": recording.devices,
                "keras": recording.keras,
                "ended": recording.outcome.value,
                "seconds": round(recording.seconds, 1),
            }
            for recording in examination.recordings
        ],
        "findings": [finding_as_json(finding) for finding in examination.findings],
    }


def finding_as_json(finding: Finding) -> Json:
    """Returns the fields that the documentation names; of a line in a notebook, its cell, too."""
    location, explanation = finding.location, explanation_of(finding.mode)
    return {
        "mode": finding.mode,
        "file": location.file,
        **({"cell": location.cell} if location.cell else {}),
        "line": location.line,
        "code": code_of(location),
        "says": str(finding.message),
        "proof": str(finding.proof),
        "devices": list(finding.devices),
        "fix": explanation.fix,
        "notebook": explanation.path,
    }


# SARIF


def as_sarif(examination: Examination, folder: Path) -> Json:
    """Returns one rule for each mode, and one result for each finding. Paths are relative to the folder."""
    modes = sorted({finding.mode for finding in examination.findings})
    driver = {
        "name": "strategy-clinic",
        "version": project.project()["version"],
        "informationUri": address(),
        "rules": [sarif_rule(mode) for mode in modes],
    }
    results = [
        {
            "ruleId": finding.mode,
            "ruleIndex": modes.index(finding.mode),
            "level": "error",
            "message": {"text": f"{finding.message} ({finding.proof})"},
            "locations": sarif_locations(finding.location, folder),
        }
        for finding in examination.findings
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def address() -> str:
    return f"https://github.com/{project.setting()['repository']}"


def published() -> str:
    """Returns where the notebooks of this version can be read."""
    return f"{address()}/blob/{project.setting()['tag']}/notebooks/"


def sarif_rule(mode: str) -> Json:
    explanation = explanation_of(mode)
    page = {"helpUri": f"{published()}{explanation.notebook}"} if explanation.notebook else {}
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
    inside = path.is_relative_to(folder)
    uri = path.relative_to(folder).as_posix() if inside else path.as_uri()
    region = {"region": {"startLine": line}} if line else {}
    return [{"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}]
