"""What an examination came to, as a person reads it, as JSON, and as SARIF for code scanning."""

import os
from pathlib import Path

from ..base import project
from ..triage import desk, known
from . import places
from .facts import Examination, Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def mode_facts(mode: str) -> dict:
    return known.declared_modes().get(mode, {})


def finding_as_dict(found: Finding) -> dict:
    return {
        "mode": found.mode,
        "file": found.file,
        "line": found.line,
        "code": places.code_at(found.file, found.line),
        "says": found.says,
        "proof": found.proof,
        "devices": list(found.devices),
        "fix": mode_facts(found.mode).get("fix", ""),
        "notebook": f"notebooks/{desk.notebook_name(found.mode)}",
    }


def as_plain_object(found: Examination) -> dict:
    return {
        "program": found.program,
        "runs": [run.as_dict() for run in found.runs],
        "findings": [finding_as_dict(each) for each in found.findings],
    }


def exit_status(found: Examination) -> int:
    """0 nothing found, 1 findings, 3 a failure that is none of the modes; 130 if it was stopped before any of these."""
    return 1 if found.findings else 3 if found.failure else 130 if found.stopped else 0


# Words


def in_words(found: Examination) -> str:
    parts = [finding_in_words(each) for each in found.findings]
    if found.failure:
        parts.append(f"the program failed in a way that is none of the modes: {found.failure}")
    if not parts:
        parts.append(f"nothing found in {ran(found)}")
    return "\n\n".join(parts + [f"note: {each}" for each in found.notes])


def ran(found: Examination) -> str:
    counts = ", ".join(str(run.devices) for run in found.runs)
    return f"{len(found.runs)} run{'s' if len(found.runs) != 1 else ''} (devices: {counts})"


def finding_in_words(found: Finding) -> str:
    told = finding_as_dict(found)
    place = f"{shown_path(found.file)}:{found.line}" if found.file else "(no line of the program)"
    lines = [
        f"{place}  {found.mode}  {found.says}",
        f"    {told['code']}" if told["code"] else "",
        f"    proof     {found.proof}",
        f"    fix       {told['fix']}",
        f"    notebook  {told['notebook']}",
    ]
    return "\n".join(filter(None, lines))


def shown_path(path: str) -> str:
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path


# SARIF


def as_sarif(found: Examination, folder: Path) -> dict:
    """One rule for each mode that was found, one result for each finding."""
    modes = sorted({each.mode for each in found.findings})
    driver = {
        "name": "strategy-clinic",
        "version": project.project()["version"],
        "informationUri": address(),
        "rules": [sarif_rule(mode) for mode in modes],
    }
    results = [sarif_result(each, modes, folder) for each in found.findings]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def address() -> str:
    return f"https://github.com/{project.setting()['repository']}"


def sarif_rule(mode: str) -> dict:
    facts = mode_facts(mode)
    return {
        "id": mode,
        "name": facts.get("slug", mode),
        "shortDescription": {"text": facts.get("title", mode)},
        "help": {"text": facts.get("fix", "")},
        "helpUri": f"{address()}/blob/{project.setting()['tag']}/notebooks/{desk.notebook_name(mode)}",
    }


def sarif_result(found: Finding, modes: list[str], folder: Path) -> dict:
    place = found.file and {
        "artifactLocation": {"uri": relative(found.file, folder)},
        "region": {"startLine": found.line},
    }
    return {
        "ruleId": found.mode,
        "ruleIndex": modes.index(found.mode),
        "level": "error",
        "message": {"text": f"{found.says} ({found.proof})"},
        "locations": [{"physicalLocation": place}] if place else [],
    }


def relative(path: str, folder: Path) -> str:
    place = Path(path)
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else place.as_uri()
