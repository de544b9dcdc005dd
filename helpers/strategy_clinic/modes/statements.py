"""The statements of the five documents, each with the claims that decide it, or a reason why it is not judged."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base import files
from ..base.errors import UserError
from . import registry
from .documents import DOCUMENTS, TRUTHS, Claim

VERDICTS = (*TRUTHS, "not judged")


@dataclass(frozen=True)
class Statement:
    """A statement of a document in short words, with either claims or a reason."""

    id: str
    says: str
    claims: tuple[str, ...] = ()
    reason: str = ""

    @property
    def document(self) -> str:
        return DOCUMENTS[self.id.partition(".")[0]]


def statements() -> tuple[Statement, ...]:
    """Returns all statements, by document; raises UserError if one is not as this module describes it."""
    path = files.package() / "modes" / "statements.toml"
    try:
        return tuple(map(statement, tomllib.loads(path.read_text())["statement"]))
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path.name} cannot be read: {error}.") from None


def statement(entry: dict[str, Any]) -> Statement:
    read = Statement(**entry | {"claims": tuple(entry.get("claims", ()))})
    if bool(read.claims) == bool(read.reason):
        raise UserError(f"{read.id} needs claims or a reason, and not both.")
    return read


def of_document(document: str) -> list[Statement]:
    """Returns the statements of the document with this id."""
    return [each for each in statements() if each.id.startswith(f"{document}.")]


def claims_here() -> dict[str, Claim]:
    """Returns each claim by its id, with the verdict that it has in the installed versions."""
    return {
        claim.id: claim for document in registry.documents() for claim in document.claims_here()
    }


def verdict(of: Statement, keras: int = 3, claims: Mapping[str, Claim] | None = None) -> str:
    """Returns 'true', 'half' or 'false' by the claims that decide a statement, or 'not judged'."""
    claims = claims or claims_here()
    found = {claims[claim].expected(keras) for claim in of.claims}
    if not found:
        return "not judged"
    return found.pop() if len(found) == 1 else "half"
