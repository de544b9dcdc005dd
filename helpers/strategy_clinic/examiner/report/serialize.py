"""What an examination came to, as a person reads it, as JSON, and as SARIF for code scanning."""

import os
from pathlib import Path

from ...base import project
from ...triage import answer_text, wordings
from ..cells import line_in_file, place_in_file
from ..recording import Examination, Finding
from ..rules import blame

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def mode_facts(mode: str) -> dict:
    declared = wordings.declared_modes()
    return vars(declared[mode]) if mode in declared else {}


def finding_as_dict(found: Finding) -> dict:
    """Of a notebook's line there is the cell, too."""
    cell = {"cell": found.cell} if found.cell else {}
    return {
        "mode": found.mode,
        "file": found.file,
        **cell,
        "line": found.line,
        "code": found.code or blame.code_at(found.file, found.line),
        "says": found.says,
        "proof": found.proof,
        "devices": list(found.devices),
        "fix": mode_facts(found.mode).get("fix", ""),
        "notebook": f"notebooks/{answer_text.notebook_name(found.mode)}",
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
    return "\n\n".join([*map(finding_in_words, found.findings), *rest_in_words(found)])


def printable(text: str) -> str:
    """Without signs that steer a terminal: what an exception says is the program's own text."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def rest_in_words(found: Examination) -> list[str]:
    """What is said beside the findings: a failure that is none of the modes, that nothing was found, and notes."""
    parts = []
    if found.failure:
        parts.append(f"the program failed in a way that is none of the modes: {found.failure}")
    elif not found.findings:
        parts.append(f"nothing found in {ran(found)}")
    return [printable(each) for each in (*parts, *(f"note: {each}" for each in found.notes))]


def ran(found: Examination) -> str:
    counts = ", ".join(str(run.devices) for run in found.runs)
    return f"{len(found.runs)} run{'s' if len(found.runs) != 1 else ''} (devices: {counts})"


def finding_in_words(found: Finding) -> str:
    told = finding_as_dict(found)
    lines = [
        f"{place_of(found)}  {found.mode}  {found.says}",
        f"    {told['code']}" if told["code"] else "",
        f"    proof     {found.proof}",
        f"    fix       {told['fix']}",
        f"    notebook  {told['notebook']}",
    ]
    return "\n".join(printable(line) for line in lines if line)


def place_of(found: Finding) -> str:
    if not found.file:
        return "(no line of the program)"
    path = shown_path(found.file)
    return place_in_file(path, found.cell, found.line) if found.cell else f"{path}:{found.line}"


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


def published() -> str:
    """Where the notebooks of this version can be read."""
    return f"{address()}/blob/{project.setting()['tag']}/notebooks/"


def sarif_rule(mode: str) -> dict:
    facts = mode_facts(mode)
    return {
        "id": mode,
        "name": facts.get("slug", mode),
        "shortDescription": {"text": facts.get("title", mode)},
        "help": {"text": facts.get("fix", "")},
        "helpUri": f"{published()}{answer_text.notebook_name(mode)}",
    }


def sarif_result(found: Finding, modes: list[str], folder: Path) -> dict:
    place = found.file and {
        "artifactLocation": {"uri": relative(found.file, folder)},
        **region(found),
    }
    return {
        "ruleId": found.mode,
        "ruleIndex": modes.index(found.mode),
        "level": "error",
        "message": {"text": f"{found.says} ({found.proof})"},
        "locations": [{"physicalLocation": place}] if place else [],
    }


def region(found: Finding) -> dict:
    """A notebook's line is counted in its file, since that is what other programs open."""
    path = Path(found.file)
    line = line_in_file(path, found.cell, found.line) if found.cell else found.line
    return {"region": {"startLine": line}} if line else {}


def relative(path: str, folder: Path) -> str:
    place = Path(path)
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else place.as_uri()
