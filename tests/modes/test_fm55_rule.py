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

STEP = """\
def step(inputs, labels, mask):
    with tf.GradientTape() as tape:
        errors = mask * tf.square(model(inputs) - labels)
        words = strategy.num_replicas_in_sync * tf.reduce_sum(mask)
        loss = tf.reduce_sum(errors) / words
    gradients = tape.gradient(loss, weights)
"""
DIVIDED = [
    (STEP, 4),
    (STEP.replace("/ words", "/ tf.reduce_sum(mask)"), 5),
    (STEP.replace("tf.reduce_sum(errors) / words", "tf.math.divide_no_nan(a, words)"), 4),
    (STEP.replace("tf.reduce_sum(mask)", "tf.math.count_nonzero(mask)"), 4),
    (STEP.replace("tf.reduce_sum(mask)", "tf.reduce_sum(mask, axis=[0, 1])"), 4),
    (STEP.replace("errors) / words", "errors)\n        loss /= words"), 4),
    (
        "def of(e, m):\n    return sum(e) / tf.reduce_sum(m)\n"
        + STEP.replace("tf.reduce_sum(errors) / words", "of(errors, mask)").replace(
            "tf.reduce_sum(mask)", "1"
        ),
        2,
    ),
]
OTHERS = {
    "a number": STEP.replace("/ words", "/ 16"),
    "counts of all replicas": STEP.replace(
        "tf.reduce_sum(mask)", 'replica.all_reduce("SUM", tf.reduce_sum(mask))'
    ),
    "examples of all replicas": STEP.replace(
        "tf.square", "tf.square(replica.all_gather(mask, 0)) + "
    ),
    "a sum for each example": STEP.replace("reduce_sum(mask)", "reduce_sum(mask, axis=1)"),
    "an axis by position": STEP.replace("reduce_sum(mask)", "reduce_sum(mask, 1)"),
    "a sum over gradients": STEP.replace("/ words", "/ 16")
    + "    seen = gradients / tf.reduce_sum(gradients)\n",
    "a mean": STEP.replace("tf.reduce_sum(errors) / words", "tf.reduce_mean(errors)"),
    "an axis of each example": STEP.replace("reduce_sum(mask)", "reduce_sum(mask, axis=[1, 2])"),
    "no step": "for batch in data:\n    train(batch)\n    total = seen / tf.reduce_sum(counts)\n\n\n\n",
}


@pytest.mark.parametrize("function, line", [("count_of", 6), ("step", 5)])
def test_a_function_that_only_counts_is_right_in_itself(function, line):
    gradient, step = stack("train.py", 7, function="step"), stack("train.py", 6, function="step")
    inside = stack("train.py", 2, function="count_of") if function == "count_of" else ()
    counted = *inside, *stack("train.py", 5, function="step")
    operations = [
        Operation(0, "RealDiv", step, (1, 2), Carries.TOTAL, False, None),
        Operation(1, "Sum", step, (3,), Carries.TOTAL, False, None),
        Operation(2, "Sum", counted, (3,), Carries.TOTAL, False, None),
        Operation(3, "Mul", step, (), Carries.EXAMPLES, False, None),
    ]
    recording = run(GradientComputed(gradient, 0, 1), LossTraced(gradient, tuple(operations)))
    assert rule.ratio_of_sums(recording)[0].line == line


JOINED = """\
def loss_of(a, b):
    center = tf.reduce_mean(
        a, axis=0)
    return tf.reduce_mean(tf.square(a - center - b), axis=1)


def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(loss_of(a, b)) / 2
    return tape.gradient(loss, w)


def clip(gradients):
    return gradients / tf.norm(gradients)
"""


@pytest.mark.parametrize(
    "old, new, line",
    [
        ("", "", 2),
        ("a, axis=0)", "a, 0, True)", 2),
        ("a - center", "tf.matmul(a, center, transpose_b=True)", 2),
        ("tf.reduce_mean(\n        a, axis=0)", "tf.matmul(a, b, transpose_b=True)", 2),
        ("axis=0", "axis=1", 9),
        ("axis=0", "keepdims=True", 4),
        ("center = tf.reduce_mean(\n        a, axis=0)", "center =\\\n        tf.zeros(())", 9),
        ("center = tf.reduce_mean(\n        a, axis=0)", "a = a\\\n        - tf.reduce_mean(a)", 2),
        ("tf.reduce_mean(\n        a, axis=0)", "tf.nn.softmax(\n        a, 0)", 2),
        ("tf.reduce_mean(\n        a, axis=0)", "(1 *\n        tf.norm(a))", 3),
        ("tf.reduce_mean(\n        a, axis=0)", "(1 *\n        tf.norm(a, axis=1))", 9),
        ("tf.reduce_mean(\n        a, axis=0)", "tf.sqrt(\n        tf.reduce_mean(b))", 2),
        ("tf.reduce_mean(\n        a, axis=0)", "tf.sqrt(\n        tf.reduce_mean(b, -1))", 9),
        ("tf.reduce_mean(\n        a, axis=0)", "(\n        tf.reduce_mean(b) ** 2)", 3),
        ("return tape.gradient(loss, w)", "seen = tape.gradient(loss, w)\n    tf.norm(seen)", 2),
        ("return tape.gradient(loss, w)", "seen = tape.gradient(loss, w)\n    clip(seen)", 2),
    ],
    ids=[
        "axis",
        "second argument",
        "the first of two lines",
        "product",
        "of each example",
        "subtracted",
        "a number",
        "subtracted on its line",
        "softmax",
        "norm",
        "norm of each example",
        "root",
        "root of each example",
        "power",
        "after the gradient",
        "in a function that is called after it",
    ],
)
def test_the_line_that_joins_examples(program, old, new, line):
    stack = program(JOINED.replace(old, new))
    functions = rule.functions_of_step(stack[0])
    found = rule.joining_line(functions, stack) or rule.blame.line_of_loss(stack)
    assert found[0].line == line


IN_FIT = """\
def masked(y_true, y_pred):
    mask = tf.cast(y_true > 0, tf.float32)
    words = tf.reduce_sum(mask)
    return errors / words
"""


@pytest.fixture
def program(tmp_path):
    def made(text=STEP):
        (tmp_path / "train.py").write_text(text)
        line = next((n for n, each in enumerate(text.splitlines(), 1) if "gradient(" in each), 1)
        return stack(tmp_path / "train.py", line)

    return made


def steps(update, location, devices=2, batch=8, number=1, **fields):
    """A run whose step of this number changes the one variable by these amounts."""
    after = [1.0 - each for each in update]
    changed = StepEnded(number, values({1: after}), values({1: [1.0, 1.0, 1.0]}), (), ())
    same = StepEnded(1, values({1: [1.0, 1.0, 1.0]}), values({1: [1.0, 1.0, 1.0]}), (), ())
    taken = BatchTaken(LINE, (batch // devices,) * devices)
    gradient = GradientComputed(location, 0, 1)
    events = [strategy(devices), variable(1), taken, gradient, updated(trains=(1,))]
    events += [changed] if number == 1 else [same, changed]
    role = Role.WATCHED if devices > 1 else Role.COMPARED
    return run(*events, ended({1: after}), devices=devices, **{"role": role} | fields)


ONE, OTHER = (0.24, 0.08, 0.08), (0.45, 0.05, 0.05)


def judged(one, other, answer=None):
    found = diagnose(Runs([other, one]), answer).findings
    return [(each.mode, each.line) for each in found if each.mode != "diverges"]


COMPARED = """\
def scores(a, b):
    return tf.matmul(a, b, transpose_b=True)


def loss_of(a, b):
    logits = scores(a, b)
    return cross_entropy(tf.range(len(a)), logits)


def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loss_of(a, b)) / 8
    return tape.gradient(loss, weights)
"""
PART = (0.1, 0.3, 0.2)  # the update by one part of the batch


@pytest.mark.parametrize(
    "text, alone, of_both, expected",
    [
        (COMPARED, PART, PART, [("fm55", 6)]),
        (COMPARED, PART, (0.2, 0.6, 0.4), [("fm55", 6)]),
        (
            COMPARED.replace("scores(a, b)\n    return c", "a @ b.T\n    return c"),
            PART,
            PART,
            [("fm55", 6)],
        ),
        (COMPARED.replace("b, transpose_b=True", "tf.transpose(b)"), PART, PART, [("fm55", 6)]),
        (COMPARED, PART, (0.3, 0.1, 0.2), []),
        (COMPARED.replace("b, transpose_b=True", "weights"), PART, PART, []),
        (COMPARED.replace("b, transpose_b=True", "b.values"), PART, PART, []),
        (COMPARED, None, PART, []),
    ],
    ids=[
        "same",
        "added up",
        "operator",
        "transposed",
        "otherwise",
        "no product",
        "no transpose",
        "fails",
    ],
)
def test_a_loss_that_compares_examples(program, text, alone, of_both, expected):
    at = program(text)
    one, other = steps(ONE, at, 1), steps(OTHER, at)

    def answer(follow_up):
        first = follow_up.recording
        if Replacement.ONE_PART not in getattr(follow_up.change, "replacements", ()):
            return first
        update = alone if first.devices == 1 else of_both
        outcome = Outcome.FINISHED if update else Outcome.RAISED
        return steps(update or PART, at, first.devices, role=Role.CHANGED, outcome=outcome)

    diagnosis = diagnose(Runs([other, one], [first_divergence(one, other)]), answer)
    found = [(each.mode, each.line) for each in diagnosis.findings if each.mode == "fm55"]
    assert found == expected


def test_an_update_that_has_only_another_size_is_no_comparison_of_examples(program):
    at = program(COMPARED)
    one, other = steps(ONE, at, 1), steps([2 * each for each in ONE], at)
    asked = []
    diagnose(
        Runs([other, one], [first_divergence(one, other)]),
        lambda each: asked.append(each) or each.recording,
    )
    assert "with one part of the batch for each replica" not in {each.words for each in asked}


@pytest.mark.parametrize("text, line", DIVIDED)
def test_a_division_by_a_sum_of_the_part(program, text, line):
    at = program(text)
    assert judged(steps(ONE, at, 1), steps(OTHER, at)) == [("fm55", line)]


def test_a_loss_that_was_given_to_compile(program):
    at = program("model.fit(data)\n\n\n" + IN_FIT)
    own = PartUsed((at[0]._replace(line=7),), Part.OWN_LOSS)
    one, other = (replace(each, events=(*each.events, own)) for each in (
        steps(ONE, at, 1), steps(OTHER, at)
    ))  # fmt: skip
    assert judged(one, other) == [("fm55", 6)]
    program("model.fit(data)\n\n\n" + IN_FIT.replace("(mask)", "(class_weights)"))
    assert judged(one, other) == []
    assert judged(steps(ONE, at, 1), steps(OTHER, at)) == []


def test_what_is_said_of_it(program):
    at = program()
    (finding,) = diagnose(Runs([steps(OTHER, at, 4), steps(ONE, at, 1)])).findings
    assert str(finding.message).endswith(
        "the first update on 4 devices differs from that on 1 device"
    )
    assert finding.devices == (1, 4)


@pytest.mark.parametrize("name", OTHERS)
def test_another_loss(program, name):
    at = program(OTHERS[name])
    assert judged(steps(ONE, at, 1), steps(OTHER, at)) == []


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
def test_runs_that_do_not_differ_at_first(program, update, fields):
    at = program()
    number = fields.get("number", 1)
    assert judged(steps(ONE, at, 1, number=number), steps(update, at, **fields)) == []


@pytest.mark.parametrize(
    "part, replacement",
    [(Part.RANDOM_NUMBERS, "constant_numbers"), (Part.CLIPPING, "no_own_clipping")],
)
@pytest.mark.parametrize("update, expected", [(OTHER, [("fm55", 4)]), (ONE, [])])
def test_what_makes_runs_differ_too_is_not_taken_for_it(
    program, update, expected, part, replacement
):
    at = program()
    one, other = steps(ONE, at, 1), steps(OTHER, at)
    used = PartUsed(LINE, part)
    one, other = (replace(each, events=(*each.events, used)) for each in (one, other))
    answers = {id(one): one, id(other): steps(update, at)}
    asked = []

    def answer(follow_up):
        asked.append(follow_up)
        return answers[id(follow_up.recording)]

    assert judged(one, other, answer)[:1] == expected
    assert judged(one, other) == []
    assert replacement in str(asked[0].change)
