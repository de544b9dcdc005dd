"""The words by which triage knows the modes. Each law holds for the project, and each is broken on purpose below."""

import re
from collections.abc import Iterator

import pytest
from code_samples import CORRECT, PIECES
from conftest import changed, forget
from keras_prose import sentences
from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.triage import (
    classify,
    code_patterns,
    phrases,
    report_text,
    similarity,
    wordings,
)

MANY = 500  # sentences, at least, by which the laws judge


def law_prose_has_no_wording() -> list[str]:
    """No wording of a mode stands in ordinary prose about Keras."""
    forget()
    texts = [report_text.flat(text) for text in sentences()]
    problems = [f"only {len(texts)} sentences"] if len(texts) < MANY else []
    everything = "\n".join(texts)
    return problems + [
        f"{wording.mode} says {wording.says}: {text}"
        for wording in wordings.wordings()
        if wording.mode and may_stand_in(everything, wording)
        for text in texts
        if classify.matched(wording, text)
    ]


def may_stand_in(text: str, wording: wordings.Wording) -> bool:
    """Whether a text has the letters with which a wording begins: cheaper than to match it against every sentence."""
    begins = (pieces[0][: phrases.STUB] for pieces in phrases.readings(wording.says[0]))
    return bool(wording.symptom) or any(begin in text for begin in begins)


def law_words() -> list[str]:
    """A file of words is of a mode and asks a question, and no other has its descriptions."""
    forget()
    problems, owners = [], {}
    for mode in wordings.words_files():
        if mode and mode not in wordings.declared_modes():
            problems.append(f"{mode} is not a mode")
    for mode, words in wordings.mode_words().items():
        if mode and not words.question.endswith("?"):
            problems.append(f"{mode} asks no question")
        for text in words.descriptions:
            if owners.setdefault(text, mode) != mode:
                problems.append(f"{mode} and {owners[text]} have the same description: {text}")
    return problems


def law_descriptions() -> Iterator[str]:
    """Each description is nearest to its mode."""
    forget()
    index = similarity.index_of(wordings.wordings())
    for mode, words in wordings.mode_words().items():
        for text in words.descriptions:
            near = similarity.nearest_modes(text, index)
            nearest = next(each.id for each in near if each.id or mode is None)
            if nearest != mode:
                yield f"{text!r} of {mode} leads to {nearest}"


def law_ideas() -> list[str]:
    """Every idea of vocabulary.toml has phrases, none of which is empty."""
    forget()
    ideas = wordings.read_vocabulary()["ideas"]
    empty = [name for name, phrases in ideas.items() if not all(map(str.split, phrases.split(",")))]
    return [f"{name} has an empty phrase" for name in empty]


def law_code() -> list[str]:
    """Every pattern of code fits code of its mode, and neither correct code nor prose; what is cheap to check comes first."""
    forget()
    problems = []
    for mode, words in wordings.mode_words().items():
        pieces = [piece for owner, piece in PIECES if owner == mode]
        for pattern in words.code:
            if not pattern.words or not re.compile(pattern.has):
                problems.append(f"{pattern.has} of {mode} has no words")
            if not any(code_patterns.match(pattern, piece) for piece in pieces):
                problems.append(f"{pattern.has} fits no code of {mode}")
            problems += [
                f"{pattern.has} of {mode} fits {found}"
                for text in (*CORRECT, *sentences())
                if (found := code_patterns.match(pattern, text))
            ]
    return problems


def law_engine_names_no_mode() -> list[str]:
    """What triage knows of one mode is in the folder of the mode, and not in the modules of triage."""
    return [
        f"{path.name} names {mode}"
        for path in sorted((files.package() / "triage").glob("*.py"))
        for mode in re.findall(r"\bfm\d\d", path.read_text())
    ]


def words_of(mode: str):
    return wordings.words_files()[mode]


def in_words_of(mode: str, old: str, new: str):
    """A mutation that changes one place in the words of a mode."""

    def mutation(root):
        changed(words_of(mode), old, new, 1)

    mutation.__name__ = f"{mode}: {old.strip()[:30]} -> {new.strip()[:30]}"
    return mutation


def a_common_wording(root):
    path = words_of("fm24")
    path.write_text(path.read_text() + "\n[[wording]]\nsays = 'of the layer'\nfrom = '1.0'\n")


def a_description_of_another(root):
    text = wordings.mode_words()["fm37"].descriptions[0]
    changed(words_of("fm28"), "descriptions = [\n", f"descriptions = [\n    '{text}',\n", 1)


def words_of_no_mode(root):
    path = words_of("fm05").parents[1] / "fm99_all_is_lost" / "words.toml"
    path.parent.mkdir()
    path.write_text('[[wording]]\nsays = "all is lost"\nfrom = "1.0"\n')


MUTATIONS = [
    (
        "law_engine_names_no_mode",
        edit("helpers/strategy_clinic/triage/classify.py", "hints = {", 'hints = {"fm05"} | {'),
    ),
    (
        "law_ideas",
        edit("helpers/strategy_clinic/triage/vocabulary.toml", '"memory, oom,', '"memory, , oom,'),
    ),
    ("law_prose_has_no_wording", a_common_wording),
    ("law_descriptions", a_description_of_another),
    ("law_words", a_description_of_another),
    ("law_words", words_of_no_mode),
    ("law_words", in_words_of("fm37", '?"', '"')),
    ("law_code", in_words_of("fm14", "'clone_model('", "'clone_modell('")),
    ("law_code", in_words_of("fm14", r"has = '\bdeepcopy\b", r"has = '\bmodel\b")),
    ("law_code", in_words_of("fm31", "unless = '\\.run\\(|experimental_run", "unless = 'nothing")),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_letters_within_words_would_stand(monkeypatch):
    """What keeps prose silent: `output` holds no `tpu`, and would if letters were enough."""
    flat = [
        report_text.flat(each) for each in sentences() if "output" in each and "TPU" not in each
    ]
    assert flat and not any(phrases.matched("tpu", each) for each in flat)
    monkeypatch.setattr(phrases, "is_whole", lambda *_: True)
    assert all(phrases.matched("tpu", each) for each in flat)


@pytest.mark.parametrize(
    "words, text, stands",
    [
        ("retrain", "I load a pretrained model", False),
        ("tpu", "the output of the layer", False),
        ("drop", "a Dropout layer, dropout=0.5", False),
        ("scope", "a telescope", False),
        ("load", "loaded, and loading again", True),
        ("gpu", "two GPUs", True),
        ("strategy", "tf.distribute.MirroredStrategy()", True),
        ("strategy", "TPUStrategy", True),
        ("tpu", "TPUStrategy on tpu_traced", True),
        ("weights", "model.load_weights(path)", True),
        ("weight", "weightless", False),
        ("gpu", "device GPU:0, gpu0", True),
        ("batch ... gpus", "minibatch of two gpus", False),
        ("batch ... gpus", "one batch on two gpus", True),
    ],
)
def test_a_phrase_is_matched_by_words(words, text, stands):
    assert bool(phrases.matched(words, report_text.flat(text))) == stands
