"""What the code of a report says of its mode. The law on code.toml is broken on purpose below."""

import re

import pytest
from code_told import HEALTHY, PIECES
from conftest import forget
from errors import FIT
from law import all_tests_of, edit
from prose import sentences
from strategy_clinic.triage import classify, code_patterns, wordings

TABLE = "helpers/strategy_clinic/triage/code.toml"
TOLD = "My training is not what I expect it to be, why? This is the part of the program:\n\n"


def law_code() -> list[str]:
    """Every entry of code.toml is of a declared mode, and fits code of that mode; none fits healthy code, nor prose."""
    forget()
    problems = []
    for each in code_patterns.entries():
        if each["mode"] not in wordings.declared_modes():
            problems.append(f"{each['mode']} is no mode")
        if not any(
            code_patterns.had_by(each, piece) for mode, piece in PIECES if mode == each["mode"]
        ):
            problems.append(f"{each['has']} fits no code of {each['mode']}")
        for text in (*HEALTHY, *sentences()):
            if code_patterns.had_by(each, text):
                problems.append(f"{each['mode']} fits {code_patterns.had_by(each, text)}")
    return problems


MUTATIONS = [
    ("law_code", edit(TABLE, 'mode = "fm28"', 'mode = "fm98"')),
    ("law_code", edit(TABLE, "'clone_model('", "'clone_modell('")),
    ("law_code", edit(TABLE, r"has = '\bdeepcopy\b", r"has = '\bmodel\b")),
    ("law_code", edit(TABLE, "unless = '\\.run\\(|experimental_run", "unless = 'nothing")),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


@pytest.mark.parametrize(
    "mode, piece", PIECES, ids=[f"{mode} {piece[:30]!r}" for mode, piece in PIECES]
)
def test_code_leads_to_its_mode(mode, piece):
    assert mode in code_patterns.spoken_by(TOLD + piece)


def test_it_says_what_the_code_has():
    text = (
        "I made a second encoder from the first, and after training they differ. Why is that?\n\n"
        "    second = copy.deepcopy(first)\n"
    )
    found = classify.triage(text)
    assert found.mode == "fm14" and found.candidates[0].because.startswith(
        'its code has "deepcopy"'
    )


def test_code_adds_to_what_is_told():
    told = "I train the two networks in turns, and the second one has not moved at all afterwards. Is that right?\n\n"
    with_code, without = (
        classify.triage(f"{told}second = copy.deepcopy(first)"),
        classify.triage(told),
    )
    score = {each.mode: each.score for each in without.candidates}
    assert with_code.candidates[0].mode == "fm14"
    assert with_code.candidates[0].score > score.get("fm14", 0) + 0.2


def test_code_of_frames_and_beside_an_error_says_nothing():
    assert code_patterns.spoken_by(f"{FIT}    second = copy.deepcopy(first)") == {}
    found = classify.triage("second = copy.deepcopy(first)\nKeyError: 'labels'")
    assert not any("its code has" in each.because for each in found.candidates)


def test_a_block_ends_where_it_is_indented_less():
    inside = "def call(self, x):\n    y = x\n\n    return layers.Dense(4)(y)"
    outside = "def call(self, x):\n    return x\n\ndense = layers.Dense(4)(y)"
    assert "fm12" in code_patterns.spoken_by(inside) and "fm12" not in code_patterns.spoken_by(
        outside
    )


def test_a_decorator_takes_its_function():
    below = "@tf.function\ndef f(x):\n    return np.random.normal()\n"
    after = "@tf.function\ndef f(x):\n    return x\n\ny = np.random.normal()\n"
    assert "fm07" in code_patterns.spoken_by(below) and "fm07" not in code_patterns.spoken_by(after)


def test_only_functions_that_replicas_run_are_steps():
    step = "def step(x):\n    return model.get_weights()\n\n"
    assert "fm01" in code_patterns.spoken_by(step + "strategy.run(step)")
    assert "fm01" not in code_patterns.spoken_by(step + "step(x)")
    assert "fm01" not in code_patterns.spoken_by(step + "session.run(step)")


def test_what_is_cheap_to_ask_is_asked_of_every_entry():
    for each in code_patterns.entries():
        assert each["words"] and re.compile(each["has"]) and set(each) <= {
            "mode", "words", "has", "within", "beside", "unless"
        }  # fmt: skip
