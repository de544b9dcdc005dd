"""Which variables lead to a loss only through `stop_gradient`, in graphs, in what they call, and outside of graphs."""

import pytest
from strategy_clinic.observer import events
from test_programs import run  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow

# Each line computes a loss from two variables. No gradient reaches `teacher`; is it stopped?
LOSSES = {
    "loss = own * x + tf.stop_gradient(teacher * x)": True,
    "loss = own * x + tf.keras.ops.stop_gradient(teacher * x)": True,
    "loss = own * x + tf.round(tf.stop_gradient(teacher * x))": True,
    "loss = own * x + tf.stop_gradient(tf.round(teacher * x))": True,
    "loss = own * x + stopped(x)": True,
    "loss = own * x + tf.stop_gradient(passed(x))": True,
    "loss = own * x + tf.cond(x > 0, lambda: tf.stop_gradient(teacher), lambda: x)": True,
    "loss = own * x + tf.round(teacher * x)": False,
    "loss = tf.stop_gradient(x) * own + tf.round(teacher)": False,
    "loss = own * x + tf.round(passed(x)) + stopped_other(x)": False,
    "loss = own * x + tf.round(teacher) + tf.stop_gradient(teacher)": False,
    "loss = own * x": False,
}
PROGRAM = """
import tensorflow as tf

own, teacher = tf.Variable(2.0), tf.Variable(3.0)


@tf.function
def stopped(x):
    return tf.stop_gradient(teacher * x)


@tf.function
def stopped_other(x):
    return tf.stop_gradient(own * x)


@tf.function
def passed(x):
    return teacher * x


def never_called(x):
    return tf.stop_gradient(x)


def step(x):
    with tf.GradientTape() as tape:
        {line}
    tape.gradient(loss, [own, teacher])


{call}
"""


def stopped_in(run, line, call):  # noqa: F811
    computed = run(PROGRAM.format(line=line, call=call)).of(events.GradientComputed)
    return [bool(each.stopped) for each in computed]


def test_in_a_graph(run):  # noqa: F811
    lines = {line: f"tf.function(step_{i})(tf.constant(1.0))" for i, line in enumerate(LOSSES)}
    begin, _, rest = PROGRAM.partition("def step(x):")
    body = rest.partition("\n\n\n")[0]
    steps = [f"def step_{i}(x):{body.format(line=line, call='')}" for i, line in enumerate(lines)]
    recording = run("\n\n".join([begin, *steps, *lines.values()]))
    computed = recording.of(events.GradientComputed)
    assert dict(zip(LOSSES, (bool(each.stopped) for each in computed))) == LOSSES
    assert all(each.disconnected for each in computed)


@pytest.mark.parametrize(
    "line", ["loss = own * x + tf.stop_gradient(teacher * x)", "loss = own * x"]
)
def test_outside_of_graphs(run, line):  # noqa: F811
    assert stopped_in(run, line, "step(tf.constant(1.0))") == ["stop" in line]
