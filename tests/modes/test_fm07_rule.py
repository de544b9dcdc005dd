"""The examiner's rules for fm07: numbers of Python that a trace froze."""

import pytest
from edited_programs import examined
from recorded import LINE, ended, found, modes, run, stack, updated, variable, written
from strategy_clinic.observer.events import (
    CounterFrozen,
    DivergedCopies,
    ExceptionRaised,
    PythonValueFrozen,
    RandomNumberFrozen,
)


@pytest.mark.parametrize(
    "frozen, message, proof, fix",
    [
        (
            PythonValueFrozen(LINE, "beta", "step", "0.0", "0.1"),
            "beta was 0.0 when this was traced, and stays so in the graph",
            "the program has set it to 0.1 since",
            "tf.Variable",
        ),
        (
            CounterFrozen(LINE, "self.steps", "step", "1"),
            "step counts self.steps only while it is traced",
            "it is still 1 after more calls",
            "tf.Variable",
        ),
        (
            RandomNumberFrozen(LINE, "np.random.normal", "step"),
            "np.random.normal is called once, while step is traced",
            "the generator moved on in the trace",
            "draw it in the graph",
        ),
    ],
    ids=["number", "counter", "random number"],
)
def test_what_a_trace_froze(frozen, message, proof, fix):
    (finding,) = found(run(frozen))
    assert (finding.mode, finding.line) == ("fm07", 7)
    assert message in str(finding.message) and proof in str(finding.proof)
    assert fix in finding.fix and "tf.cond" not in finding.fix


BRANCHES = """\
def step(self, x):
    beta = self.beta
    if self.steps % 2:
        x = 2 * x
    return x
"""


@pytest.mark.parametrize("name, told", [("self.steps", True), ("self.beta", False)])
def test_a_frozen_value_for_which_an_if_asks(tmp_path, name, told):
    (tmp_path / "train.py").write_text(BRANCHES)
    frozen = CounterFrozen(stack(tmp_path / "train.py", 2), name, "step", "1")
    (finding,) = found(run(frozen))
    assert ("tf.cond" in finding.fix) is told


def test_a_program_that_changes_nothing():
    assert modes(run()) == []


# A schedule that changes a value of Python

SCHEDULE = """\
class Slower(LearningRateSchedule):
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, step):
        first = step
        {}
        return self.rate


optimizer = SGD(Slower(0.1))
"""


def trained_apart(path, statement, rate="Slower", written=()):
    """The copies of what the optimizer trains differ at the end."""
    path.write_text(SCHEDULE.format(statement))
    made = variable(1, copies=2, parts=(10, 11), location=stack(path, 11))
    update = updated(trains=(1,), learning_rate=rate)
    return run(made, update, *written, ended(diverged_copies=(DivergedCopies(1, 0.2, ()),)))


@pytest.mark.parametrize(
    "statement",
    [
        "self.rate = self.rate * 0.9",
        "self.rate *= 0.9",
        "self.rate: float = self.rate * 0.9",
        "first, self.rate = 1, self.rate * 0.9",
        "rate = next(RATES)",
        "CALLS['n'] += 1",
        "global rate",
    ],
)
def test_a_schedule_is_called_once_in_each_replica(tmp_path, statement):
    (finding,) = found(trained_apart(tmp_path / "train.py", statement))
    assert (finding.mode, finding.line) == ("fm07", 7) and "`step`" in finding.fix
    assert str(finding.proof).endswith("copies of v1 are 0.2 of their size apart at the end")


@pytest.mark.parametrize(
    "change",
    [
        {"statement": "rate = self.rate * 0.9"},
        {"rate": "{'class_name': 'ExponentialDecay'}"},
        {"written": (written(),)},
    ],
    ids=["changes nothing", "another schedule", "written by the step"],
)
def test_copies_that_differ_for_another_reason(tmp_path, change):
    given = {"statement": "self.rate *= 0.9", **change}
    assert [mode for mode, _ in modes(trained_apart(tmp_path / "train.py", **given))] == ["fm38"]


# Tensors of a finished trace, which are of fm33

MESSAGE = "TypeError: float() argument must be a string or a real number, not 'SymbolicTensor'\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "/program/train.py", line 7, in main\n'
IN_TRACE = (
    '  File "/lib/tensorflow/python/framework/func_graph.py", line 1, in func_graph_from_py_func\n'
)
OF_TENSOR = '  File "/lib/tensorflow/python/framework/tensor.py", line 260, in __getattr__\n'
IN_FIT = '  File "/lib/keras/src/utils/traceback_utils.py", line 113, in error_handler\n'
IN_CALLBACK = (LINE[0]._replace(function="on_epoch_end"),)


@pytest.mark.parametrize(
    "traceback, traced, at, expected",
    [
        (TRACEBACK + MESSAGE, (), LINE, "fm33"),
        (TRACEBACK + OF_TENSOR + MESSAGE, (), LINE, "fm33"),
        (TRACEBACK + IN_TRACE + OF_TENSOR + MESSAGE, (), LINE, "fm07"),
        (TRACEBACK + MESSAGE, LINE, LINE, "fm07"),
        (TRACEBACK + IN_FIT + MESSAGE, (), LINE, "fm07"),
        (TRACEBACK + IN_FIT + MESSAGE, (), IN_CALLBACK, "fm33"),
    ],
    ids=[
        "after a trace",
        "an attribute",
        "in a trace",
        "in a traced function",
        "in a step",
        "in a callback",
    ],
)
def test_a_tensor_that_is_converted(traceback, traced, at, expected):
    assert modes(run(ExceptionRaised(at, "TypeError", traceback, traced))) == [(expected, 7)]


# Values that Python needs

NO_NUMBER = (
    "NotImplementedError: numpy() is only available when eager execution is enabled."
    " __inference_train_step"
)


@pytest.mark.parametrize(
    "line, mode",
    [
        ("return self.table[step]", "fm07"),
        ("return float(step) * np.sqrt(2.0)", "fm07"),
        ("return step.numpy()", "fm01"),
        ("return K.get_value(step)", "fm01"),
    ],
)
def test_who_asks_for_a_value(tmp_path, line, mode):
    path = tmp_path / "train.py"
    path.write_text(f"def rate(self, step):\n    {line}\n")
    raised = ExceptionRaised(stack(path, 2), "NotImplementedError", NO_NUMBER, ())
    assert modes(run(raised)) == [(mode, 2)]


IN_REPLICAS = """\
import numpy as np, tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
class Slower(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self):
        self.rate = 0.1
    def __call__(self, step):
        {}
        return self.rate / (1.0 + tf.cast(step, tf.float32))
tf.keras.utils.set_random_seed(0)
x = np.random.RandomState(0).rand(32, 4).astype("float32")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(Slower()), "mse")
model.fit(x, x.sum(1, keepdims=True), batch_size=16, verbose=0)
"""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "statement, expected",
    [("self.rate *= 0.9", [("fm07", 7)]), ("self.last = self.rate * 0.9", [])],
    ids=["changes the rate", "keeps what is not used"],
)
def test_a_schedule_in_two_replicas(statement, expected, tmp_path):
    examination = examined(tmp_path, IN_REPLICAS.format(statement))
    assert [(each.mode, each.line) for each in examination.findings] == expected
