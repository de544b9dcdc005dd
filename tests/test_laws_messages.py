"""What TensorFlow and Keras raise and warn in the modules that the modes touch: each is of a mode, or judged to be of none."""

from collections.abc import Iterator

from conftest import changed, forget
from law import all_tests_of, edit
from strategy_clinic.triage import classify, wordings
from strategy_clinic.triage.report_text import flat
from tensorflow_messages import judged, messages, none

MANY = 200  # messages, at least, that are judged
FM14 = "helpers/strategy_clinic/modes/fm14_weights_not_shared/words.toml"


def law_every_message_is_judged() -> list[str]:
    """A message that no wording knows stands in the list of those that are none."""
    forget()
    problems = [] if len(messages()) > MANY else [f"only {len(messages())} messages"]
    return problems + [
        f"{module}: {texts[0][:120]}"
        for module, texts in messages()
        if not (is_none(texts) or any(map(is_worded, texts)))
    ]


def law_what_is_of_no_mode_is_not_likely() -> Iterator[str]:
    """No message that is judged to be of none, and that no wording knows, is likelier of a mode than of none."""
    forget()
    answers = (
        (module, texts[0], classify.triage(texts[0]))
        for module, texts in messages()
        if is_none(texts)
    )
    return (
        f"{module}: {text[:120]} is likely of {answer.candidates[0].mode}"
        for module, text, answer in answers
        if not answer.known and answer.candidates[0].score > answer.confidence
    )


def is_worded(message: str) -> bool:
    text = flat(message)
    return any(classify.matched(wording, text) for wording in wordings.wordings())


def is_none(texts: tuple[str, ...]) -> bool:
    return any(judged().match(text.split(": ", 1)[1]) for text in texts)


def described_as_something_else(root):
    """A mode is described by what TensorFlow says of something else."""
    message = "Some requested devices in tf.distribute.Strategy are not visible to TensorFlow"
    lines = "".join(f'    "{message} {word}",\n' for word in ("here", "there", "now"))
    changed(wordings.words_files()["fm36"], "descriptions = [\n", f"descriptions = [\n{lines}", 1)


MUTATIONS = [
    (
        "law_every_message_is_judged",
        edit(FM14, "Inconsistent references when", "Other references when"),
    ),
    ("law_what_is_of_no_mode_is_not_likely", described_as_something_else),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_each_reason_is_still_needed():
    """A text of the list that nothing says any more goes."""
    said = [text.split(": ", 1)[1] for _, texts in messages() for text in texts]
    unsaid = [each for each in none() if not any(starts(each, text) for text in said)]
    assert unsaid == []


def starts(words: str, text: str) -> bool:
    first, *rest = words.split("...")
    return text.startswith(first) and all(each.strip() in text for each in rest)
