"""The examiner's rule for fm11: no gradients for a model that was never called."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    compiled,
    defined,
    ended,
    found,
    loaded,
    modes,
    run,
    stack,
    updated,
    variable,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    ExceptionRaised,
    Frame,
    ModelCalled,
    Outcome,
    StrategyMade,
    UnbuiltModelRead,
    Use,
)

EARLY = UnbuiltModelRead(LINE, "model", LINE)


def test_no_gradients_for_an_unbuilt_model():
    (finding,) = found(run(EARLY, updated(gradients=0)))
    assert (finding.mode, finding.line) == ("fm11", 7)
    assert (
        str(finding.proof)
        == "observed in a run without a strategy: line 20 gave the optimizer 0 gradients"
    )


def test_a_model_that_has_gradients_later():
    assert modes(run(EARLY, updated())) == []


def test_no_gradients_for_another_reason():
    assert modes(run(updated(gradients=0))) == []


PARTLY = UnbuiltModelRead(LINE, "model", LINE, model=5, variables=(1,))
WHOLE = ModelCalled(OTHER, 4, 1, (1, 8, 9), model=5, trainable=(1, 8))


def test_a_model_of_which_only_some_layers_are_trained():
    events = variable(1), variable(8), PARTLY, WHOLE, updated(trains=(1,)), ended()
    (finding,) = found(run(*events))
    assert (finding.mode, finding.line) == ("fm11", 7)
    assert str(finding.proof).endswith("no update has 1 variable of other layers, such as v8")
    assert modes(run(*events, outcome=Outcome.RAISED)) == []


@pytest.mark.parametrize(
    "events",
    [
        [PARTLY, WHOLE, updated(trains=(1, 8))],
        [PARTLY, WHOLE, updated(trains=(1,)), written(number=8)],
        [PARTLY, WHOLE, updated(trains=(1,)), loaded(variables=(8,))],
        [PARTLY, replace(WHOLE, trainable=(1,)), updated(trains=(1,))],
        [PARTLY, replace(WHOLE, model=6), updated(trains=(1,))],
        [PARTLY, WHOLE, updated(trains=(2,))],
    ],
    ids=["trained", "written", "loaded", "frozen", "another model", "not trained at all"],
)
def test_models_of_which_some_layers_are_trained_and_that_are_right(events):
    assert modes(run(*events, ended())) == []


@pytest.mark.parametrize("before, expected", [([EARLY], [("fm11", 7)]), ([], [])])
@pytest.mark.parametrize(
    "error, text",
    [
        (
            "ValueError",
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype.",
        ),
        ("AttributeError", "'NoneType' object has no attribute 'batch_reduce'"),
    ],
    ids=["add_n", "all_reduce"],
)
def test_a_sum_over_no_variables(error, text, before, expected):
    raised = ExceptionRaised(OTHER, error, f"{error}: {text}", ())
    assert modes(run(*before, raised, outcome=Outcome.RAISED)) == expected
    other = replace(raised, traceback=f"{error}: my own words")
    assert modes(run(*before, other, outcome=Outcome.RAISED)) == []


PROGRAM = """class Model(tf.keras.Model):
    def call(self, inputs):
        return self.inner(inputs)
    def train_step(self, data):
        return self.inner(data[0])
model.compile(optimizer)
model.fit(pairs)
"""
STRATEGY = StrategyMade(OTHER, "MirroredStrategy", 2)
CALL = "ValueError: Exception encountered when calling Model.call()."
SHAPE = "ValueError: Input 0 of layer 'model' is incompatible with the layer"


def note_of_exception(
    tmp_path, *lines, text=CALL, events=(STRATEGY,), steps=("train_step",), **how
):
    """Returns the note about an exception on these lines in `fit`, each with the function that it is in."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    own = compiled(stack(path, 6), *(defined(Use.STEP, path, 4, name) for name in steps))
    frames = tuple(Frame(str(path), line, function) for line, function in (*lines, (7, "<module>")))
    raised = ExceptionRaised(frames, "ValueError", text, ())
    told = diagnose(Runs([run(*events, own, raised, outcome=Outcome.RAISED, **how)]))
    return [note for note in told.notes if "before `train_step` ran" in note]


@pytest.mark.parametrize("lines, text", [([(3, "call")], CALL), ([], CALL), ([], SHAPE)])
def test_a_model_that_fit_calls_before_its_step(tmp_path, lines, text):
    assert len(note_of_exception(tmp_path, *lines, text=text)) == 1


@pytest.mark.parametrize(
    "lines, changes",
    [
        ([(3, "call"), (5, "train_step")], {}),
        ([(3, "__getitem__")], {}),
        ([(3, "call")], {"steps": ()}),
        ([(3, "call")], {"steps": ("test_step",)}),
        ([(3, "call")], {"events": ()}),
        ([(3, "call")], {"keras": 2}),
        ([], {"text": "ValueError: Failed to find data adapter that can handle input"}),
    ],
    ids=["step", "data", "no step", "step of a test", "no strategy", "Keras 2", "not called"],
)
def test_other_exceptions_in_fit(tmp_path, lines, changes):
    assert note_of_exception(tmp_path, *lines, **changes) == []
