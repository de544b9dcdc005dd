"""The statements of the documents: how many are true, and a table with the page that tests each."""

from collections import Counter
from itertools import groupby

from strategy_clinic.modes.failure_mode import DOCUMENTS, TRUTHS
from strategy_clinic.modes.statements import Statement, statements, tested_claims, verdict

TESTED = tested_claims()
VERDICTS = (*TRUTHS, "not judged")


def counts() -> str:
    """Returns a table with the verdicts on each document, and on all."""
    by_document = {
        document: Counter(verdict(each, TESTED) for each in made)
        for document, made in groupby(statements(), lambda each: each.document)
    }
    rows = [(document, by_document[document]) for document in DOCUMENTS.values()]
    rows.append(("all", sum(by_document.values(), Counter())))
    lines = [f"| document about | statements | {' | '.join(VERDICTS)} |", "|---" * 6 + "|"]
    return "\n".join(lines + [counts_row(*row) for row in rows])


def counts_row(document: str, found: Counter[str]) -> str:
    return f"| {document} | {found.total()} | {' | '.join(str(found[each]) for each in VERDICTS)} |"


def table() -> str:
    """Returns a table for each document: what it states, the verdict, and the pages that test it, or why none does."""
    parts = []
    for document, made in groupby(statements(), lambda each: each.document):
        lines = [f"**{document}**", "", "| statement | verdict | tested as |", "|---" * 3 + "|"]
        parts.append("\n".join([*lines, *map(row, made)]))
    return "\n\n".join(parts)


def row(statement: Statement) -> str:
    links = [link(claim) for claim in statement.claims]
    where = ", ".join(links) or statement.reason
    return f"| {statement.says} | {verdict(statement, TESTED)} | {where} |"


def link(claim: str) -> str:
    return f"[{claim}](../{TESTED[claim][1].notebook})"
