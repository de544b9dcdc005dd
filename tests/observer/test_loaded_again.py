"""What is reported of the files of whole models, which are loaded once more when a program has ended."""

import textwrap

import pytest
from strategy_clinic.observer import events
from test_programs import run  # noqa: F401  (a fixture)

pytestmark = pytest.mark.slow

PROGRAM = """\
import os

os.environ["TF_USE_LEGACY_KERAS"] = "{legacy}"

import numpy as np
import tensorflow as tf

keras = tf.keras


class Scaled(keras.layers.Layer):
    def __init__(self, units=2, **kwargs):
        super().__init__(**kwargs)
        self.units, self._rate, self.offset, self.seen = units, 1.0, 0.0, 0

    def build(self, shape):
        self.matrix = np.random.normal(size=(shape[-1], self.units)).astype("float32")
        self.factor = self.add_weight(name="factor", shape=(), initializer="ones", trainable=False)

    def call(self, inputs):
        self.seen += 1
        return self.factor * self._rate * tf.tensordot(inputs, self.matrix, 1) + self.offset

    def get_config(self):
        return {{**super().get_config(), "units": self.units}}


class Same(Scaled):
    def build(self, shape):
        super().build(shape)
        self.matrix = np.ones((shape[-1], self.units), "float32")


class Twice(keras.layers.Layer):
    def __init__(self, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.one = keras.layers.Dense(3, activation=activation)

    def call(self, inputs):
        return 2.0 * self.one(inputs)

    def get_config(self):
        return super().get_config()


class Late(Same):
    def call(self, inputs):
        return super().call(inputs) + getattr(self, "mean", 0.0)


class Once(Same):
    def call(self, inputs):
        tf.debugging.assert_equal(inputs, 1.0)
        return super().call(inputs)


class Drawn(Same):
    def call(self, inputs):
        return tf.random.normal(tf.shape(inputs))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs)


def saved(layer):
    model = keras.Sequential([keras.Input((3,)), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model(np.ones((2, 3), "float32"))
    model.save("model.keras")
    return model


def load(**given):
    own = {{"Scaled": Scaled, "Same": Same, "Drawn": Drawn, "Late": Late}}
    return keras.models.load_model("model.keras", custom_objects=own, **given)


x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
"""
# By what a program does, the attributes that the loaded model lacks.
LOST = {
    "saved(Scaled())": ["matrix"],
    "layer = Same(); layer._rate = 2.0; saved(layer)": ["_rate"],
    "layer = Same(); layer.offset = 1.0; saved(layer).fit(x, y, epochs=0)": ["offset"],
    "layer = Same(); layer.offset, layer._rate = np.ones(2, 'float32'), 2.0; saved(layer)": ["_rate", "offset"],
    "layer = Same(); layer.offset = 1.0; saved(layer); load()": ["offset"],
    "with tf.distribute.MirroredStrategy().scope(): saved(Scaled())": ["matrix"],
}  # fmt: skip
KEPT = (
    "layer = Once(); layer.offset = 1.0; saved(layer)",
    "saved(Same(4))",
    "saved(keras.layers.Dropout(0.5))",
    "layer = Same(); model = saved(layer); layer.factor.assign(3.0); model.save('model.keras')",
    "saved(Drawn())",
    "saved(keras.layers.Lambda(lambda inputs: 2 * inputs))",
    "inputs = keras.Input((3,)); keras.Model(inputs, inputs + inputs).save('model.keras')",
    "layer = Same(); layer.offset = 1.0; saved(layer); loaded = load(); loaded.layers[-2].offset = 1.0",
    "layer = Same(); layer.offset = 1.0; saved(layer).fit(x, y, verbose=0)",
    "layer = Same(); layer.offset = 1.0; saved(layer).load_weights('model.keras')",
    "layer = Same(); layer.offset = 1.0; saved(layer); os.remove('model.keras')",
    "layer = Same(); layer.offset = float('nan'); saved(layer)",
)


@pytest.fixture
def reported(run):  # noqa: F811
    def reported(line, legacy=0, *options):
        program = PROGRAM.format(legacy=legacy) + textwrap.dedent(line)
        watched = run(program, "--devices", "2", "--seed", "1", *options)
        assert not watched.of(events.ObserverFailed), watched.error
        (ended,) = watched.of(events.Ended)
        assert ended.outcome is events.Outcome.FINISHED, watched.error
        return [*watched.of(events.LoadedOtherwise), *watched.of(events.LoadFailed)]

    return reported


@pytest.mark.parametrize("line", LOST)
def test_what_a_loaded_model_lacks(reported, line):
    (told,) = reported(line)
    assert [each.setting.name for each in told.settings] == LOST[line]
    assert told.are_reason and told.saved != told.loaded and told.path.endswith("/model.keras")
    assert {each.setting.constructor.function for each in told.settings} == {"__init__"}


@pytest.mark.parametrize("line", KEPT)
def test_what_a_loaded_model_has_or_nobody_knows(reported, line):
    assert reported(line) == []


@pytest.mark.parametrize("line, lost", [("saved(Scaled())", ["matrix"]), ("saved(Same(4))", [])])
def test_keras_2(reported, line, lost):
    found = [each.setting.name for told in reported(line, 1) for each in told.settings]
    assert found == lost


def test_the_settings_of_layers_that_a_layer_makes(reported):
    (told,) = reported("saved(Twice(activation='tanh'))")
    assert [(each.setting.name, each.now) for each in told.settings] == [("activation", "linear")]
    assert not told.are_reason


def test_an_attribute_that_a_loaded_layer_has_not(reported):
    (told,) = reported("layer = Late(); layer.mean = 1.0; layer.other = 2.0; saved(layer)")
    assert [(each.setting.name, each.now) for each in told.settings] == [("mean", "nothing")]


def test_a_run_with_a_change_loads_nothing(reported):
    assert reported("saved(Scaled())", 0, "--replicas", "2") == []


def test_a_file_that_cannot_be_loaded(reported):
    (told,) = reported("model = Net(); model(x); model.save('model.keras')")
    assert told.constructor.line == PROGRAM[: PROGRAM.index("def __init__(self):")].count("\n") + 1
    assert told.error.startswith("TypeError: Net.__init__() got an unexpected keyword argument")


def test_only_the_last_files_are_loaded(reported):
    several = "model = saved(Scaled())\nfor i in range(5): model.save(f'{i}.keras')"
    told = reported(several)
    assert [each.path[-7:] for each in told] == ["2.keras", "3.keras", "4.keras"]
