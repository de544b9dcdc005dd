"""The line that the examiner blames for fm34."""

from recorded import LINE, OTHER, modes, run, stack
from strategy_clinic.observer.events import ExceptionRaised, GradientComputed, Outcome

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
    assert modes(run(gradient, RAISED, outcome=Outcome.RAISED)) == [("fm34", 2)]
