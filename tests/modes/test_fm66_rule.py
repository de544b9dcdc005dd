"""The examiner's rule for fm66: a `tf.Variable` of a layer of Keras 3 that is read and never trained."""

import pytest
from recorded import modes, run, stack, updated, variable, written
from strategy_clinic.observer.events import GradientComputed, OtherKerasUsed, Owner, VariableRead

LAYERS = """\
class Scale(Layer):
    def __init__(self):
        self.factor = tf.Variable(1.0)
        self.fixed = tf.Variable(1.0, trainable=False)

    def call(self, inputs):
        return inputs * self.factor


class Query(Scale):
    def build(self, shape):
        self.query = tf.Variable(tf.ones(shape))


class Trainer:
    def __init__(self):
        self.weight = tf.Variable(1.0)


weight = tf.Variable(1.0)


class Affine(tf.Module):
    def __init__(self):
        self.gain = tf.Variable(1.0)

    def __call__(self, inputs):
        return inputs * self.gain


class Normed(Layer):
    def __init__(self):
        self.affine = Affine()
        self.trainer = Trainer()

    def call(self, inputs):
        return self.affine(inputs)


affine = Affine()
"""


@pytest.fixture
def judged(tmp_path):
    path = tmp_path / "layers.py"
    path.write_text(LAYERS)

    def judge(*lines_and_events, keras=3, **changes):
        lines = [each for each in lines_and_events if isinstance(each, int)]
        events = lines_and_events[len(lines) :]
        made = variable(7, maker=Owner.USER, location=stack(path, *lines), **changes)
        found = modes(run(made, variable(1), updated(trains=(1,)), *events, keras=keras))
        return [each for each in found if each[0] == "fm66"]

    return judge


READ = VariableRead(7)


@pytest.mark.parametrize("keras", [3, None])
@pytest.mark.parametrize("line", [3, 12], ids=["in a class that has `call`", "in `build`"])
def test_a_variable_of_a_layer(judged, line, keras):
    """The version of Keras is not always asked for: the installed one is Keras 3."""
    found = judged(line, READ, keras=keras)
    assert found == judged(line, READ, keras=keras, dtype="bfloat16") == [("fm66", line)]


def test_a_module_in_a_layer(judged):
    assert judged(26, 34, READ) == [("fm66", 26)]
    assert judged(26, 41, READ) == []  # of no layer
    assert judged(18, 35, READ) == []  # that nobody calls


@pytest.mark.parametrize(
    "line, events",
    [
        (3, []),
        (3, [READ, written(number=7)]),
        (3, [READ, updated(trains=(7,))]),
        (3, [READ, GradientComputed(stack("train.py", 1), 0, 1, connected=(7,))]),
        (4, [READ]),
        (18, [READ]),
        (21, [READ]),
    ],
    ids=[
        "not read",
        "written by the program",
        "trained by an optimizer",
        "with a gradient",
        "said to be not trainable",
        "of a class that is no layer",
        "of no class",
    ],
)
def test_near_misses(judged, line, events):
    assert judged(line, *events) == []


def test_a_program_that_trains_nothing(tmp_path):
    path = tmp_path / "layers.py"
    path.write_text(LAYERS)
    made = variable(7, maker=Owner.USER, location=stack(path, 3))
    assert modes(run(made, READ, keras=3)) == []


def test_keras_2_and_whole_numbers(judged):
    assert judged(3, READ, keras=2) == judged(3, READ, dtype="int64") == []


@pytest.mark.parametrize("asked", [None, 3])
def test_keras_2_that_the_program_has_chosen_itself(judged, asked):
    assert judged(3, READ, OtherKerasUsed(2), keras=asked) == []
    assert judged(3, READ, keras=asked) == judged(3, READ, OtherKerasUsed(3), keras=2) != []
