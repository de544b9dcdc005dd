"""Which layers are reported as trainable and never trained, after a program has made them trainable between steps."""

import textwrap

import pytest
from strategy_clinic.observer import events
from test_programs import run  # noqa: F401  (a fixture)

PROGRAM = """\
import os

os.environ["TF_USE_LEGACY_KERAS"] = "{legacy}"

import numpy as np
import tensorflow as tf

keras = tf.keras
x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
made = []  # what is gone at the end is not reported


def new():
    base = keras.layers.Dense(3, trainable=False)
    model = keras.Sequential([keras.Input((3,)), base, keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.variables)
    made.append((model, optimizer))
    return base, model, optimizer


def step_of(model, optimizer, graph=True):
    weights = model.trainable_variables

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    return tf.function(step) if graph else step
"""
TRAINED = """
base, model, optimizer = new()
step = step_of(model, optimizer{graph})
step()
{line}
"""
# What is done after a step, and whether something is left out then.
LINES = {
    "base.trainable = True; step()": True,
    "model.trainable = False; model.trainable = True; step()": True,
    "setattr(base, 'trainable', True); step()": True,
    "base.trainable = True; step_of(model, optimizer)()": False,
    "base.trainable = True; step_of(model, keras.optimizers.SGD(0.1))()": False,
    "base.trainable = True": False,
    "base.trainable = True; base.trainable = False; step()": False,
    "other = keras.layers.Dense(1, trainable=False); other.build((None, 2)); other.trainable = True; step()": False,
}
IGNORED = """
for several in (False, True):
    base, model, optimizer = new()
    outer = keras.Sequential([keras.Input((3,)), model]) if several else model
    made.append(outer)
    {line}
    step_of(outer, optimizer)()
"""
# By which lines layers stay frozen on Keras 3.
KEPT = {
    "model.trainable = True": True,
    "outer.trainable = True": True,
    "outer.trainable = False; outer.trainable = True": False,
    "model.trainable = True; base.trainable = True": False,
    "model.trainable = True; base.trainable = False": False,
}
FITS = """
base, model, optimizer = new()
model.compile(optimizer, "mse")
model.fit(x, y, verbose=0)
base.trainable = True
model.compile("sgd", "mse")
model.fit(x, y, verbose=0)
base, model, optimizer = new()
base.trainable = True
step_of(model, optimizer)()
"""


@pytest.mark.slow
@pytest.mark.parametrize("keras", [3, 2])
def test_what_becomes_trainable_between_steps(run, keras):  # noqa: F811
    lists = TRAINED.format(graph=", graph=False", line="base.trainable = True; step()")
    parts = [TRAINED.format(graph="", line=line) for line in LINES]
    kept = [IGNORED.format(line=line) for line in KEPT]
    program = "".join([PROGRAM.format(legacy=int(keras == 2)), lists, *parts, *kept, FITS])
    watched = run(textwrap.indent(program, "    "))
    assert watched.status == 0, watched.error
    assert not watched.of(events.ObserverFailed)
    left = watched.of(events.TrainableLeftOut)

    def lines_of(kind):
        code = program.splitlines()
        found = [each.location[0].line for each in left if getattr(each, kind)]
        return sorted(code[line - 1].strip() for line in found)

    expected = [line for line, is_left in LINES.items() if is_left]
    assert lines_of("is_unfreezing") == sorted(["base.trainable = True; step()", *expected])
    ignored = [line for line, is_kept in KEPT.items() if is_kept and keras == 3]
    assert lines_of("is_ignored") == sorted(ignored)
