"""Recordings side by side: whether a program repeats itself, and where two runs differ first."""

import math
from dataclasses import replace

import pytest
from recorded import LINE, ended, run, stack, strategy, updated, values, variable
from strategy_clinic.examiner import divergence
from strategy_clinic.examiner.divergence import (
    distance,
    first_divergence,
    first_other_answer,
    is_deterministic,
    means_in,
    repeats,
    unstable_points,
    update_ratio,
)
from strategy_clinic.observer.events import ModelAnswered, Outcome, Sample, StepEnded


def trained(value, *events, **fields):
    """A run whose first step takes the one variable from 1 to this value."""
    step = StepEnded(1, values({1: [value]}), values({1: [1.0]}), (), ())
    return run(*events, variable(1), updated(), step, ended({1: [value]}), **fields)


def test_where_two_runs_differ():
    divergence = first_divergence(trained(0.9, devices=1), trained(0.8))
    assert (divergence.step, divergence.name) == (1, "v1")
    assert divergence.distance == pytest.approx(0.1 / 0.9)
    assert str(divergence) == "compared 1 and 2 devices: v1 differs in step 1, by 0.11"
    assert update_ratio(trained(0.9), trained(0.8)) == pytest.approx(2)


def test_a_run_with_the_batches_of_more_devices_is_said_to_be_one():
    plain = trained(0.9, devices=1)
    matched = replace(plain, plain=plain)
    words = str(first_divergence(matched, trained(0.8, strategy(2))))
    assert words.startswith("compared 1 and 2 devices with the batches of 2 replicas: ")


def test_runs_that_agree():
    assert first_divergence(trained(0.9), trained(0.9 + 1e-6)) is None
    assert repeats(trained(0.9), trained(0.9))


def test_runs_that_do_not_repeat_each_other():
    assert not repeats(trained(0.9), trained(0.8))
    assert not repeats(trained(0.9), trained(0.9, outcome=Outcome.RAISED))


def of_four(*values_after, outcome=Outcome.FINISHED):
    """A run that trains four variables by one step and then by another one."""
    made = [variable(number, location=stack("file.py", number)) for number in range(1, 5)]
    steps = [
        StepEnded(number, values({n: [v] for n, v in enumerate(after, 1)}), (), (), ())
        for number, after in enumerate(values_after, 1)
    ]
    return run(*made, updated(trains=(1, 2, 3, 4)), *steps, ended({}), outcome=outcome)


def test_what_does_not_repeat_itself_is_left_out_if_it_is_little():
    """What changes by rounding after the first step changes all others later."""
    one = of_four((1.0, 1.0, 1.0, 1.0), (2.0, 2.0, 2.0, 2.0))
    assert unstable_points(one, one) == frozenset()
    unstable = unstable_points(one, of_four((1.1, 1.0, 1.0, 1.0), (2.1, 2.002, 2.0001, 2.0)))
    assert sorted(stage for stage, _ in unstable) == [(1, 1), (1, 2), (1, 2)]
    met = of_four((1.1, 1.0, 1.0, 1.0), (2.0, 2.0, 2.0, 2.0))  # what has changed, by chance
    assert sorted(stage for stage, _ in unstable_points(one, met)) == [(1, 1), (1, 2)]
    # With half of them, it is no rounding.
    assert unstable_points(one, of_four((1.1, 1.1, 1.0, 1.0), (2.0, 2.0, 2.0, 2.0))) is None
    assert unstable_points(one, of_four((1.0,) * 4, outcome=Outcome.RAISED)) is None
    assert unstable_points(run(), run(outcome=Outcome.RAISED)) is None


def second_fold(after, kept):
    """A run that makes a model twice on one line, and trains the second; the first may have been deleted by then."""
    folds = [variable(number, location=stack("folds.py", 3)) for number in (1, 2)]
    entries = {**({1: [5.0]} if kept else {}), 2: [after]}
    step = StepEnded(1, values(entries), (), (), (), training=2)
    return run(*folds, updated(trains=(2,)), step, ended(entries))


def test_a_model_that_one_run_has_deleted_is_not_compared_with_the_next():
    assert first_divergence(second_fold(0.9, kept=True), second_fold(0.9, kept=False)) is None
    found = first_divergence(second_fold(0.9, kept=True), second_fold(0.8, kept=False))
    assert (found.name, found.training) == ("v2", 2)
    assert str(found).endswith("v2 differs in step 1 of training 2 or before, by 0.11")


def test_what_differs_only_at_the_end():
    one, other = (run(variable(1), updated(), ended({1: [value]})) for value in (0.9, 0.8))
    assert first_divergence(one, other).step == 0
    assert str(first_divergence(one, other)).startswith(
        "compared 2 and 2 devices: v1 differs after the first steps"
    )


def test_what_is_not_trained_may_differ_at_the_end():
    one, other = (run(variable(1), ended({1: [value]})) for value in (0.9, 0.8))
    assert first_divergence(one, other) is None


def test_variables_are_compared_by_where_they_were_made():
    elsewhere = run(variable(1, location=stack("train.py", 1)), updated(), ended({1: [0.8]}))
    assert first_divergence(run(variable(1), updated(), ended({1: [0.9]})), elsewhere) is None


def test_of_several_variables_the_first_that_was_made_is_told():
    """Not whichever a set names first, which would be another one in each process."""

    def several(update):
        after = {n: [1.0 - update] for n in range(1, 41)}
        made = [variable(n, location=stack("train.py", n)) for n in after]
        return run(*made, StepEnded(1, values(after), (), (), ()), ended(after))

    assert first_divergence(several(0.1), several(0.2)).name == "v1"


def test_sixteen_bits_agree_to_less():
    half = variable(9, dtype="bfloat16")
    assert first_divergence(trained(0.90), trained(0.89))
    assert first_divergence(trained(0.90, half), trained(0.89, half)) is None


@pytest.mark.parametrize(
    "one, other, apart",
    [
        ((1.0, 2.0), (1.0, 1.0), 0.5),
        ((1e-9,), (2e-9,), 1e-6),
        ((math.nan,), (math.nan,), 0.0),
        ((math.nan,), (1.0,), math.inf),
        ((1.0,), (1.0, 2.0), math.inf),
        ((), (), 0.0),
    ],
)
def test_the_distance_of_two_samples(one, other, apart):
    assert distance(Sample(0.0, one), Sample(0.0, other)) == pytest.approx(apart)


def answered(value, location=LINE):
    return ModelAnswered(location, Sample(0.0, (value,)))


def test_the_first_answer_that_differs():
    one, other = run(answered(1.0), answered(2.0)), run(answered(1.0), answered(3.0))
    assert first_other_answer(one, other) is one.events[1]
    assert not is_deterministic(one, other)
    assert is_deterministic(one, one)


def test_answers_on_other_lines_are_not_compared():
    one, other = run(answered(1.0)), run(answered(2.0, stack("train.py", 8)))
    assert first_other_answer(one, other) is None


@pytest.mark.parametrize(
    "slots, expected",
    [
        ([(0.1, -0.2) * 4], True),
        ([tuple(range(1, 9)), tuple(n * n / 10 for n in range(1, 9))], True),
        ([tuple(n * n / 10 for n in range(1, 9)), tuple(range(1, 9))], False),
        ([tuple(range(1, 9))], False),
        ([(2.0,), (4.0,)], False),
    ],
    ids=["signs", "squares beside it", "the squares", "alone", "one entry"],
)
def test_slots_with_means_of_gradients(slots, expected):
    """Means of gradients that all have one sign are known by the squares that are kept beside them."""
    assert (0 in means_in(dict(enumerate(slots)))) == expected


def test_slots_in_other_directions_are_not_compared(monkeypatch):
    """A large model has a thousand slots, and few pairs of them have nearly one direction."""
    compared = []
    monkeypatch.setattr(divergence, "cosine", lambda *pair: compared.append(pair) or 0.0)
    slots = {i: tuple(float(i == j) for j in range(30)) for i in range(30)}
    assert not means_in(slots)
    assert not compared
