"""The known errors of single releases of Keras and TensorFlow, as a table for each package."""

from collections.abc import Iterator

from strategy_clinic.triage import known_errors
from strategy_clinic.triage.known_errors import KnownError
from strategy_clinic.triage.releases import PACKAGES

HEAD = ["| releases | what goes wrong | what to do | issue | how it is known |", "|---" * 5 + "|"]


def tables() -> str:
    """Returns a section for each package, with its errors in the order of their first releases."""
    return "\n".join(line for package in PACKAGES for line in section(package))


def section(package: str) -> Iterator[str]:
    found = known_errors.known_errors().values()
    yield from ["", f"## {PACKAGES[package]}", "", *HEAD]
    yield from (row(each) for each in found if each.releases.package == package)


def row(error: KnownError) -> str:
    issues = ", ".join(f"[{name}]({known_errors.url_of(name)})" for name in error.issues)
    known = f"{known_errors.PROOFS[error.proof]}: {error.shown}"
    cells = [str(error.releases), error.title, error.repair, issues, known]
    return f"| {' | '.join(each.replace('|', '&#124;') for each in cells)} |"
