"""The line that the examiner blames for fm03."""

import pytest
from recorded import LINE, modes, run, stack, strategy, variable
from strategy_clinic.observer.events import ExceptionRaised, ModelCompiled, Outcome, Owner

TEXT = 'ValueError: Need to be inside "with strategy.scope()" for <MirroredStrategy object at 0x7f>'
TRAIN = "/program/train.py"


def test_a_model_made_before_the_scope_is_blamed_on_the_function_that_trains_it():
    module = stack(TRAIN, 30, function="<module>")
    made = (*stack(TRAIN, 3, function="make"), *stack(TRAIN, 12), *module)
    raised = ExceptionRaised((*stack(TRAIN, 14), *module), "ValueError", TEXT, ())
    events = [
        strategy(location=stack(TRAIN, 2, function="<module>")),
        variable(1, location=made),
        raised,
    ]
    assert modes(run(*events, outcome=Outcome.RAISED)) == [("fm03", 12)]


@pytest.mark.parametrize(
    "made", [{"maker": Owner.USER}, {"location": ()}], ids=["not a layer's", "no line"]
)
def test_a_variable_that_says_nothing_of_a_model(made):
    raised = ExceptionRaised(stack(TRAIN, 14), "ValueError", TEXT, ())
    events = strategy(location=LINE), variable(1, **made), raised
    assert modes(run(*events, outcome=Outcome.RAISED)) == [("fm03", 14)]


def test_a_model_whose_variables_are_distributed_is_not_blamed():
    copies = variable(1, copies=2, parts=(2, 3)), variable(2), variable(3)
    raised = ExceptionRaised(stack(TRAIN, 14), "ValueError", TEXT, ())
    assert modes(run(strategy(location=LINE), *copies, raised, outcome=Outcome.RAISED)) == [
        ("fm03", 14)
    ]


def test_the_model_that_was_compiled_is_blamed_and_not_another_one_outside():
    raised = ExceptionRaised(stack(TRAIN, 14), "ValueError", TEXT, ())
    models = variable(1, location=stack(TRAIN, 3)), variable(2, location=stack(TRAIN, 9))
    compiled = ModelCompiled(stack(TRAIN, 12), 1, (2,))
    events = strategy(location=LINE), *models, compiled, raised
    assert modes(run(*events, outcome=Outcome.RAISED)) == [("fm03", 9)]


STEP = """\
def step(x):
    with tf.GradientTape() as tape:
        loss = model(x)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

def evaluate(x):
    model(x)

def replicas(x):
    strategy.run(step, args=(x,))

step(x)
"""
IN_SCOPE = variable(1, copies=2, parts=(2, 3)), variable(2), variable(3)


@pytest.mark.parametrize(
    "lines, variables, expected",
    [
        ((4, 12), IN_SCOPE, ("fm31", 12)),
        ((4, 12), [variable(1, location=())], ("fm31", 12)),
        ((4, 12), [variable(1, location=LINE)], ("fm03", 7)),
        ((4, 10, 12), IN_SCOPE, ("fm03", 4)),
        ((7, 12), IN_SCOPE, ("fm03", 7)),
    ],
    ids=["in the scope", "no model", "outside of the scope", "in run", "no step"],
)
def test_a_step_that_is_called_without_run(tmp_path, lines, variables, expected):
    path = tmp_path / "train.py"
    path.write_text(STEP)
    raised = ExceptionRaised(stack(path, *lines), "RuntimeError", TEXT, ())
    events = strategy(location=()), *variables, raised
    assert modes(run(*events, outcome=Outcome.RAISED)) == [expected]


def test_a_step_that_builds_its_model_itself_needs_run_too(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(STEP)
    raised = ExceptionRaised(stack(path, 4, 12), "RuntimeError", TEXT, ())
    events = strategy(location=()), variable(1, location=stack(path, 3, 12)), raised
    assert modes(run(*events, outcome=Outcome.RAISED)) == [("fm31", 12)]
