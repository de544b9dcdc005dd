"""The declaration of a document: its claims, each with the verdict that a run must give it."""

from dataclasses import dataclass

from ..base.errors import UserError, choose
from ..programs.version_bounds import bounds_in_words, check_bounds, holds_here

TRUTHS = ("true", "half", "false")
# The five documents whose advice is put to the test, by what each is about.
DOCUMENTS = {
    "000": "weights in strategy.run",
    "001": "checkpoints and apply_gradients",
    "002": "gradient accumulation",
    "003": "TPUStrategy",
    "004": "load_model and MirroredStrategy",
}


@dataclass(frozen=True)
class Claim:
    """A sentence of a document, the mode whose page is about it, and its verdict: a word, or one per version of Keras.

    Where a version has changed the verdict there are two claims of one id: one `until` it, the other `since`.
    """

    id: str
    mode: str
    says: str
    verdict: str | dict[int, str]
    since: str = ""
    until: str = ""

    def expected(self, keras: int) -> str:
        return self.verdict[keras] if isinstance(self.verdict, dict) else self.verdict

    def in_words(self, keras: int) -> str:
        """Returns the verdict, that of the other version of Keras where it differs, and the versions it holds in."""
        words = self.expected(keras)
        if isinstance(self.verdict, dict):
            words = f"{words} on Keras {keras}, {self.verdict[5 - keras]} on Keras {5 - keras}"
        return " ".join(filter(None, [words, bounds_in_words(self)]))


@dataclass(frozen=True)
class Document:
    """A document and its claims. Literals only: the registry reads this declaration without running the notebook."""

    id: str
    title: str
    claims: tuple[Claim, ...]

    def claims_here(self) -> list[Claim]:
        """Returns the claims with the verdicts that they have in the installed versions."""
        return list(filter(holds_here, self.claims))


def check_claims(document: Document) -> None:
    """Raises a UserError unless each bound is a release, and each claim has one known verdict in each version."""
    choose("document", document.id, DOCUMENTS)
    for claim in document.claims:
        check_bounds(claim.id, claim)
        for keras in (2, 3):
            choose(f"verdict of {claim.id}", claim.expected(keras), TRUTHS)
        same = [other for other in document.claims if other.id == claim.id]
        since, until = sorted(c.since for c in same), sorted(c.until for c in same)
        if since != until or since.count("") != 1:
            raise UserError(
                f"{claim.id} needs one verdict in each version; where one ends (until) another begins (since)."
            )
