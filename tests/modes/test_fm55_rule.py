"""The examiner's rule for fm55: a loss that divides by a sum over the part of a replica."""

from dataclasses import replace
from importlib import import_module

import pytest
from recorded import LINE, ended, run, stack, strategy, updated, values, variable
from strategy_clinic.examiner.divergence import first_divergence
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    BatchTaken,
    Carries,
    GradientComputed,
    LossTraced,
    Operation,
    Outcome,
    Part,
    PartUsed,
    StepEnded,
)
from strategy_clinic.observer.replacements import Replacement

rule = import_module("strategy_clinic.modes.fm55_loss_no_mean_of_examples.rule")

GRADIENT, LOSS = stack("train.py", 7, function="step"), stack("train.py", 6, function="step")
COUNTED = stack("train.py", 4, function="step")


def traced(*operations):
    """A loss that each of these operations leads to, by what comes after it."""
    told = [
        Operation(number, kind, location, inputs, carries, False, None)
        for number, (kind, location, inputs, carries) in enumerate(operations)
    ]
    return LossTraced(GRADIENT, tuple(told))


EXAMPLES = ("Mul", LOSS, (), Carries.EXAMPLES)
DIVIDED = traced(
    ("RealDiv", LOSS, (1, 2), Carries.TOTAL),
    ("Sum", LOSS, (3,), Carries.TOTAL),
    ("Sum", COUNTED, (3,), Carries.TOTAL),
    EXAMPLES,
)
MEAN = traced(("Mean", LOSS, (1,), Carries.TOTAL), EXAMPLES)
COMPARED = traced(
    ("Sum", LOSS, (1,), Carries.TOTAL),
    ("MatMul", COUNTED, (2, 2), Carries.EXAMPLES),
    EXAMPLES,
)


@pytest.mark.parametrize("function, line", [("count_of", 6), ("step", 5)])
def test_a_function_that_only_counts_is_right_in_itself(function, line):
    inside = stack("train.py", 2, function="count_of") if function == "count_of" else ()
    counted = *inside, *stack("train.py", 5, function="step")
    operations = list(DIVIDED.operations)
    operations[2] = replace(operations[2], location=counted)
    loss = LossTraced(GRADIENT, tuple(operations))
    assert rule.ratio_of_sums(run(GradientComputed(GRADIENT, 0, 1), loss))[0].line == line


def steps(update, loss=DIVIDED, devices=2, batch=8, number=1, **fields):
    """A run whose step of this number changes the one variable by these amounts."""
    after = [1.0 - each for each in update]
    changed = StepEnded(number, values({1: after}), values({1: [1.0, 1.0, 1.0]}), (), ())
    same = StepEnded(1, values({1: [1.0, 1.0, 1.0]}), values({1: [1.0, 1.0, 1.0]}), (), ())
    taken = BatchTaken(LINE, (batch // devices,) * devices)
    gradient = GradientComputed(GRADIENT, 0, 1)
    events = [strategy(devices), variable(1), taken, gradient, loss, updated(trains=(1,))]
    events += [changed] if number == 1 else [same, changed]
    role = Role.WATCHED if devices > 1 else Role.COMPARED
    return run(*events, ended({1: after}), devices=devices, **{"role": role} | fields)


ONE, OTHER = (0.24, 0.08, 0.08), (0.45, 0.05, 0.05)


def judged(one, other, answer=None):
    found = diagnose(Runs([other, one]), answer).findings
    return [(each.mode, each.line) for each in found if each.mode != "diverges"]


PART = (0.1, 0.3, 0.2)  # the update by one part of the batch


@pytest.mark.parametrize(
    "loss, alone, of_both, expected",
    [
        (COMPARED, PART, PART, [("fm55", 4)]),
        (COMPARED, PART, (0.2, 0.6, 0.4), [("fm55", 4)]),
        (COMPARED, PART, (0.3, 0.1, 0.2), []),
        (MEAN, PART, PART, []),
        (COMPARED, None, PART, []),
    ],
    ids=["same", "added up", "otherwise", "no product", "fails"],
)
def test_a_loss_that_compares_examples(loss, alone, of_both, expected):
    one, other = steps(ONE, loss, 1), steps(OTHER, loss)

    def answer(follow_up):
        first = follow_up.recording
        if Replacement.ONE_PART not in getattr(follow_up.change, "replacements", ()):
            return first
        update = alone if first.devices == 1 else of_both
        outcome = Outcome.FINISHED if update else Outcome.RAISED
        return steps(update or PART, loss, first.devices, role=Role.CHANGED, outcome=outcome)

    diagnosis = diagnose(Runs([other, one], [first_divergence(one, other)]), answer)
    found = [(each.mode, each.line) for each in diagnosis.findings if each.mode == "fm55"]
    assert found == expected


def test_an_update_that_has_only_another_size_is_no_comparison_of_examples():
    one, other = steps(ONE, COMPARED, 1), steps([2 * each for each in ONE], COMPARED)
    asked = []
    diagnose(
        Runs([other, one], [first_divergence(one, other)]),
        lambda each: asked.append(each) or each.recording,
    )
    assert "with one part of the batch for each replica" not in {each.words for each in asked}


@pytest.mark.parametrize("loss, expected", [(DIVIDED, [("fm55", 4)]), (MEAN, [])])
def test_a_division_by_a_sum_of_the_part(loss, expected):
    assert judged(steps(ONE, loss, 1), steps(OTHER, loss)) == expected


@pytest.mark.parametrize("loss, line", [(DIVIDED, 4), (MEAN, 3)])
def test_the_line_of_a_loss_that_is_given_to_compile(loss, line):
    used = PartUsed(stack("loss.py", 3), Part.OWN_LOSS)
    one, other = (steps(update, loss, n) for update, n in ((ONE, 1), (OTHER, 2)))
    divergence = first_divergence(one, replace(other, events=(*other.events, used)))
    assert rule.line_of_own_loss(divergence)[0].line == line


@pytest.mark.parametrize(
    "line, loss, part, suspected",
    [
        ("model.fit(x, y)", COMPARED, None, True),
        ("model.fit(x, y)", MEAN, Part.OWN_LOSS, True),
        ("model.fit(x, y)", MEAN, None, False),
        ("tape.gradient(loss, weights)", COMPARED, None, False),
    ],
    ids=["`add_loss` of a layer", "an own loss", "a mean", "a loop"],
)
def test_what_joins_examples_in_fit(tmp_path, line, loss, part, suspected):
    """The last one is that of another suspect."""
    path = tmp_path / "train.py"
    path.write_text("\n" * 6 + line)
    at = stack(path, 7)
    used = [PartUsed(LINE, part)] if part else []
    events = [GradientComputed(at, 0, 1), replace(loss, location=at), *used]
    one = steps(ONE, loss, 1)
    divergence = first_divergence(one, steps(OTHER, loss))
    divergence = replace(divergence, other=run(*events))
    assert rule.combines_in_fit.applies(divergence) == suspected


def test_what_is_said_of_it():
    (finding,) = diagnose(Runs([steps(OTHER, devices=4), steps(ONE, devices=1)])).findings
    assert str(finding.message).endswith(
        "the first update on 4 devices differs from that on 1 device"
    )
    assert finding.devices == (1, 4)


@pytest.mark.parametrize(
    "update, fields",
    [
        (ONE, {}),
        (OTHER, {"batch": 16}),
        (OTHER, {"number": 2}),
        (OTHER, {"outcome": Outcome.KILLED, "role": Role.STOPPED}),
    ],
    ids=["the same", "another batch", "a later step", "a run that was stopped"],
)
def test_runs_that_do_not_differ_at_first(update, fields):
    number = fields.get("number", 1)
    assert judged(steps(ONE, devices=1, number=number), steps(update, **fields)) == []


@pytest.mark.parametrize(
    "nudged, expected",
    [(OTHER, [("fm55", 4)]), (ONE, []), (None, [])],
    ids=["same", "other", "none"],
)
def test_a_later_step_in_which_the_last_digits_change_nothing(nudged, expected):
    one, other = steps(ONE, devices=1, number=2), steps(OTHER, number=2)

    def answer(follow_up):
        return nudged and steps(nudged, number=2)

    assert judged(one, other, answer) == expected


@pytest.mark.parametrize("part, words", [(Part.SCALAR_LOSS, "its share of the loss"), (None, "")])
def test_the_fix_of_a_loss_that_keras_adds_up(part, words):
    one, other = steps(ONE, devices=1), steps(OTHER)
    used = (PartUsed(LINE, part),) if part else ()
    other = replace(other, events=(*other.events, *used))
    (finding,) = [each for each in diagnose(Runs([other, one])).findings if each.mode == "fm55"]
    assert words in finding.fix and bool(words) == bool(finding.fix)


@pytest.mark.parametrize(
    "part, replacement",
    [(Part.RANDOM_NUMBERS, "constant_numbers"), (Part.CLIPPING, "no_own_clipping")],
)
@pytest.mark.parametrize("update, expected", [(OTHER, [("fm55", 4)]), (ONE, [])])
def test_what_makes_runs_differ_too_is_not_taken_for_it(update, expected, part, replacement):
    one, other = steps(ONE, devices=1), steps(OTHER)
    used = PartUsed(LINE, part)
    one, other = (replace(each, events=(*each.events, used)) for each in (one, other))
    answers = {id(one): one, id(other): steps(update)}
    asked = []

    def answer(follow_up):
        asked.append(follow_up)
        return answers[id(follow_up.recording)]

    assert judged(one, other, answer)[:1] == expected
    assert judged(one, other) == []
    assert replacement in str(asked[0].change)


def test_a_product_of_the_examples_of_all_replicas_joins_nothing_of_a_part():
    product = COMPARED.operations[1]
    whole = (COMPARED.operations[0], replace(product, whole=True), COMPARED.operations[2])
    for operations, line in ((COMPARED.operations, 4), (whole, None)):
        loss = LossTraced(GRADIENT, operations)
        found = rule.joined_examples(run(GradientComputed(GRADIENT, 0, 1), loss))
        assert (found[0].line if found else None) == line


def test_a_line_that_reads_weights_multiplies_examples_where_these_are_not_reduced():
    read = ("ReadVariableOp", COUNTED, (), Carries.WEIGHTS)
    product = ("MatMul", COUNTED, (), Carries.EXAMPLES)
    scaled = traced(
        ("Sum", LOSS, (1,), Carries.TOTAL), ("Mul", LOSS, (2, 3), Carries.EXAMPLES), product, read
    )
    dense = traced(("Sum", LOSS, (1, 2), Carries.TOTAL), product, read)
    for loss, line in ((scaled, 4), (dense, None)):
        found = rule.joined_examples(run(GradientComputed(GRADIENT, 0, 1), loss))
        assert (found[0].line if found else None) == line


PASSED_ON = """\
def everyone(keys):
    return keys, 0
def contrast(queries, keys):
    pool, ids = queries, keys
    own = matmul(queries, pool)
    others, first = everyone(keys)
    return matmul(own, others)
def compared(one, two):
    other = normalized(two)
    return matmul(one, other)
def learn(batch):
    x, y = batch, 1
    losses = compared(x, y)
    return tape.gradient(losses, weights)
"""


@pytest.mark.parametrize(
    "line, blamed",
    [(5, 4), (7, 2), (10, 10), (13, 13)],
    ids=["another name", "returned", "computed", "where gradients are computed"],
)
def test_the_line_that_passes_on_what_a_replica_has(tmp_path, line, blamed):
    path = tmp_path / "loss.py"
    path.write_text(PASSED_ON)
    assert rule.from_copy(stack(path, line))[0].line == blamed


@pytest.mark.parametrize("kind, line", [("Sum", 6), ("Max", 7)])
def test_the_line_of_a_loss_that_joins_nothing_is_where_examples_are_reduced(kind, line):
    loss = traced((kind, stack("train.py", 7, function="loss"), (1,), Carries.TOTAL), EXAMPLES)
    assert rule.reduced_examples(run(GradientComputed(GRADIENT, 0, 1), loss))[0].line == line
