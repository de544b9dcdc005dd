"""What TensorFlow and Keras raise and warn in the modules that the modes touch: each is a mode's, or judged to be none."""

from conftest import forget
from law import all_tests_of, edit
from raised import judged, messages, none
from strategy_clinic.triage import classify, phrases, wording_index

MANY = 200  # messages, at least, that are judged
WORDS = "helpers/strategy_clinic/triage/wordings"


def law_every_message_is_judged() -> list[str]:
    """A message that no wording knows stands in the list of those that are none."""
    forget()
    problems = [] if len(messages()) > MANY else [f"only {len(messages())} messages"]
    return problems + [
        f"{module}: {texts[0][:120]}"
        for module, texts in messages()
        if not (is_none(texts) or any(map(is_worded, texts)))
    ]


def law_what_is_none_is_not_claimed() -> list[str]:
    """No message that is judged to be none is likened to a mode."""
    forget()
    return [
        f"{module}: {text[:120]} is claimed for {mode}"
        for module, texts in messages()
        if is_none(texts)
        for text in texts[:1]
        if (found := classify.triage(text)) and not found.known and (mode := found.mode)
    ]


def is_worded(text: str) -> bool:
    flat = phrases.flat(text)
    return any(classify.said_in(each, flat) for each in wording_index.everything().near(flat))


def is_none(texts: tuple[str, ...]) -> bool:
    return any(judged().match(text.split(": ", 1)[1]) for text in texts)


def words_of_a_stranger(root):
    """A mode is described by what TensorFlow says of something else."""
    path = root / "helpers" / "strategy_clinic" / "triage" / "described.toml"
    tells = "".join(
        f'    "Some requested devices in tf.distribute.Strategy are not visible to TensorFlow {each}",\n'
        for each in ("here", "there", "now")
    )
    path.write_text(path.read_text().replace("tells = [\n", f"tells = [\n{tells}", 1))


MUTATIONS = [
    (
        "law_every_message_is_judged",
        edit(f"{WORDS}/fm14.toml", "Inconsistent references when", "Other references when"),
    ),
    ("law_what_is_none_is_not_claimed", words_of_a_stranger),
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
