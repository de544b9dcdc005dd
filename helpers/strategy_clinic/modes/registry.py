"""The failure modes and the documents, read from the declarations in their pages; no page is run."""

import ast
import functools
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import UserError, choose
from .documents import Claim, Document, check_claims
from .failure_mode import FailureMode, Symptom, check_words

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FailureMode, Symptom, Document, Claim)}
CHECKS: dict[str, Any] = {"MODE": check_words, "DOCUMENT": check_claims}
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
    mode: FailureMode | None = declared(source, "MODE")
    return mode


def documents() -> list[Document]:
    """Returns every document, in the order of their ids."""
    read = [read_document(source) for source in files.document_pages()]
    return [document for document in read if document]


def document_by_id(identity: str) -> Document:
    """Returns the document with this id; raises UserError if there is none."""
    known = {document.id: document for document in documents()}
    return known[choose("document", identity, known)]


def read_document(source: Path) -> Document | None:
    """Returns the DOCUMENT that a page declares, or None if it declares none."""
    document: Document | None = declared(source, "DOCUMENT")
    return document


def declared(source: Path, name: str) -> Any:
    return declared_in(declaration(source.read_text()), files.page_name(source), name)


def declaration(page: str) -> str:
    """Returns the text of a page's declaration, in its own lines: all others are blank."""
    before, marker, after = page.partition(DECLARATION)
    return "\n" * f"{before}{marker}".count("\n") + after.split("\n# %%")[0] if marker else ""


@functools.cache
def declared_in(text: str, page: str, name: str) -> Any:
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
            found = value_of(statement.value, page)
            CHECKS[name](found)
            return found
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
            f"{name}, line {node.lineno}: a declaration takes literals only, so that it can be read unrun."
        ) from None
