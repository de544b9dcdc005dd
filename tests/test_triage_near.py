"""Triage of messages that are nearly right: a letter wrong, the signs lost, or only a part of one."""

import time

import pytest
from conftest import forget
from error_samples import ERRORS, OF_NO_MODE
from strategy_clinic.triage import classify, near, wordings
from strategy_clinic.triage.report_text import flat

TYPED = {
    "unsupported operations when trying": "fm24",
    "need to be inside with strategy scope": "fm03",
    "no gradiants provided for any variables": "fm34",
    "Recieved incompatible tensor with shape": "fm06",
    "PerReplica object has no atribute numpy": "fm39",
    "your input ran out of dta": "fm42",
    "Could not locate clas 'MyLayer'": "fm30",
    "The optimizer cannot recognise variable": "fm10",
    "optimizer cannot recognize": "fm10",
    "ValueError: Unknwon layer: Attention": "fm30",
}
BEGUN_LATE = {
    "ot convert a symbolic Tensor (loss/mul:0) to a numpy array.": "fm07",
    "ate optimizer slot variable under the scope for tf.distribute.Strategy (<x>)": "fm03",
    "ires shapes of both tensors to match. lhs": "fm06",
    "port a function which references untracked object Tensor": "fm05",
}
LONG = 30  # letters of a message whose wrong letters and halves are tried


@pytest.mark.parametrize("text", TYPED)
def test_what_is_typed_by_hand(text):
    assert classify.triage(text).mode == TYPED[text]


@pytest.mark.parametrize("text", BEGUN_LATE)
def test_a_message_without_its_beginning(text):
    assert classify.triage(text).mode == BEGUN_LATE[text]


def test_a_few_letters_begin_no_message():
    assert near.left_at_start("the saved weights have", "ave nothing to do") == 0


def test_a_part_that_several_messages_have_names_them_all():
    found = classify.triage("merge_call called while")
    assert [each.mode for each in found.candidates] == ["fm15", "fm40"]
    assert found.candidates[0].score == found.candidates[1].score


def messages() -> list[tuple[str, str]]:
    """What proves a mode by itself, as its message is worded."""
    return [
        (entry.mode, " x ".join(near.plain_readings(entry)[0]))
        for entry in wordings.wordings()
        if entry.mode and len(entry.says) == 1 and classify.proves(entry) and not entry.alone
        if near.plain_readings(entry) and len(near.plain_readings(entry)[0]) == 1
        if len(near.plain_readings(entry)[0][0]) >= LONG
    ]


def wrong_in_the_middle(message: str) -> str:
    place = next(n for n in range(len(message) // 2, len(message)) if message[n].isalpha())
    return f"{message[:place]}{'z' if message[place] != 'z' else 'y'}{message[place + 1 :]}"


def second_half(message: str) -> str:
    return message[len(message) // 2 - 1 :].partition(" ")[2]


def share_found(change) -> float:
    """Returns how many messages still have their mode first, or as a second that is as likely."""
    found = [
        (mode, classify.triage(change(message)).candidates[:3]) for mode, message in messages()
    ]
    right = [mode in [each.mode for each in candidates] for mode, candidates in found]
    return sum(right) / len(right)


@pytest.mark.slow
def test_a_wrong_letter_loses_hardly_a_message():
    assert share_found(wrong_in_the_middle) > 0.97


@pytest.mark.slow
def test_half_of_a_message_is_enough_for_most():
    assert share_found(second_half) > 0.8


def nearly_said(text: str, entries) -> list[wordings.Wording]:
    """Which of these wordings a text nearly has, or is a part of."""
    words, part = near.plain(flat(text))[-near.READ :], near.short(flat(text))
    return [
        entry
        for entry in entries
        if near.with_errors(entry, words) or (part and near.part(entry, part))
    ]


def wrong_at_the_beginning(message: str) -> str:
    """In a text that is too long to be a part of a message."""
    return f"{'and so on ' * 30}{message[:3]}zz{message[5:]}"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(wrong_in_the_middle, marks=pytest.mark.slow),
        second_half,
        pytest.param(wrong_at_the_beginning, marks=pytest.mark.slow),
    ],
)
def test_the_index_names_all_that_a_text_nearly_has(change):
    every = wordings.wordings()
    index, said = near.index_of(every), 0
    for _, message in messages()[::20]:
        text = change(message)
        found = nearly_said(text, every)
        named = index.wordings_for(near.plain(flat(text)), near.short(flat(text)))
        assert set(found) <= set(named) and len(named) < len(every) / 5, text
        said += len(found)
    assert said > 20


def test_other_words_are_no_wrong_letters():
    assert near.edits("gradients provided", "gradients not provided", 2)[0] > 2
    assert near.edits("weights", "wieghts", 1) == (1, 7)
    assert near.edits("weights", "weight of", 1)[0] == 1
    unlike = "TypeError: f() got an unexpected keyword argument 'lr'"
    assert classify.triage(unlike).mode is None


def test_another_name_is_no_wrong_letter():
    says = "model = load_model(path)\nTypeError: __init__() got an unexpected keyword argument"
    for other in ("ragged", "lr", "on"):
        assert classify.triage(f"{says} '{other}'").mode is None
    assert classify.triage(f"{says.replace('keyword', 'keywrod')} 'fn'").mode == "fm45"
    assert near.ends_alike("argument fn", "argumnt fn") and near.ends_alike(
        "of weights", "of weigths"
    )
    assert not near.ends_alike("argument fn", "argument fx")


def test_what_speaks_against_a_wording_speaks_against_a_part_of_it():
    assert classify.triage("OSError: No file or directory found at folder").mode == "fm27"
    assert classify.triage("OSError: No file or directory found at model.keras").mode is None


def test_a_message_that_needs_its_context_is_asked_about():
    found = classify.triage("You must feed a value for placeholder tensor")
    assert found.mode is None and found.candidates[0].mode == "fm32"
    assert found.candidates[0].score > found.confidence


def test_what_a_message_does_not_say_is_not_cut_off():
    said = "ValueError: Only input tensors may be passed as positional arguments. The following argument value should be passed"
    assert classify.triage(f"{said} as a keyword argument: PerReplica:{{ 0: 1.0 }}").mode == "fm39"
    assert (
        classify.triage(f"{said} as a keyword argument: <Variable w> (of type Variable)").mode
        is None
    )


def test_a_long_text_is_no_part_of_a_message():
    assert near.short(flat("was never built " * 30)) == ""
    assert near.short(flat("ValueError")) == ""
    assert near.short(flat("ValueError: The filename must end in")) == "the filename must end in"


def test_it_is_fast_enough_to_type_by():
    """Few wordings are compared with a text that has no known message; the limit is for a busy machine."""
    classify.triage("warm up")
    texts = [*OF_NO_MODE, *TYPED, *(text for _, text in ERRORS)]
    start = time.process_time()
    for text in texts:
        classify.triage(text)
    assert (time.process_time() - start) / len(texts) < 0.05


def test_a_broken_expression_is_no_sentence():
    forget()
    assert near.sentence(r"Could not locate (class|function) '\w+'") == (
        "Could not locate {class|function} '...'"
    )
    assert near.sentence(r"float\(\) argument must be .* not") == "float() argument must be ... not"
    assert near.sentence(r"a [bc] d") == "" and near.sentence(r"at: \S*saved/") == ""
