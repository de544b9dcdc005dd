"""Each known error of a release is whole, and triage answers with it. Each law is broken on purpose below."""

import re
from collections.abc import Iterator

from conftest import forget
from law import all_tests_of, edit
from packaging.version import Version
from strategy_clinic.base import files
from strategy_clinic.triage import classify, known_errors
from strategy_clinic.triage.releases import PACKAGES

TABLE = "helpers/strategy_clinic/triage/known_errors.toml"
MANY = 25
ISSUE = re.compile(r"[\w.-]+/[\w.-]+#\d+")
RELEASE = re.compile(r"\d+\.\d+\.\d+")


def law_known_errors_are_whole() -> list[str]:
    """Each has a package, releases in their order, a public thread, a proof, and what the proof showed."""
    forget()
    written = files.toml((files.package() / "triage" / known_errors.FILE).read_text())["error"]
    found = known_errors.known_errors().values()
    problems = [] if len(found) >= MANY else [f"only {len(found)} known errors"]
    problems += ["two known errors have one id"] if len(found) != len(written) else []
    return problems + [f"{each.id}: {problem}" for each in found for problem in lacks(each)]


def lacks(error):
    releases = error.releases
    if releases.package not in PACKAGES:
        yield f"{releases.package} is not a package of the table"
    named = [releases.first, releases.last, error.repaired]
    if not all(RELEASE.fullmatch(each) for each in filter(None, named)):
        yield "a release has not three numbers"
    elif sorted(filter(None, named), key=Version) != list(filter(None, named)):
        yield "the releases are not in their order"
    if error.repaired and not releases.last:
        yield "it is repaired, and has no last release"
    if not error.issues or not all(map(ISSUE.fullmatch, error.issues)):
        yield "it names no public thread"
    if error.proof not in known_errors.PROOFS or not error.shown or error.title.endswith("."):
        yield "proof, shown or title is not as the table wants it"
    if not error.wordings or not (error.repaired or error.instead):
        yield "it has no wording, or nothing to do about it"


def law_triage_finds_known_errors() -> Iterator[str]:
    """What is written of an error leads to it where a release that has it is named, and not where the repaired one is."""
    forget()
    return (problem for each in known_errors.known_errors().values() for problem in astray(each))


def astray(error):
    for wording in error.wordings:
        said = spelled(wording["says"])
        text = said if wording.get("alone") else f"ValueError: {said}"
        if found(error, error.releases.first, text) != error.id:
            yield f"{error.id}: {said!r} does not lead to it"
        if error.repaired and found(error, error.repaired, text) == error.id:
            yield f"{error.id}: {said!r} leads to it in {error.repaired}, too"


def found(error, release: str, text: str) -> str:
    answer = classify.triage(f"{error.releases.package}=={release}\n{text}")
    return answer.candidates[0].error if answer.candidates else ""


def spelled(says) -> str:
    """A text that has the phrases, each with its first choice."""
    text = " ".join([says] if isinstance(says, str) else says)
    return re.sub(r"\{([^{}|]*)\|[^{}]*\}", r"\1", text).replace("...", "x")


MUTATIONS = [
    ("law_known_errors_are_whole", edit(TABLE, "first = '3.7.0'", "first = '3.7'")),
    ("law_known_errors_are_whole", edit(TABLE, "repaired = '3.10.0'", "repaired = '3.9.1'")),
    ("law_known_errors_are_whole", edit(TABLE, "id = 'muon-path'", "id = 'activation-layer'")),
    ("law_known_errors_are_whole", edit(TABLE, "keras-team/keras#21793", "the tracker")),
    ("law_known_errors_are_whole", edit(TABLE, "proof = 'read'", "proof = 'hearsay'")),
    ("law_triage_finds_known_errors", edit(TABLE, "last = '3.9.2'", "last = '3.10.0'")),
    ("law_triage_finds_known_errors", edit(TABLE, "proof = 'certain'", "proof = 'hint'")),
    (
        "law_triage_finds_known_errors",
        edit(TABLE, "has no attribute overwrite_with_gradient'", "x'\nunless = 'x'"),
    ),
]

test_law, test_mutation_breaks_law, test_every_law_has_a_mutation = all_tests_of(globals())
