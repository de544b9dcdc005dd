"""The catalog of modes, read from their declarations without running anything, and the table made from it."""

import ast
import functools
import json
from dataclasses import asdict
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..modes.failure_mode import DOCUMENTS, Claim, FailureMode, Symptom, check_words

KINDS = {kind.__name__: kind for kind in (FailureMode, Symptom, Claim)}
FIRST_LINE, LAST_LINE = "<!-- modes: written by clinic render -->", "<!-- end of modes -->"


def read_mode(source: Path) -> FailureMode | None:
    """The MODE that a notebook's source declares; None where it declares none."""
    return declared_in(source.read_text(), files.page_name(source))


@functools.cache
def declared_in(text: str, name: str) -> FailureMode | None:
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "MODE":
            mode = value_of(statement.value, name)
            check_words(mode)
            return mode
    return None


def value_of(node, name: str):
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS:
        given = {word.arg: value_of(word.value, name) for word in node.keywords}
        return KINDS[node.func.id](*[value_of(each, name) for each in node.args], **given)
    if isinstance(node, ast.Tuple):
        return tuple(value_of(each, name) for each in node.elts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise UserError(
            f"{name}, line {node.lineno}: MODE takes literals only, so that it can be read unrun."
        ) from None


def modes() -> list[FailureMode]:
    found = [read_mode(source) for source in files.page_sources()]
    return [mode for mode in found if mode]


def ids() -> list[str]:
    return [mode.id for mode in modes()]


def catalog_text() -> str:
    return (
        json.dumps({mode.id: asdict(mode) for mode in modes()}, indent=1, ensure_ascii=False) + "\n"
    )


def markdown(link: str) -> str:
    """The table of modes; `link` is the path from the reader's place to the notebooks."""
    lines = [
        "| mode | what you see | how it fails | switches that matter | document tested |",
        "|---|---|---|---|---|",
    ]
    for mode in modes():
        name = f"[{mode.id} {mode.slug}]({link}{Path(mode.notebook).name})"
        switches = ", ".join(mode.switches).replace("_", " ")
        lines.append(
            f"| {name} | {mode.sees} | {mode.loud} | {switches} | {DOCUMENTS[mode.document]} |"
        )
    return "\n".join(lines)


def readme_file() -> Path:
    return files.ROOT / "README.md"


def readme_text() -> str:
    text = readme_file().read_text()
    before, after = text.split(FIRST_LINE)[0], text.split(LAST_LINE)[1]
    return f"{before}{FIRST_LINE}\n\n{markdown('notebooks/')}\n\n{LAST_LINE}{after}"


def write_catalog():
    for path, text in written_from_modes().items():
        path.write_text(text)


def written_from_modes() -> dict[Path, str]:
    return {files.catalog_file(): catalog_text(), readme_file(): readme_text()}


def drift() -> list[str]:
    wanted = written_from_modes()
    stale = [
        path.name for path, text in wanted.items() if not path.exists() or path.read_text() != text
    ]
    return [f"{name} is not what the notebooks declare; run: clinic render" for name in stale]
