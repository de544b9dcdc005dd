"""The examiner's rule for fm70: a traced step that keeps the first model, while others are made at the same lines."""

import edited_programs
import pytest
from recorded import LINE, OTHER, loaded, modes, run, strategy, updated, variable, written
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.modes.fm70_function_keeps_first_model.rule import traced_function
from strategy_clinic.observer.events import Frame, Owner, PythonValueFrozen, StepsCounted

MODEL, OPTIMIZER = LINE, (Frame("/program/train.py", 9, "main"),)
FIRST = variable(1), variable(4, location=OPTIMIZER, maker=Owner.OPTIMIZER)
STEP = updated(variables=(4,))
LATER = variable(11), variable(14, location=OPTIMIZER, maker=Owner.OPTIMIZER)


def counted(graph_calls=8):
    return StepsCounted(8, 0, graph_calls, 1, (), 0, None, (), None)


def judged(*events, **fields):
    found = modes(run(strategy(), *FIRST, STEP, *events, **fields))
    return [each for each in found if each[0] == "fm70"]


def test_a_model_that_is_made_again_and_never_trained():
    assert judged(*LATER, counted()) == [("fm70", 20)]


def test_one_of_several_later_models_is_loaded():
    third = variable(21), variable(24, location=OPTIMIZER, maker=Owner.OPTIMIZER)
    assert judged(*LATER, *third, loaded(variables=(21,)), counted()) == [("fm70", 20)]
    assert judged(*LATER, *third, loaded(variables=(11, 21)), counted()) == []


RIGHT = {
    "each is trained": [*LATER, updated(trains=(11,), variables=(14,)), counted()],
    "steps outside of graphs": [*LATER, counted(0)],
    "the model is loaded": [*LATER, loaded(variables=(11,)), counted()],
    "the program writes its weights": [*LATER, written(number=11), counted()],
    "a model without an optimizer": [LATER[0], counted()],
    "other lines": [variable(11, location=OTHER), LATER[1], counted()],
    "both before the first step": [counted()],
}


@pytest.mark.parametrize("events", RIGHT.values(), ids=RIGHT)
def test_near_misses(events):
    assert judged(*events) == []


def test_an_optimizer_in_whose_place_another_is_put():
    frozen = PythonValueFrozen(LINE, "optimizer", "step", "Adam", "SGD", is_optimizer=True)
    (finding,) = diagnose(Runs([run(strategy(), frozen)])).findings
    assert (finding.mode, finding.location.frames) == ("fm70", LINE)
    assert "the first optimizer, Adam: SGD that is made later takes no step" in str(finding.message)
    assert finding.fix.startswith("make the `tf.function` anew for each optimizer")
    assert judged(*LATER, counted(), frozen) == [("fm70", 20)]


# In real processes

OPTIMIZERS = """
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
x = tf.ones((8, 1))


class Trainer:
    def __init__(self):
        self.optimizer = tf.keras.optimizers.Adam(0.1)
        self.optimizer.build(model.trainable_variables)

    @tf.function
    def step(self):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, model.trainable_variables))


trainer = Trainer()
for rate in (0.5, 0.25):
    trainer.step()
    {line}
    trainer.step()
"""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "line, lines",
    [
        ("trainer.optimizer = tf.keras.optimizers.SGD(rate)", [14]),
        ("trainer.optimizer.learning_rate.assign(rate)", []),
        ("trainer = Trainer()", []),
    ],
)
def test_optimizers_of_one_step(tmp_path, line, lines):
    examination = edited_programs.examined(tmp_path, OPTIMIZERS.format(line=line))
    assert [each.line for each in examination.findings if each.mode == "fm70"] == lines


FOLDS = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x, y = tf.ones((8, 1)), tf.fill((8, 1), 3.0)


class Fold:
    def __init__(self):
        self.begin()

    def begin(self):
        with strategy.scope():
            dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
            self.model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
            self.optimizer = tf.keras.optimizers.SGD(0.1)
            self.optimizer.build(self.model.trainable_variables)

    def learn(self):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(x) - y)) / strategy.num_replicas_in_sync
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    @tf.function
    def step(self):
        strategy.run(self.learn)


fold = Fold()
for _ in range(3):
    NEXT
    fold.step()
    print(float(tf.reduce_sum(fold.model(x))))
"""


@pytest.mark.replayed
@pytest.mark.parametrize("following, is_wrong", [("fold.begin()", True), ("fold = Fold()", False)])
def test_a_step_of_an_object_that_begins_again(following, is_wrong, tmp_path):
    text = FOLDS.replace("NEXT", following)
    examination = edited_programs.examined(tmp_path, text)
    line = text.splitlines().index("    def step(self):") + 1
    found = [(each.mode, each.line) for each in examination.findings]
    assert found == ([("fm70", line)] if is_wrong else [])


@pytest.mark.parametrize(
    "made", ["step = tf.function(lambda: strategy.run(inner))", "step = function(inner)", "step()"]
)
def test_the_line_that_makes_a_function_of_it(made, tmp_path):
    """Where no decorator does: the first line of the program from the update outwards that calls `tf.function`."""
    path = tmp_path / "train.py"
    path.write_text(f"def inner():\n    update()\n\n\n{made}\n")
    step = updated(
        variables=(4,), location=(Frame(str(path), 2, "inner"), Frame(str(path), 5, "main"))
    )
    found = modes(run(strategy(), *FIRST, step, *LATER, counted()))
    assert found == [("fm70", 2 if made == "step()" else 5)]


def test_the_line_that_gives_a_method_to_it(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("self.step = tf.function(self.distributed)\nself.other = tf.function(other)\n")
    frames = Frame(str(path), 9, "replica_step"), Frame(str(path), 7, "distributed")
    assert traced_function(frames)[0].line == 1
    assert traced_function(frames[:1])[0].line == 9
