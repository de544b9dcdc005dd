"""The failure modes, read from the declarations in their pages; no page is run."""

import ast
import functools
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import UserError, choose
from .failure_mode import Claim, FailureMode, Symptom, check_words

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FailureMode, Symptom, Claim)}
DECLARATION = '# %% tags=["declaration"]\n'


def modes() -> list[FailureMode]:
    """Returns every mode, in the order of their ids."""
    declared = [read_mode(source) for source in files.page_sources()]
    return [mode for mode in declared if mode]


def mode_by_id(identity: str) -> FailureMode:
    """Returns the mode with this id; raises UserError if there is none."""
    pages = files.mode_pages()
    mode = read_mode(pages[choose("failure mode", identity, pages)])
    if not mode:
        raise UserError(f"The page of {identity} declares no MODE.")
    return mode


def read_mode(source: Path) -> FailureMode | None:
    """Returns the MODE that a page declares, or None if it declares none."""
    return declared_in(declaration(source.read_text()), files.page_name(source))


def declaration(page: str) -> str:
    """Returns the text of a page's declaration, in its own lines: all others are blank."""
    before, marker, after = page.partition(DECLARATION)
    return "\n" * f"{before}{marker}".count("\n") + after.split("\n# %%")[0] if marker else ""


@functools.cache
def declared_in(text: str, name: str) -> FailureMode | None:
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "MODE":
            mode: FailureMode = value_of(statement.value, name)
            check_words(mode)
            return mode
    return None


def value_of(node: ast.expr, name: str) -> Any:
    """Returns the value of an expression made of literals and the classes of a declaration."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS:
        kind = KINDS[node.func.id]  # type: ignore[attr-defined]  # it has one: see above
        named = {str(word.arg): value_of(word.value, name) for word in node.keywords}
        return kind(*[value_of(argument, name) for argument in node.args], **named)
    if isinstance(node, ast.Tuple):
        return tuple(value_of(element, name) for element in node.elts)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise UserError(
            f"{name}, line {node.lineno}: MODE takes literals only, so that it can be read unrun."
        ) from None
