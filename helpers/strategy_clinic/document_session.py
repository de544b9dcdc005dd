"""The session of a document's notebook: its claims, and the steps that compare their runs with the declared verdicts.

A claim whose runs give another verdict than is declared raises Disagreement, and the notebook fails.
"""

from collections.abc import Iterable

from .base import files
from .base.display import report, text_table
from .base.errors import UserError, choose
from .modes.documents import Claim, Document
from .modes.registry import document_by_id, mode_by_id
from .modes.statements import VERDICTS, of_document, verdict
from .programs import run as programs
from .programs.text import SUBJECTS
from .programs.verdicts import EVIDENCE
from .session import Disagreement, Session
from .setups import parameters
from .setups.parameters import Setup


def document(identity: str, keras: int) -> "DocumentSession":
    """Prepares this kernel for a version of Keras, and returns the session of a document's notebook."""
    setup = Setup(keras=keras)
    programs.prepare()
    parameters.prepare_kernel(setup, ["keras"])
    return DocumentSession(document_by_id(identity), setup)


class DocumentSession:
    """A document, a setup, and the claims that have been judged."""

    def __init__(self, document: Document, setup: Setup) -> None:
        self.document, self.setup = document, setup
        self.claims = {claim.id: claim for claim in document.claims_here()}
        self.judged: set[str] = set()

    def page(self, mode: str) -> Session:
        """Returns a session with the programs of a mode, as if the cells of its page had been run."""
        session = Session(mode_by_id(mode), self.setup)
        for subject in SUBJECTS:
            session.texts[subject] = f"{files.program_text(mode, subject).strip()}\n"
        return session

    def judges(self, results: dict[str, Iterable[object]], evidence: str = "executed") -> None:
        """Compares the results of each claim's tests with its declared verdict: all hold, none holds, or some do.

        Every claim is reported before one that is not as declared fails the notebook.
        """
        choose("evidence", evidence, EVIDENCE)
        truths = {name: truth_of(name, found) for name, found in results.items()}
        for name, truth in truths.items():
            claim = self.claims[choose("claim", name, self.claims)]
            self._report(claim, truth, evidence)
        self.judged |= truths.keys()
        for name, truth in truths.items():
            if truth != self._expected(name):
                raise Disagreement(
                    f"Document {self.document.id} disagrees with its run at {name!r}: "
                    f"declared {self._expected(name)}; the run gave {truth}."
                )

    def _report(self, claim: Claim, truth: str, evidence: str) -> None:
        is_declared = truth == self._expected(claim.id)
        words = claim.in_words(self.setup.keras) if is_declared else truth
        facts = {"id": claim.id, "verdict": truth, "evidence": evidence}
        report(f"{claim.id} is {words} ({evidence}): {claim.says}", claim=facts)

    def _expected(self, name: str) -> str:
        return self.claims[name].expected(self.setup.keras)

    def verdicts(self) -> None:
        """Shows how many statements have which verdict; raises a UserError if a claim has not been judged."""
        missing = sorted(self.claims.keys() - self.judged)
        if missing:
            raise UserError(
                f"No run in this notebook tests what is declared: {', '.join(missing)}."
            )
        made = of_document(self.document.id)
        found = [verdict(each, self.setup.keras) for each in made]
        rows = [[word, str(found.count(word))] for word in VERDICTS]
        report(text_table([["verdict", "statements"], *rows, ["all", str(len(made))]]))


def truth_of(name: str, results: Iterable[object]) -> str:
    """Returns whether a claim holds in all runs, in some, or in none; raises a UserError if there is no run."""
    held = list(map(bool, results))
    if not held:
        raise UserError(f"Claim {name} is judged without a run.")
    return "true" if all(held) else "half" if any(held) else "false"
