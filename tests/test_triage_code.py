"""What the code of a report says of its mode."""

from error_samples import FIT
from strategy_clinic.triage import classify
from strategy_clinic.triage.code_patterns import modes_by_code
from strategy_clinic.triage.report_text import ReportText


def test_it_says_what_the_code_has():
    text = (
        "I made a second encoder from the first, and after training they differ. Why is that?\n\n"
        "    second = copy.deepcopy(first)\n"
    )
    found = classify.triage(text)
    assert found.candidates[0].mode == "fm14"
    assert found.candidates[0].because.startswith('its code has "deepcopy"')


def test_code_adds_to_a_description():
    description = "I train the two networks in turns, and the second one has not moved at all afterwards. Is that right?\n\n"
    with_code, without = (
        classify.triage(f"{description}second = copy.deepcopy(first)"),
        classify.triage(description),
    )
    score = {each.mode: each.score for each in without.candidates}
    assert with_code.candidates[0].mode == "fm14"
    assert with_code.candidates[0].score > score.get("fm14", 0) + 0.2


def test_code_of_frames_and_beside_an_error_says_nothing():
    assert modes_by_code(ReportText(f"{FIT}    second = copy.deepcopy(first)").code) == {}
    found = classify.triage("second = copy.deepcopy(first)\nKeyError: 'labels'")
    assert not any("its code has" in each.because for each in found.candidates)


def test_a_block_ends_where_it_is_indented_less():
    inside = "def call(self, x):\n    y = x\n\n    return layers.Dense(4)(y)"
    outside = "def call(self, x):\n    return x\n\ndense = layers.Dense(4)(y)"
    assert "fm12" in modes_by_code(inside) and "fm12" not in modes_by_code(outside)


def test_a_decorator_takes_its_function():
    below = "@tf.function\ndef f(x):\n    return np.random.normal()\n"
    after = "@tf.function\ndef f(x):\n    return x\n\ny = np.random.normal()\n"
    assert "fm07" in modes_by_code(below) and "fm07" not in modes_by_code(after)


def test_only_functions_that_replicas_run_are_steps():
    step = "def step(x):\n    return model.get_weights()\n\n"
    assert "fm01" in modes_by_code(step + "strategy.run(step)")
    assert "fm01" not in modes_by_code(step + "step(x)")
    assert "fm01" not in modes_by_code(step + "session.run(step)")
