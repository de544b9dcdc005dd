"""The examiner's rule for fm34, and the line that it blames."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    answering,
    compiled,
    defined,
    ended,
    modes,
    run,
    stack,
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import BeginWith
from strategy_clinic.examiner.rule import Runs, mode_rules
from strategy_clinic.observer.events import (
    Carries,
    ExceptionRaised,
    GradientComputed,
    LossTraced,
    ModelAnswered,
    ModelCalled,
    Operation,
    Outcome,
    Owner,
    RestoredBeforeBuild,
    Sample,
    StepEnded,
    StepsCounted,
    Use,
    VariableRead,
)

RAISED = ExceptionRaised(
    LINE, "ValueError", "ValueError: No gradients provided for any variable.", ()
)


def test_an_exception_is_named_by_triage():
    assert modes(run(RAISED, outcome=Outcome.RAISED)) == [("fm34", 7)]


def test_the_line_that_computed_the_gradient_is_blamed():
    gradients = GradientComputed(OTHER, 2, 2), GradientComputed(LINE, 0, 2)
    assert modes(run(*gradients, RAISED, outcome=Outcome.RAISED)) == [("fm34", 20)]


def test_the_loss_of_a_model_that_is_compiled(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def loss(labels, outputs):\n"
        "    answers = tf.round(outputs)\n"
        "    return labels - answers\n"
        "model.compile('sgd', loss=loss)\n"
        "model.fit(x, y)\n"
    )
    gradient = GradientComputed(stack(path, 5), 2, 2)
    own = compiled(stack(path, 4), defined(Use.LOSS, path, 1, "loss"))
    assert modes(run(own, gradient, RAISED, outcome=Outcome.RAISED)) == [("fm34", 2)]


@pytest.mark.parametrize("operation, line", [("round", 2), ("cast", 5), ("relu", 5)])
def test_the_operation_without_a_derivative_above_the_gradient(operation, line, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def step(x, y):\n"
        f"    outputs = tf.{operation}(model(x))\n"
        "    other = tf.argmax(outputs)\n"
        "    loss = mean(outputs, y)\n"
        "    share = loss / 2\n"
        "    grads = tape.gradient(share, weights)\n"
    )
    gradient = GradientComputed(stack(path, 6), 2, 2)
    assert modes(run(gradient, RAISED, outcome=Outcome.RAISED)) == [("fm34", line)]


# Variables that no gradient reaches

PARTLY = GradientComputed(LINE, missing=1, total=2, disconnected=(1,))


MADE_AGAIN = RestoredBeforeBuild("ck-1", (1,), "", LINE)
ONE, SIXTH = updated(gradients=1, trains=(2,)), updated(trains=(6,))


def trained(value, *events, update=ONE):
    """A run that trains variable 2 to this value, and gets no gradient for variable 1."""
    step = StepEnded(1, values({2: [value]}), (), (), ())
    made = [variable(1), variable(2), VariableRead(1)]
    return run(*made, PARTLY, update, step, *events)


def examined(first, again):
    return [(each.mode, each.line) for each in diagnose(Runs([first]), again).findings]


@pytest.mark.parametrize("called, line", [([2], 2), ([2, 5], 5), ([9], 5)])
def test_a_model_that_is_called_before_the_tape(tmp_path, called, line):
    """A call that the tape sees, or in another function, says nothing."""
    path = tmp_path / "train.py"
    path.write_text(
        "def step(x, y):\n    outputs = model(x)\n    errors = y - outputs\n"
        "    with tf.GradientTape() as tape:\n        loss = tf.reduce_sum(errors)\n"
        "    return tape.gradient(loss, model.weights)\n\ndef test(x):\n    return model(x)\n"
    )
    names = {2: "step", 5: "step", 9: "test"}
    calls = [ModelCalled(stack(path, n, function=names[n]), 8, 1, (1,)) for n in called]
    gradient = GradientComputed(stack(path, 6, function="step"), 2, 2)
    assert modes(run(*calls, gradient, RAISED, outcome=Outcome.RAISED)) == [("fm34", line)]


def test_a_variable_that_matters_and_gets_no_gradient():
    again = answering(BeginWith=trained(2.0), same=trained(1.0))
    assert examined(trained(1.0), again) == [("fm34", 7)]
    assert again.asked == [BeginWith(1, 0.5), None]


def test_an_optimizer_that_is_given_none():
    """Keras warns, and leaves it out."""
    update = replace(updated(gradients=2, trains=(1, 2)), missing=1)
    again = answering(BeginWith=trained(2.0, update=update), same=trained(1.0, update=update))
    assert examined(trained(1.0, update=update), again) == [("fm34", 7)]


def test_a_head_that_the_loss_does_not_use():
    """An optimizer that is given None keeps it among its variables: then it differs itself, and nothing else does."""
    update = replace(updated(gradients=2, trains=(1, 2)), missing=1)

    def headed(value):
        step = StepEnded(1, values({1: [value], 2: [1.0]}), (), (), ())
        return run(variable(1), variable(2, shape=(4,)), VariableRead(1), PARTLY, update, step)

    again = answering(BeginWith=headed(0.5), same=headed(0.1))
    assert examined(headed(0.1), again) == []
    assert again.asked == [BeginWith(1, 0.5)]


@pytest.mark.parametrize(
    "last, made_at, line",
    [
        ("model.fit(x, y)", 1, 1),
        ("model.fit(x, y)", None, 3),
        ("grads = tape.gradient(loss, weights)", 1, 3),
        ("model.fit(x, y)\nx = tf.round(x)", 1, 4),
    ],
    ids=["fit", "nobody knows", "a loop", "an operation without a derivative"],
)
def test_a_variable_that_fit_does_not_train_is_blamed_where_it_is_made(
    tmp_path, last, made_at, line
):
    path = tmp_path / "train.py"
    path.write_text(f"layer = Scaled()\nmodel = Sequential([layer])\n{last}\n")
    made = variable(1, location=stack(path, made_at) if made_at else ())
    at = replace(PARTLY, location=stack(path, 3))

    def fitted(value):
        step = StepEnded(1, values({2: [value]}), (), (), ())
        return run(made, variable(2), VariableRead(1), at, ONE, step)

    again = answering(BeginWith=fitted(2.0), same=fitted(1.0))
    assert examined(fitted(1.0), again) == [("fm34", line)]


OPTIMIZER = variable(3, maker=Owner.OPTIMIZER)
ASSIGNED = replace(PARTLY, total=1)
COPIED = GradientComputed(OTHER, 0, 1, connected=(2,))
COPY = variable(2), written(number=2, replicas=0)


def looping(answer, *events, times=2, **changed):
    """A run with an optimizer that it does not use: the answers of its model depend on variable 1, which gets no gradient."""
    made = [variable(1), OPTIMIZER, VariableRead(1), ASSIGNED, *events]
    return run(*made, *[ModelAnswered(LINE, Sample(0.0, (answer,)))] * times, **changed)


def without_optimizer(recording):
    return replace(recording, events=tuple(e for e in recording.events if e != OPTIMIZER))


@pytest.mark.parametrize("events", [[], [*COPY, COPIED]], ids=["none", "copies that are gone"])
def test_a_loop_that_makes_no_update(events):
    again = answering(BeginWith=looping(2.0, *events), same=looping(1.0, *events))
    assert examined(looping(1.0, *events), again) == [("fm34", 7)]


@pytest.mark.parametrize(
    "first",
    [
        looping(1.0, times=1),
        looping(1.0, updated(trains=(2,))),
        looping(1.0, variable(2), COPIED),
        looping(1.0, *COPY, COPIED, ended({2: [1.0]})),
        looping(1.0, outcome=Outcome.STOPPED),
        without_optimizer(looping(1.0)),
    ],
    ids=[
        "no loop",
        "an update",
        "another gradient",
        "a copy that is kept",
        "stopped",
        "no optimizer",
    ],
)
def test_a_gradient_that_a_program_may_only_look_at(first):
    again = answering(BeginWith=looping(2.0), same=first)
    assert examined(first, again) == []


def test_a_variable_that_does_not_matter():
    again = answering(BeginWith=trained(1.0))
    assert (examined(trained(1.0), again), again.asked) == ([], [BeginWith(1, 0.5)])


def test_kernels_are_tried_first():
    """A bias of another layer says less of whether its layer matters."""
    made = [variable(n, shape=(3,) if n < 3 else (3, 3)) for n in (1, 2, 3, 4, 5)]
    computed = replace(PARTLY, missing=5, total=6, disconnected=(1, 2, 3, 4, 5))
    read = [VariableRead(each.number) for each in made]
    first = run(*made, variable(6), *read, computed, replace(ONE, optimizer=SIXTH.optimizer))
    again = answering(BeginWith=first)
    assert examined(first, again) == []
    assert again.asked == [BeginWith(n, 0.5) for n in (3, 4, 5)]


def test_a_program_that_does_not_repeat_itself():
    again = answering(BeginWith=trained(2.0), same=trained(3.0))
    assert examined(trained(1.0), again) == []


@pytest.mark.parametrize(
    "first",
    [
        trained(1.0, written(number=1, replicas=0)),
        trained(1.0, updated(trains=(1,))),
        replace(trained(1.0), events=tuple(e for e in trained(1.0).events if e != VariableRead(1))),
        trained(1.0, update=updated(gradients=2, trains=(1, 2))),
        trained(1.0, GradientComputed(OTHER, 0, 1, connected=(1,))),
        trained(1.0, ended(restored_before_build=(MADE_AGAIN,))),
        run(variable(1), VariableRead(1), replace(PARTLY, location=()), ONE),
        run(variable(1, maker=Owner.METRIC), VariableRead(1), PARTLY, ONE),
    ],
    ids=[
        "written by hand",
        "trained elsewhere",
        "unread",
        "zeros instead of None",
        "a gradient elsewhere",
        "made again",
        "no line",
        "a metric",
    ],
)
def test_a_variable_that_is_not_tried(first):
    again = answering(BeginWith=first)
    assert "fm34" not in dict(examined(first, again))
    assert again.asked == []


@pytest.mark.parametrize(
    "stopped, expected, asked", [((), [("fm34", 2)], BeginWith(1, 0.5)), ((1,), [], None)]
)
def test_only_a_variable_that_leads_to_the_loss_through_stop_gradient_is_meant_to_stay(
    tmp_path, stopped, expected, asked
):
    """Not one whose program has the word in a function that nobody calls."""
    path = tmp_path / "train.py"
    path.write_text(
        "def frozen(x): return tf.stop_gradient(x)\ngradients = tape.gradient(loss, w)\n"
    )
    partly = replace(PARTLY, location=stack(path, 2), stopped=stopped)
    events = [partly if each == PARTLY else each for each in trained(1.0).events]
    again = answering(BeginWith=trained(2.0), same=trained(1.0))
    found = examined(replace(trained(1.0), events=tuple(events)), again)
    assert [mode for mode, _ in found] == [mode for mode, _ in expected]
    assert next(iter(again.asked), None) == asked


# Updates that change nothing

UPDATES = StepsCounted(8, 0, 8, 1, (), 0, None, (), None)
WITHOUT = replace(updated(gradients=3), missing=2)
STEP = StepEnded(1, values({1: [0.9]}), values({1: [1.0]}), (), ())


def test_updates_that_change_no_weight():
    assert modes(run(WITHOUT, UPDATES)) == [("fm34", 20)]


@pytest.mark.parametrize(
    "events",
    [
        [WITHOUT, STEP, UPDATES],
        [updated(gradients=3), UPDATES],
        [WITHOUT, replace(UPDATES, updates=1)],
        [replace(WITHOUT, location=()), UPDATES],
        [WITHOUT],
    ],
    ids=["a weight changes", "all gradients", "one update", "no line", "not counted"],
)
def test_updates_that_are_not_reported(events):
    assert modes(run(*events)) == []


def test_a_run_that_did_not_finish_may_have_changed_nothing():
    assert modes(run(WITHOUT, UPDATES, outcome=Outcome.KILLED)) == []


# Gradients that are stopped


def traced(*stops, behind=()):
    """What a loss on line 7 is computed from: on each of these lines gradients are stopped, and `behind` the first again."""
    lines = [*stops, *behind]
    operations = [
        Operation(0, "Mean", LINE, (*range(1, len(stops) + 1),), Carries.TOTAL, False, None)
    ]
    for number, line in enumerate(lines, 1):
        inputs = (len(stops) + 1,) if number == 1 and behind else ()
        at = stack("/program/loss.py", line)
        operations.append(
            Operation(number, "StopGradient", at, inputs, Carries.EXAMPLES, False, None)
        )
    return LossTraced(LINE, tuple(operations))


STOPPED = GradientComputed(LINE, 2, 2, disconnected=(1, 2), stopped=(1, 2))


@pytest.mark.parametrize(
    "loss, gradients, line",
    [
        (traced(31), STOPPED, 31),
        (traced(31, 31), STOPPED, 31),
        (traced(31, behind=(40,)), STOPPED, 31),
        (traced(31, 40), STOPPED, 7),
        (traced(), STOPPED, 7),
        (traced(31), replace(STOPPED, stopped=(1,)), 7),
        (replace(traced(31), location=OTHER), STOPPED, 7),
    ],
    ids=[
        "one",
        "one line",
        "behind another",
        "two lines",
        "none",
        "a variable that leads nowhere",
        "another loss",
    ],
)
def test_the_line_that_stops_all_gradients(loss, gradients, line):
    assert modes(run(loss, gradients, RAISED, outcome=Outcome.RAISED)) == [("fm34", line)]


@pytest.mark.parametrize(
    "made_again, expected", [((1,), ["fm35"]), ((), ["fm34"]), ((9,), ["fm34", "fm35"])]
)
def test_a_variable_that_was_made_again_after_a_restore(made_again, expected):
    """What gets no gradient is not used any more: that is fm35, and its fix mends both."""
    early = RestoredBeforeBuild("ck-1", made_again, "Found 1 object", OTHER)
    updates = [replace(updated(LINE), missing=1), StepsCounted(50, 0, 50, 1, (), 0, None, (), None)]
    recording = run(
        variable(1), variable(9), PARTLY, *updates, ended(restored_before_build=(early,))
    )
    assert [mode for mode, _ in modes(recording)] == expected


@pytest.mark.parametrize(
    "kind, other, line",
    [("Equal", "Round", 31), ("Equal", "Mul", 7), ("Mul", "Mul", 7)],
    ids=["no way", "another way", "no end"],
)
def test_the_line_of_an_operation_without_gradient(tmp_path, kind, other, line):
    path = tmp_path / "train.py"
    path.write_text("\n" * 40)
    here = stack(path, 7)
    examples = [
        Operation(n, each, stack(path, 31), (), Carries.EXAMPLES, False, None)
        for n, each in enumerate((kind, other), 1)
    ]
    loss = Operation(0, "Mean", here, (1, 2), Carries.TOTAL, False, None)
    nothing = GradientComputed(here, 2, 2, disconnected=(1, 2))
    recording = run(LossTraced(here, (loss, *examples)), nothing)
    assert mode_rules().blame["fm34"](recording, here)[0].line == line
