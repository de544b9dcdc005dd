"""How triage reads words. Each law holds for the project, and each is broken on purpose below."""

import pytest
from conftest import forget
from law import all_tests_of, edit
from prose import sentences
from strategy_clinic.base import files
from strategy_clinic.triage import (
    classify,
    phrases,
    similarity,
    stored_index,
    wording_index,
    wordings,
)

MANY = 500  # sentences, at least, by which the laws judge
RARE = 200  # one of so many sentences may be likened to a mode
DESCRIBED = "helpers/strategy_clinic/triage/described.toml"
LEARNED_FILE = "helpers/strategy_clinic/triage/learned.json"
LEARNED = 100_000  # bytes, at most


def law_prose_fires_nothing() -> list[str]:
    """No wording of a mode stands in ordinary prose about Keras, and of 200 sentences at most one is claimed for a mode."""
    forget()
    texts = sentences()
    problems = [f"only {len(texts)} sentences"] if len(texts) < MANY else []
    for text in texts:
        problems += [
            f"{each.mode} says {each.says}: {text}" for each in standing(text) if each.mode
        ]
    claimed = [(classify.triage(text).mode, text) for text in texts if classify.triage(text).mode]
    return problems + (claimed if len(claimed) > len(texts) // RARE else [])


def standing(text: str) -> list:
    flat = phrases.flat(text)
    return [each for each in wording_index.everything().near(flat) if classify.said_in(each, flat)]


def law_described() -> list[str]:
    """What described.toml tells is of a mode or of none, says so once, and leads to where it stands."""
    forget()
    written, problems, seen = wordings.read_toml("described.toml"), [], {}
    for mode, facts in written.items():
        if mode != "none" and not facts.get("asks", "").endswith("?"):
            problems.append(f"{mode} asks no question")
        for tells in facts["tells"]:
            if seen.setdefault(tells, mode) != mode:
                problems.append(f"{mode} and {seen[tells]} tell the same: {tells}")
            if (first := nearest_of(tells, mode == "none")) != (None if mode == "none" else mode):
                problems.append(f"{tells!r} of {mode} leads to {first}")
    return problems


def law_ideas() -> list[str]:
    """Every idea of vocabulary.toml has phrases, none of which is empty."""
    forget()
    ideas = wordings.read_vocabulary()["ideas"]
    empty = [name for name, phrases in ideas.items() if not all(map(str.split, phrases.split(",")))]
    return [f"{name} has an empty phrase" for name in empty]


def law_learned() -> list[str]:
    """What is learned is of declared modes or of none, is small enough to be read, and has no more than two words in a row."""
    forget()
    learned, modes = wordings.learned(), {*wordings.declared_modes(), similarity.NO_MODE}
    of = {mode for speaks in learned.values() for mode in speaks}
    problems = [f"{mode} is no mode" for mode in of - modes]
    problems += [f"{mode} has learned nothing" for mode in modes - of]
    problems += [f"{trait!r} is no trait" for trait in learned if len(trait.split()) > 2]
    size = (files.package() / "triage" / "learned.json").stat().st_size
    return problems + ([f"{size} bytes are learned"] if size > LEARNED else [])


def law_index() -> list[str]:
    """The index that is kept is the one that the texts of all modes give."""
    forget()
    fresh = stored_index.index_file().read_text() == stored_index.index_text()
    return (
        []
        if fresh
        else ["index.json is of other texts; run: python -m strategy_clinic.triage.stored_index"]
    )


def nearest_of(text: str, none: bool):
    """The nearest mode; or none of them, where that may be."""
    near = similarity.likest(text, wording_index.everything().index)
    return next(each.mode for each in near if each.mode or none)


def a_common_word(root):
    """A wording that stands in ordinary prose."""
    path = root / "helpers" / "strategy_clinic" / "triage" / "wordings" / "fm24.toml"
    path.write_text(path.read_text() + "\n[[wording]]\nsays = 'of the layer'\nfrom = '1.0'\n")


def words_of_another(root):
    path = root / DESCRIBED
    tells = wordings.described()["fm37"]["tells"][0]
    path.write_text(
        path.read_text()
        .replace("[fm28]", f"[fm28]\ntells_ = '{tells}'", 1)
        .replace('    "np.save of model', f'    "{tells}",\n    "np.save of model', 1)
    )


def no_question(root):
    path = root / DESCRIBED
    path.write_text(path.read_text().replace("at once?", "at once", 1))


MUTATIONS = [
    (
        "law_ideas",
        edit("helpers/strategy_clinic/triage/vocabulary.toml", '"memory, oom,', '"memory, , oom,'),
    ),
    ("law_learned", edit(LEARNED_FILE, '"fm37"', '"fm98"')),
    ("law_learned", edit(LEARNED_FILE, '"~devices"', '"words of a report"')),
    (
        "law_index",
        edit("helpers/strategy_clinic/triage/index.json", '"~devices": [', '"~devices": [1, '),
    ),
    ("law_index", edit(DESCRIBED, "twice as large", "thrice as large")),
    ("law_prose_fires_nothing", a_common_word),
    ("law_described", words_of_another),
    ("law_described", no_question),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_an_index_of_other_texts_is_worked_out():
    """A description that was edited counts at once, whatever is kept."""
    told = similarity.all_texts(wordings.wordings())
    one = wordings.wordings()[:1]
    assert len(stored_index.index_for(wordings.wordings()).weights) == len(told)
    assert (
        stored_index.index_for(one).holders
        == similarity.index_of(similarity.all_texts(one)).holders
    )
    assert len(stored_index.index_for(one).weights) < len(told)


def test_letters_within_words_would_stand(monkeypatch):
    """What keeps prose silent: `output` holds no `tpu`, and would if letters were enough."""
    flat = [phrases.flat(each) for each in sentences() if "output" in each and "TPU" not in each]
    assert flat and not any(phrases.stands("tpu", each) for each in flat)
    monkeypatch.setattr(phrases, "is_whole", lambda *_: True)
    assert all(phrases.stands("tpu", each) for each in flat)


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
    assert bool(phrases.stands(words, phrases.flat(text))) == stands
