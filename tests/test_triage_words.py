"""Triage without a message: a description, a traceback that is cut off, and what is told apart from a stranger."""

import functools
import json

import pytest
from errors import FIT
from strategy_clinic.modes import registry
from strategy_clinic.triage import (
    classify,
    desk,
    phrases,
    similarity,
    strip_code,
    wording_index,
    wordings,
)

DESCRIBED = [
    ("fm37", "The loss is twice as large with two GPUs as with one."),
    ("fm38", "evaluate differs after loading, only with BatchNormalization and MirroredStrategy"),
    (
        "fm29",
        "the loss jumps when I continue training the loaded model, as if the optimizer began anew",
    ),
    ("fm14", "I cloned a layer, and the two copies have different weights after training"),
    ("fm25", "after load_model only one of our four GPUs is busy"),
    ("fm35", "the restored model gives garbage in a new session, and restore raised nothing"),
]
ORDINARY = [
    "I load a pretrained model and print the output of its Dropout layer.",
    "How many epochs do you train for?",
    "Training is slower on four GPUs than on one.",
    "The GPU runs out of memory after some epochs.",
]
# What is left of a traceback where the message was not pasted.
CUT = [
    ("fm30", '    load_model("m.h5")\n  File "keras/utils/generic_utils.py", line 147, in deserialize_keras_object\n'),
    ("fm34", '  File "tensorflow/python/keras/optimizer_v2/utils.py", line 73, in filter_empty_gradients\n    raise Val'),
    ("fm12", "ValueError: in user code:\n\n    def_function.py:502 invalid_creator_scope\n        raise ValueError("),
    ("fm13", '  clip(grads)\n  File "clip_ops.py", line 53, in clip_by_value\n\n  File "ops.py", line 6, in convert_to_tensor'),
    ("fm28", '    bp.write_weights(path)\n  File "bp.py", line 475, in write_weights\n    np.savez(path, parts=parts)\n'),
    ("fm31", 'RuntimeError: in user code:\n  File "distribute_lib.py", line 9, in require_replica_context'),
    ("fm12", 'ValueError: in user code:\n  File "mine.py", line 6, in weighted  *\n    w = K.variable(rates)'),
    ("fm13", '  File "towers.py", line 40, in average_gradients\n    wide = tf.expand_dims(each, 0)'),
    ("fm15", '  File "keras/src/optimizers/loss_scale_optimizer.py", line 183, in apply\n    ops.cond(finite, on two replicas'),
    ("fm40", '  File "optimizer_v2/utils.py", line 39, in all_reduce_sum_gradients\n    context.merge_call('),
    ("fm42", 'OutOfRangeError  Traceback\nmine.py in fit(data)\n----> 1 model.fit(data, steps_per_epoch=9)'),
    ("fm30", '  File "saving_api.py", line 1, in load_model\n  File "saving_lib.py", line 4, in f\n  deserialize_keras_object('),
    ("fm17", '  File "tpu_context.py", line 442, in is_running_on_cpu\n    self._validate_tpu_configuration()'),
    ("fm06", "Caused by op 'save/Assign_29', defined at:\n  File \"saver.py\", line 428, in _AddRestoreOps"),
    ("fm15", '  File "mirrored_run.py", line 387, in run\n  File "td3.py", line 316, in _train\n    tf.cond('),
    ("fm30", '    m = load_model(path, custom_objects=mine)\n  File "keras/models.py", line 388, in load_model'),
    ("fm30", '    load_model(path)\n  File "models.py", line 274, in load_model\n    sample_weight_mode=sample_weight_mode)'),
]  # fmt: skip


@pytest.mark.parametrize("mode, text", DESCRIBED)
def test_a_description_leads_to_its_mode(mode, text):
    found = classify.triage(text)
    assert found.mode == mode and not found.known
    assert found.candidates[0].because.startswith("its words are near: ")


def test_it_says_by_which_words_it_went():
    because = classify.triage(DESCRIBED[0][1]).candidates[0].because
    went_by = because.split(": ")[1].replace('"', "").split(", ")
    assert all(word in DESCRIBED[0][1].lower() for each in went_by for word in each.split())


@pytest.mark.parametrize("text", ORDINARY)
def test_what_describes_no_mode_is_none(text):
    found = classify.triage(text)
    assert found.mode is None and found.confidence >= 0.5


@pytest.mark.parametrize("mode, text", CUT)
def test_frames_are_evidence_where_the_message_is_cut_off(mode, text):
    assert classify.triage(FIT + text).mode == mode


def test_a_traceback_without_its_error_is_no_description():
    """Where a frame is pasted, words count as beside an error: much of them is code of others."""
    frame = '  File "keras/engine/topology.py", line 2246, in save_weights\n    g.attrs["names"] = names\n'
    texts = [text for _, text in DESCRIBED]
    assert all(likeliest(f"{text}\n{frame}") < likeliest(text) for text in texts)
    assert sum(classify.triage(f"{text}\n{frame}").mode is None for text in texts) > len(texts) / 2


def likeliest(text: str) -> float:
    return classify.triage(text).candidates[0].score


def test_an_error_that_a_sentence_mentions_is_not_pasted():
    for mentioned in (
        "It ends with a TypeError.",
        "a long TypeError which says nothing",
        "`TypeError`, then",
    ):
        assert phrases.last_raised(mentioned) == ""
    for pasted in (
        "TypeError: no",
        "TypeError",
        "raise TypeError(",
        "tf.errors.DataLossError: bad",
        "TypeError    Traceback",
    ):
        assert phrases.last_raised(pasted)


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


def test_nobody_tells_what_documentation_says():
    text = "The loss is too large under a strategy with several replicas"
    assert similarity.is_told(f"My loss: {text}") and similarity.is_told(f"{text}?")
    assert not similarity.is_told(text) and not similarity.is_told("for i in range(3): img = i")
    assert likeliest(f"{text}, I think") > likeliest(text)


@pytest.mark.parametrize("mode, text", CUT)
def test_frames_prove_nothing_beside_a_message(mode, text):
    assert classify.triage(f"{FIT}{text}\nKeyError: 'labels'").mode is None


def test_a_stranger_is_told_from_what_nobody_has_worded():
    stranger = classify.triage("ResourceExhaustedError: OOM when allocating tensor")
    unheard = classify.triage("KeyError: 'labels'")
    assert stranger.known and stranger.mode is None and not unheard.known
    assert desk.words_of(stranger)[0].startswith("none of the modes (")
    assert desk.words_of(unheard)[0].startswith("no wording that I know; none of the modes (0.")


def test_what_is_likely_is_asked_and_not_answered():
    found = classify.triage("My model is strange after restoring it.")
    said = desk.words_of(found)
    assert found.mode is None and len(said) > 1
    assert all("?" in line and "Then fm" in line for line in said[1:])
    assert "href" not in desk.card(found)


def test_a_wording_among_words_of_something_else_is_asked():
    """The same message answers alone, and asks where the text around it speaks of something else."""
    message = "LookupError: gradient registry has no entry for: RFFT3D"
    around = (
        "I converted the model to TensorFlow Lite with a quantized representative dataset on Windows. "
        * 9
    )
    assert classify.triage(message).mode == "fm34"
    found = classify.triage(f"{around}\n{message}")
    said = desk.words_of(found)
    assert found.known and found.mode is None and found.candidates[0].mode == "fm34"
    assert said[0].startswith(desk.TOO_LITTLE) and "Then fm34" in said[1]


def test_a_description_is_read_without_its_code_and_its_form():
    prose = " ".join(["The loss is twice as large with two GPUs as with one."] * 4)
    form = "### Issue type\n_No response_\n**Python version**: 3.8\n"
    code = "import numpy as np\ndef step(x):\nmodel.fit(x, y)\n```\nanything at all\n```\n"
    assert strip_code.in_prose(f"{form}{code}{prose}").strip() == prose
    assert strip_code.in_prose(code) == code


def test_probabilities_are_some():
    for text in [text for _, text in DESCRIBED] + ORDINARY:
        found = classify.triage(text)
        scores = [each.score for each in found.candidates]
        assert scores == sorted(scores, reverse=True) and sum(scores) <= 1.001
        assert json.loads(json.dumps(found.as_dict()))


def test_every_mode_can_be_asked_about():
    for mode in registry.modes():
        assert wordings.what_to_ask(mode.id).endswith("?")


def test_a_mode_that_nobody_described_is_known_by_its_declaration(project, monkeypatch):
    """A new notebook needs nothing more than its MODE and its wordings."""
    declared = wordings.declared_modes() | {
        "fm99": wordings.declared_modes()["fm25"]
        | {"sees": "the kettle whistles on every replica", "title": "A kettle on a replica"}
    }
    monkeypatch.setattr(wordings, "declared_modes", functools.cache(lambda: declared))
    wording_index.everything.cache_clear()
    assert (
        wordings.what_to_ask("fm99")
        == "Is this what you see: the kettle whistles on every replica?"
    )
    near = similarity.likest("my kettle whistles on each replica", wording_index.everything().index)
    assert near[0].mode == "fm99"
