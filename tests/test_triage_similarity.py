"""Triage without a message: a description, and a traceback that is cut off."""

import functools
import json
from dataclasses import replace

import pytest
from error_samples import DESCRIBED
from strategy_clinic.triage import answer_text, classify, similarity, wordings
from strategy_clinic.triage.report_text import ReportText

ORDINARY = [
    "I load a pretrained model and print the output of its Dropout layer.",
    "How many epochs do you train for?",
    "Training is slower on four GPUs than on one.",
    "The GPU runs out of memory after some epochs.",
    "The MNIST example takes 286 seconds on two GPUs and 197 on one.",
    "GPU utilisation goes up and down between 0 and 90 during distributed training.",
    "It runs with one GPU, with two it hangs in the first all-reduce.",
    "The model fits on one GPU, with two GPUs it runs out of memory.",
    "On the TPU my program cannot read a TFRecord file from the notebook's disk.",
]


def test_it_says_by_which_words_it_went():
    because = classify.triage(DESCRIBED[0][1]).candidates[0].because
    went_by = because.split(": ")[1].replace('"', "").split(", ")
    assert all(word in DESCRIBED[0][1].lower() for each in went_by for word in each.split())


@pytest.mark.parametrize("text", ORDINARY)
def test_what_describes_no_mode_is_none(text):
    found = classify.triage(text)
    assert found.mode is None and found.confidence >= 0.5


MEMORY = [
    "Out of memory on each GPU although I use two GPUs with MirroredStrategy",
    "memory use per GPU does not go down when I add GPUs",
    "I added a second GPU, but the memory usage of each card stays the same.",
]


@pytest.mark.parametrize("text", MEMORY)
def test_memory_that_no_device_frees_leads_to_a_question(text):
    found = classify.triage(text)
    assert found.mode is None and found.candidates[0].mode == "fm62"


@pytest.mark.parametrize("mode, text", DESCRIBED)
def test_a_description_leads_to_a_question_about_its_mode(mode, text):
    found = classify.triage(text)
    assert found.mode is None and mode in [each.mode for each in found.candidates]


def test_a_traceback_without_its_error_is_no_description():
    """Where a frame is pasted, words count as beside an error: much of them is code of others."""
    frame = '  File "keras/engine/topology.py", line 2246, in save_weights\n    g.attrs["names"] = names\n'
    texts = [text for _, text in DESCRIBED]
    assert all(likeliest(f"{text}\n{frame}") < likeliest(text) for text in texts)


def likeliest(text: str) -> float:
    return classify.triage(text).candidates[0].score


def test_an_error_that_a_sentence_mentions_is_not_pasted():
    for mentioned in (
        "It ends with a TypeError.",
        "a long TypeError which says nothing",
        "`TypeError`, then",
    ):
        assert ReportText(mentioned).raised == ""
    for pasted in (
        "TypeError: no",
        "TypeError",
        "raise TypeError(",
        "tf.errors.DataLossError: bad",
        "TypeError    Traceback",
    ):
        assert ReportText(pasted).raised


def test_an_error_of_a_branch_that_was_not_taken_is_not_raised():
    """IPython shows some lines above the one that failed."""
    above = "    2 if config is None:\n    3     raise ValueError('No model found in config.')\n    4 x = 1\n"
    shown = f"TypeError  Traceback (most recent call last)\nsaving.py in load(f)\n{above}----> 5 model = f(x)\n"
    ended = f"{shown}\nTypeError: __init__() got an unexpected keyword argument 'ragged'"
    assert classify.triage(ended).mode is None
    assert (
        classify.triage(ended.replace("----> 5", "5").replace("3     raise", "----> 3 raise")).mode
        == "fm27"
    )


def test_what_is_not_a_mode_differs_from_what_no_wording_knows():
    unrelated = classify.triage("ResourceExhaustedError: OOM when allocating tensor")
    unknown = classify.triage("KeyError: 'labels'")
    assert unrelated.known and unrelated.mode is None and not unknown.known
    assert answer_text.lines_of(unrelated)[0].startswith("none of the modes (")
    assert answer_text.lines_of(unknown)[0].startswith("no known wording; none of the modes (0.")


UNSURE = ["loss twice as big with 2 gpus", "accuracy above 1", "KeyError: 'labels'"]
UNSURE += [text for _, text in DESCRIBED]


@pytest.mark.parametrize("text", UNSURE)
def test_what_is_likelier_is_said_first(text):
    """A mode that is likelier than none of them stands before it, and each suggestion leads to its page."""
    found = classify.triage(text)
    head, *rest = answer_text.lines_of(found)
    assert found.known or rest.pop().startswith("  next: ")
    likely = found.candidates and found.candidates[0].score > found.confidence
    assert ("perhaps fm" in head) == bool(likely)
    assert "none of the modes" in rest[-1] if likely else "none of the modes" in head
    asked = [each.mode for each in found.candidates if each.score >= answer_text.ASKED]
    page = answer_text.card(found)
    assert all(f"href='{answer_text.notebook_name(mode)}'" in page for mode in asked)


def test_wordings_of_several_modes_are_asked_about():
    symptoms = [
        wordings.Wording(mode, ("it went wrong",), "MODE", symptom="it went wrong", proof="likely")
        for mode in ("fm04", "fm05", "fm06")
    ]
    answer = classify.triage("It went wrong", tuple(symptoms))
    head, *questions, last = answer_text.lines_of(answer)
    assert answer.known and answer.mode is None
    assert head.startswith("wordings of several modes; perhaps fm04 weights_path_refused (0.")
    assert last.startswith("  or none of the modes (0.")
    assert [question.rpartition("Then ")[2][:4] for question in questions] == [
        "fm04",
        "fm05",
        "fm06",
    ]


def test_what_is_likely_is_asked_and_not_answered():
    found = classify.triage("My model is strange after restoring it.")
    said = answer_text.lines_of(found)
    assert found.mode is None and len(said) > 2
    assert all("?" in line and "Then fm" in line for line in said[1:-1])
    assert not any(line.startswith("  fix:") for line in said)


def test_what_nothing_explains_says_what_to_do_next():
    error, description = "KeyError: 'labels'", "My model is strange."
    assert answer_text.NEXT_OF_ERROR in answer_text.lines_of(classify.triage(error))[-1]
    assert answer_text.NEXT_OF_DESCRIPTION in answer_text.lines_of(classify.triage(description))[-1]
    frame = 'File "train.py", line 3, in <module>'
    assert answer_text.NEXT_OF_ERROR in answer_text.lines_of(classify.triage(frame))[-1]


def test_a_description_is_read_without_its_code_and_its_form():
    prose = " ".join(["The loss is twice as large with two GPUs as with one."] * 4)
    form = "### Issue type\n_No response_\n**Python version**: 3.8\n"
    code = "import numpy as np\ndef step(x):\nmodel.fit(x, y)\n```\nanything at all\n```\n"
    assert ReportText(f"{form}{code}{prose}").prose.strip() == prose
    assert ReportText(code).prose == code


def test_probabilities_are_some():
    for text in [text for _, text in DESCRIBED] + ORDINARY:
        found = classify.triage(text)
        scores = [each.score for each in found.candidates]
        assert scores == sorted(scores, reverse=True) and sum(scores) <= 1.001
        assert json.loads(json.dumps(found.as_dict()))


def test_a_mode_that_nobody_described_is_known_by_its_declaration(project, monkeypatch):
    """A new notebook needs nothing more than its MODE and its wordings."""
    like = wordings.declared_modes()["fm25"]
    new = replace(
        like, id="fm99", sees="the kettle whistles on every replica", title="A kettle on a replica"
    )
    declared = wordings.declared_modes() | {"fm99": new}
    monkeypatch.setattr(wordings, "declared_modes", functools.cache(lambda: declared))
    assert (
        wordings.question_of("fm99")
        == "Is this what you see: the kettle whistles on every replica?"
    )
    index = similarity.index_of(wordings.wordings())
    assert similarity.nearest_modes("my kettle whistles on each replica", index)[0].id == "fm99"
