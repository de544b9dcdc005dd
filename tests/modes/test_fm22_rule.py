"""What the examiner says of fm22: exceptions that triage does not know by their text alone, and the lines to blame."""

import pytest
from edited_programs import examined
from recorded import LINE, found, modes, run, stack, strategy
from strategy_clinic.observer.events import ExceptionRaised, Outcome

SPEC = "TypeError: Could not build a TypeSpec for <Result object> of unsupported type <class 'Result'>."
TEXTS = {
    "returned": SPEC,
    "given": "TypeError: Could not generate a generic TraceType for Config(rate=0.1).",
    "nothing returned": """ValueError: in user code:
    File "/program/train.py", line 38, in train  *
        return strategy.reduce("SUM", strategy.run(step, args=(a, b)), axis=None)
    ValueError: A non-DistributedValues value None cannot be reduced with the given reduce op ReduceOp.SUM.""",
    "eager": "in get_devices_from\n  return destinations._devices\nAttributeError: 'Result' object has no attribute 'device'",
}

TEXTS["in a graph"] = """AttributeError: in user code:
    File "/program/train.py", line 38, in train  *
        return strategy.reduce("SUM", losses, axis=None)
    File "/observer/patching.py", line 170, in wrapper  **
        result = plain(*call.args, **call.kwargs)

    AttributeError: 'Result' object has no attribute 'device'"""
NOTHING = TEXTS["nothing returned"]
for name, value in ("a name", "train"), ("an object", "<main.Result object at 0x7f>"):
    TEXTS[f"{name} returned"] = NOTHING.replace("value None", f"value {value}")


def raised(text, location=LINE):
    text = f"Traceback (most recent call last):\n{text}"
    return ExceptionRaised(location, text.rpartition("\n")[2].partition(":")[0], text, ())


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_no_tensor_in_a_program_with_a_strategy(text):
    assert modes(run(strategy(), raised(text), outcome=Outcome.RAISED)) == [("fm22", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [raised(SPEC)],
        [strategy(), raised(SPEC.replace("<Result object>", "KerasTensor(shape=(3,))"))],
        [strategy(), raised("AttributeError: 'Result' object has no attribute 'device'")],
        [strategy(), raised("TypeError: Could not build the model")],
        [strategy(), raised(NOTHING.replace("value None", "value 2.5"))],
        [strategy(), raised(NOTHING.replace("value None", "value nan"))],
        [strategy(), raised(NOTHING.replace("value None", "value <tf.Tensor: shape=()>"))],
    ],
    ids=[
        "no strategy",
        "a symbolic input",
        "elsewhere",
        "another message",
        "a number",
        "no number",
        "a tensor",
    ],
)
def test_another_exception(events):
    assert modes(run(*events, outcome=Outcome.RAISED)) == []


PROGRAM = """\
@tf.function
def train(a, config):
    def outer(a):
        return Result(step(a))

    return strategy.run(outer, args=a)

print(train(a, Config()))
"""


@pytest.mark.parametrize(
    "text, line",
    [
        (SPEC, 4),
        (TEXTS["given"], 8),
        ("ValueError: positional args must be a list or tuple, got PerReplica", 6),
    ],
    ids=["returned", "given", "not a tuple"],
)
def test_the_line_to_blame(tmp_path, text, line):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    error = raised(text, stack(path, 8, function="<module>"))
    assert modes(run(strategy(), error, outcome=Outcome.RAISED)) == [("fm22", line)]


def test_a_variable_that_a_step_gets_as_an_argument():
    """The line outside of the function that is traced gives it, and the fix is that of the message."""
    text = "Traceback (most recent call last):\nAttributeError: 'SymbolicTensor' object has no attribute 'assign_add'"
    event = ExceptionRaised(LINE, "AttributeError", text, stack("/program/train.py", 3))
    (finding,) = found(run(event, outcome=Outcome.RAISED))
    assert (finding.mode, finding.line) == ("fm22", 7) and "without passing it" in finding.fix


GIVEN = """\
import tensorflow as tf
dense = tf.keras.layers.Dense(2)
dense.build((None, 3))
@tf.function
def decay({}rate):
    {}.assign({} * rate)
decay({}tf.constant(0.9))
"""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "words, expected",
    [
        (("weight, ", "weight", "weight", "dense.kernel, "), [("fm22", 7)]),
        (("", *["dense.kernel"] * 2, ""), []),
    ],
    ids=["given", "not given"],
)
def test_a_variable_of_keras_that_a_function_gets(words, expected, tmp_path):
    examination = examined(tmp_path, GIVEN.format(*words))
    assert [(each.mode, each.line) for each in examination.findings] == expected
