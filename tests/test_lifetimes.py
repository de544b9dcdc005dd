"""Where a version changes what a mode shows, its declaration says so, and the page tells the reader's side."""

from dataclasses import replace

import pytest
from strategy_clinic import Claim, Document, FailureMode, Setup, Symptom
from strategy_clinic.base.errors import UserError
from strategy_clinic.modes import documents, failure_mode
from strategy_clinic.programs import version_bounds
from strategy_clinic.triage import classify, wordings

SETUP = Setup("mirrored", 2)
OLD = Symptom("ValueError", "old words", devices=(2,), until="keras 3.16")
NEW = Symptom("TypeError", "new words", devices=(2,), since="keras 3.16")
CLAIMS = (
    Claim("000-C1", "fm00", "it loads", {2: "true", 3: "half"}, until="keras 3.16"),
    Claim("000-C1", "fm00", "it loads", "true", since="keras 3.16"),
)
FACTS = {"id": "fm00", "slug": "x", "title": "", "sees": "", "fix": "", "document": "000"}


def declared(*symptoms):
    return FailureMode(**FACTS, switches=(), symptoms=symptoms)


@pytest.fixture
def keras(monkeypatch):
    """Which Keras is here; nothing else is installed."""

    def is_here(version):
        monkeypatch.setattr(version_bounds, "version_of", {"keras": version}.get)

    return is_here


@pytest.mark.parametrize(
    "version, reached",
    [("3.15.1", False), ("3.16.0", True), ("3.16.0.dev2026102704", True), ("3.9.2", False)]
    + [("4.0", True), (None, False)],
)
def test_a_nightly_counts_as_what_it_becomes(keras, version, reached):
    keras(version)
    assert version_bounds.is_reached("keras 3.16") is reached


SIDES = [
    ("3.15", [OLD], "raises", "fails here; fixed upstream in keras 3.16"),
    ("3.16", [OLD], "works", "works here; it fails until keras 3.16"),
    ("3.15", [NEW], "works", "works here; it fails since keras 3.16"),
    ("3.16", [NEW], "raises", "it fails since keras 3.16"),
    ("3.15", [OLD, NEW], "raises", "it fails in other words from keras 3.16 on"),
    ("3.16", [OLD, NEW], "raises", "it failed in other words before keras 3.16"),
    ("3.16", [replace(OLD, until="")], "raises", ""),
    ("3.16", [replace(OLD, devices=(4,))], "works", ""),
]


@pytest.mark.parametrize("version, symptoms, expects, side", SIDES)
def test_each_side_of_a_change(keras, version, symptoms, expects, side):
    keras(version)
    made = declared(*symptoms)
    assert (made.expects(SETUP), made.version_note(SETUP)) == (expects, side)


def test_a_claim_has_one_verdict_in_each_version(keras):
    keras("3.15")
    document = Document("000", "", CLAIMS)
    (claim,) = document.claims_here()
    assert claim.in_words(3) == "half on Keras 3, true on Keras 2 until keras 3.16"
    keras("3.16")
    (claim,) = document.claims_here()
    assert claim.in_words(3) == "true since keras 3.16"
    documents.check_claims(document)


@pytest.mark.parametrize(
    "claims",
    [CLAIMS[:1], CLAIMS[1:], (*CLAIMS, CLAIMS[0]), (CLAIMS[0], replace(CLAIMS[1], since=""))],
)
def test_a_version_without_a_verdict_or_with_two_is_refused(claims):
    with pytest.raises(UserError, match="one verdict in each version"):
        documents.check_claims(Document("000", "", claims))


@pytest.mark.parametrize("bound", ["keras", "3.16", "jax 0.5", "keras 3", "keras 3.16.dev1"])
def test_a_bound_is_a_package_and_a_release(bound):
    with pytest.raises(UserError, match="fm00"):
        failure_mode.check_words(declared(replace(OLD, until=bound)))
    with pytest.raises(UserError, match="000-C1"):
        documents.check_claims(Document("000", "", (replace(CLAIMS[0], until=bound),)))


def test_triage_says_what_is_fixed_upstream(monkeypatch):
    for symptoms, fixed in [
        ((OLD,), "keras 3.16"),
        ((OLD, NEW), ""),
        ((replace(OLD, until=""),), ""),
    ]:
        modes = {"fm00": declared(*symptoms)}
        monkeypatch.setattr(wordings, "declared_modes", lambda modes=modes: modes)
        assert wordings.fixed_in("fm00", "old words") == fixed
    monkeypatch.undo()
    wording = wordings.Wording(
        "fm00", ("old words",), "MODE", symptom="old words", fixed="keras 3.16"
    )
    found = classify.triage("ValueError: old words", (wording,))
    assert found.candidates[0].because == 'it says "old words"; fixed upstream in keras 3.16'
