"""Each mode is known by its words: messages, what is left of a traceback, descriptions, and code."""

import pytest
from code_samples import PIECES
from error_samples import CUT, DESCRIBED, ERRORS, FIT
from strategy_clinic.triage import classify, wordings
from strategy_clinic.triage.code_patterns import modes_by_code
from strategy_clinic.triage.report_text import ReportText

ASKED = "My training is not what I expect it to be, why? This is the part of the program:\n\n"


@pytest.mark.parametrize("mode, text", ERRORS, ids=[f"{mode} {text[:40]}" for mode, text in ERRORS])
def test_an_error_leads_to_its_mode(mode, text):
    assert classify.triage(text).mode == mode


@pytest.mark.parametrize("mode, text", CUT)
def test_frames_are_evidence_where_the_message_is_cut_off(mode, text):
    assert classify.triage(FIT + text).mode == mode


@pytest.mark.parametrize("mode, text", CUT)
def test_frames_prove_nothing_beside_a_message(mode, text):
    assert classify.triage(f"{FIT}{text}\nKeyError: 'labels'").mode is None


@pytest.mark.parametrize("mode, text", DESCRIBED)
def test_a_description_leads_to_the_question_of_its_mode(mode, text):
    answer = classify.triage(text)
    assert answer.mode is None and not answer.known
    assert answer.candidates[0].mode == mode
    assert answer.candidates[0].because.startswith("its words are near: ")


@pytest.mark.parametrize(
    "mode, piece", PIECES, ids=[f"{mode} {piece[:30]!r}" for mode, piece in PIECES]
)
def test_code_leads_to_its_mode(mode, piece):
    assert mode in modes_by_code(ReportText(ASKED + piece).code)


def test_every_mode_has_words_and_can_be_asked_about():
    assert {*wordings.declared_modes(), None} == {*wordings.mode_words()}
    for mode in wordings.declared_modes():
        assert wordings.question_of(mode).endswith("?")
