"""The examiner's rule for fm49: a loss of one number, by which the number of replicas is not divided."""

import functools

import pytest
from divergent_programs import FIT, NAMED, compiled, defined
from edited_programs import edited, examined
from recorded import LINE, settled, stack, trained
from strategy_clinic.examiner.findings import DIVERGES
from strategy_clinic.observer.events import Part, PartUsed
from strategy_clinic.observer.replacements import Replacement, last_line

SCALAR = PartUsed(LINE, Part.SCALAR_LOSS)
DIVIDED = (Replacement.DIVIDED_LOSS,)


def reported(answers, *events):
    diagnosis, asked = settled(trained(0.9, devices=1), trained(0.8, *events), answers)
    return [(each.mode, each.line) for each in diagnosis.findings], asked


def test_runs_that_agree_once_the_loss_is_divided():
    findings, asked = reported({DIVIDED: (0.7, 0.7)}, SCALAR)
    assert findings == [("fm49", 7)]
    assert (frozenset(DIVIDED), 0) in asked


def test_a_statement_of_several_lines_is_blamed_on_its_first(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("def loss(y, p):\n    return tf.reduce_mean(\n        tf.square(y - p))\n")
    scalar = PartUsed(stack(path, 3), Part.SCALAR_LOSS)
    assert reported({DIVIDED: (0.7, 0.7)}, scalar)[0] == [("fm49", 2)]


def test_keras_is_to_blame_and_the_program_is_told_what_to_return():
    runs = trained(0.9, devices=1), trained(0.8, SCALAR)
    (finding,) = settled(*runs, {DIVIDED: (0.7, 0.7)})[0].findings
    assert finding.by_framework and "has to return" in str(finding.message)


def test_a_loss_of_one_number_beside_random_numbers():
    drawn = PartUsed(LINE, Part.RANDOM_NUMBERS)
    both = {(*DIVIDED, Replacement.CONSTANT_NUMBERS): (0.7, 0.7)}
    assert reported(both, SCALAR, drawn)[0] == [("fm49", 7)]


def test_runs_that_differ_with_a_divided_loss_too():
    assert reported({DIVIDED: (0.7, 0.6)}, SCALAR)[0] == [(DIVERGES, 20)]


def test_a_divided_loss_that_ends_in_no_number():
    assert reported({DIVIDED: (float("nan"), float("nan"))}, SCALAR)[0] == [(DIVERGES, 20)]


@pytest.mark.parametrize("part", [Part.WHOLE_BATCH_LOSS, Part.CLIPPING, Part.MASK])
def test_other_parts_are_not_tried_with_a_divided_loss(part):
    findings, asked = reported({DIVIDED: (0.7, 0.7)}, PartUsed(LINE, part))
    assert findings == [(DIVERGES, 20)] and (frozenset(DIVIDED), 0) not in asked


def test_runs_that_agree_are_not_run_again():
    diagnosis, asked = settled(trained(0.9, devices=1), trained(0.9, SCALAR))
    assert (diagnosis.findings, asked) == ([], [])


# Where a loss returns its value


def scalar(labels, outputs):
    error = labels - outputs
    return error


class Callable:
    def __call__(self, labels, outputs):
        return labels


def test_the_last_line_of_a_function_is_blamed():
    first = scalar.__code__.co_firstlineno
    assert last_line(scalar).line == first + 2
    assert last_line(functools.partial(scalar, 1)) == last_line(scalar)
    assert last_line(Callable()).function == "__call__"
    assert last_line(max) is None


# Programs

MEAN = "lambda labels, outputs: tf.reduce_mean(tf.square(labels - outputs))"
CLASS = NAMED.replace(
    "def my_loss(", "class MyLoss(tf.keras.losses.Loss):\n    def call(self, "
).replace("    return tf", "        return tf")


@pytest.mark.replayed
@pytest.mark.parametrize(
    "edits, expected",
    [
        ([defined(NAMED), compiled("my_loss")], ["fm49"]),
        ([compiled(MEAN)], ["fm49"]),
        ([defined(CLASS), compiled("MyLoss()")], ["fm49"]),
        ([compiled(MEAN.replace("outputs))", "outputs), axis=-1)"))], []),
        ([compiled("tf.keras.losses.MeanSquaredError()")], []),
        ([defined(NAMED), compiled("'mse', metrics=[my_loss]")], []),
    ],
    ids=["function", "lambda", "class", "per example", "of Keras", "a metric"],
)
def test_programs(tmp_path, edits, expected):
    findings = examined(tmp_path, edited(FIT, edits)).findings
    assert [each.mode for each in findings] == expected
