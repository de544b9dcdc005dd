"""The statements of the documents: how many are true, with a link to the notebook that decides them, and all in a table."""

from collections import Counter

from strategy_clinic.base import files
from strategy_clinic.modes import statements
from strategy_clinic.modes.documents import DOCUMENTS
from strategy_clinic.modes.statements import VERDICTS


def counts() -> str:
    """Returns a table with the verdicts on each document, and on all."""
    by_document = {
        document: Counter(map(statements.verdict, statements.of_document(document)))
        for document in DOCUMENTS
    }
    rows = [(notebook_link(document), found) for document, found in by_document.items()]
    rows.append(("all", sum(by_document.values(), Counter())))
    lines = [f"| document about | statements | {' | '.join(VERDICTS)} |", "|---" * 6 + "|"]
    return "\n".join(lines + [counts_row(*row) for row in rows])


def counts_row(words: str, found: Counter[str]) -> str:
    return f"| {words} | {found.total()} | {' | '.join(str(found[each]) for each in VERDICTS)} |"


def notebook_link(document: str) -> str:
    return f"[{DOCUMENTS[document]}](../{path_of(document)}.ipynb)"


def path_of(document: str) -> str:
    """Returns the path of a document's notebook on the site, without its ending."""
    page = next(path for path in files.document_pages() if files.page_id(path) == document)
    return f"notebooks/documents/{files.page_name(page)}"


def pages() -> str:
    """Returns the list of the documents' notebooks for the navigation."""
    lines = "\n".join(f"../{path_of(document)}" for document in DOCUMENTS)
    return f"```{{toctree}}\n:hidden:\n\n{lines}\n```"
