"""The examiner's rule for fm38: replicas, or processes, that differ in what is one for whoever reads it."""

from dataclasses import replace
from importlib import import_module

import pytest
from edited_programs import examined
from recorded import (
    LINE,
    answering,
    ended,
    found,
    modes,
    run,
    stack,
    state,
    strategy,
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.divergence import first_divergence
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    DataRanOut,
    DivergedCopies,
    ExceptionRaised,
    GradientComputed,
    ModelCalled,
    Outcome,
    Owner,
    StepEnded,
)
from strategy_clinic.observer.replacements import Replacement

rule = import_module("strategy_clinic.modes.fm38_replica_state_diverges.rule")
MIRRORED = variable(1, copies=2, parts=(10, 11))


def diverged(distance, layer_location=()):
    return (DivergedCopies(1, distance, layer_location),)


def step(copies):
    return StepEnded(2, (), (), (), copies)


def test_replicas_that_differ_at_the_end():
    (finding,) = found(run(MIRRORED, ended(diverged_copies=diverged(0.2))))
    assert (finding.mode, finding.line) == ("fm38", 7)
    assert str(finding.proof).endswith("the copies are 0.2 of their size apart at the end")


def normalizing(variance=1.0, name="net/bn/moving_variance", trained="net/bn/gamma"):
    made = variable(1, name=trained), variable(2, name=name)
    return *made, updated(trains=(1,)), ended({1: [0.5], 2: [variance]})


@pytest.mark.parametrize(
    "events, is_noted",
    [
        (normalizing(), True),
        (normalizing(name="net/bn/moving_variance:0"), True),
        (normalizing(0.75), False),
        (normalizing(trained="net/dense/kernel"), False),
        (normalizing(name="net/bn/mask"), False),
    ],
    ids=["of inference", "on Keras 2", "of training", "frozen", "another weight"],
)
def test_a_moving_variance_that_nothing_sets_is_noted(events, is_noted):
    notes = map(str, diagnose(Runs([run(*events, role=Role.WATCHED)])).notes)
    assert ["net/bn of line 7 is trained" in each for each in notes] == [True] * is_noted


def test_it_is_the_call_that_another_layer_does_not_come_from():
    """As of a function that makes layers, which is given what makes them agree once."""
    apart, agree, twice = (stack("a.py", 63, line) for line in (70, 69, 70))
    own = variable(1, name="b/mean", copies=2, parts=(10, 11), location=apart)

    def line(*others):
        (finding,) = found(run(own, *others, ended(diverged_copies=diverged(0.2))))
        return finding.line

    def other(number, **fields):
        return variable(number, copies=2, parts=(20, 21), **fields)

    assert line(other(2, name="a/mean", location=agree)) == 70
    assert line(other(2, name="a/kernel", location=agree)) == 63
    assert line(variable(2, name="a/mean", copies=0, location=agree)) == 63
    assert line(other(2, name="a/mean", location=twice)) == 63


def test_how_many_variables_differ():
    copies = *diverged(0.2), DivergedCopies(2, 0.3, ()), DivergedCopies(3, 0.3, ())
    made = [variable(n, copies=2, parts=()) for n in (1, 2, 3)]
    (finding,) = found(run(*made, ended(diverged_copies=copies)))
    assert str(finding.message).endswith("on each of 2 replicas, like 2 other variables")
    (finding,) = found(run(*made, ended(diverged_copies=copies[:1])))
    assert str(finding.message).endswith("on each of 2 replicas")


def test_what_is_trained_by_what_all_replicas_write_is_another_mode():
    apart = ended(diverged_copies=diverged(0.2))
    outside, writes = variable(5), written(number=5)
    events = MIRRORED, outside, writes, apart
    assert modes(run(*events)) == [("fm23", 7), ("fm38", 7)]
    assert modes(run(*events, updated(trains=(1,)))) == [("fm23", 7)]


def test_replicas_that_agree():
    assert modes(run(MIRRORED, ended(diverged_copies=diverged(1e-7)))) == []


def test_replicas_that_differ_at_the_end_of_a_run_that_did_not_finish():
    raised = run(MIRRORED, ended(diverged_copies=diverged(0.2)), outcome=Outcome.EXITED)
    assert modes(raised) == []


def test_a_variable_that_no_line_of_the_program_has_made():
    copies = ended(diverged_copies=diverged(0.2))
    assert modes(run(replace(MIRRORED, location=()), copies)) == []


def test_what_an_optimizer_keeps_for_itself():
    own = variable(1, copies=2, maker=Owner.OPTIMIZER)
    assert modes(run(own, ended(diverged_copies=diverged(0.2)))) == []


def test_replicas_that_differ_after_a_step_and_are_made_one_again():
    (finding,) = found(run(MIRRORED, step(diverged(0.2)), ended()))
    assert (finding.mode, finding.line) == ("fm38", 7)
    assert str(finding.proof).endswith("apart after step 2")
    assert modes(run(MIRRORED, step(()), ended())) == []


def test_replicas_that_differ_are_blamed_on_the_layer():
    layer = stack("/program/train.py", 3)
    assert modes(run(MIRRORED, ended(diverged_copies=diverged(0.2, layer)))) == [("fm38", 3)]


@pytest.mark.parametrize("line, blamed", [(2, 2), (3, 4)])
def test_a_layer_of_the_program_is_blamed_on_the_line_that_makes_its_variable(
    tmp_path, line, blamed
):
    path = tmp_path / "train.py"
    path.write_text("class Own:\n    x = self.add_weight()\n    y = self.norm(x)\nlayer = Own()\n")
    made = replace(MIRRORED, location=stack(path, line, 4))
    copies = diverged(0.2, stack(path, 4))
    assert modes(run(made, ended(diverged_copies=copies))) == [("fm38", blamed)]


@pytest.mark.parametrize(
    "text, trains, replicas, line, fix",
    [
        ("layer = Dense(3)", (1,), 2, 20, "all_reduce"),
        ("layer = Dense(3)", (2,), 2, 20, "all_reduce"),
        ("w = self.add_weight()", (1,), 2, 20, "all_reduce"),
        ("w = self.add_weight()", (2,), 2, 1, ""),
        ("layer = Dense(3)", (2,), 1, 1, ""),
    ],
    ids=["of a layer", "not trained", "an own one that is trained", "an own one", "assigned once"],
)
def test_where_replicas_assign_their_own_value(tmp_path, text, trains, replicas, line, fix):
    path = tmp_path / "train.py"
    path.write_text(f"{text}\n")
    made = replace(MIRRORED, location=stack(path, 1))
    write = written(replicas=replicas)
    update = updated(trains=trains)
    (finding,) = found(run(made, update, write, ended(diverged_copies=diverged(0.2))))
    assert (finding.mode, finding.line) == ("fm38", line)
    assert fix in finding.fix and bool(fix) == bool(finding.fix)


def test_what_only_an_optimizer_writes_has_another_fix():
    (finding,) = found(run(MIRRORED, updated(trains=(1,)), ended(diverged_copies=diverged(0.2))))
    assert "gradients, rate" in finding.fix


UNKNOWN_LENGTH = DataRanOut(LINE, 0), updated()


def ended_apart(*numbers, events=UNKNOWN_LENGTH):
    """The copies of these variables differ at the end of a `fit` of data of unknown length."""
    copies = ended(diverged_copies=tuple(DivergedCopies(number, 0.2, ()) for number in numbers))
    return run(*(variable(number, copies=2) for number in numbers), *events, copies)


(TRAINED,) = state().trains


def test_a_step_that_keras_counts_at_the_end_of_the_data():
    (finding,) = found(ended_apart(TRAINED))
    assert finding.mode == "fm38" and finding.by_framework and not finding.line
    assert "assert_cardinality" in finding.fix
    assert str(finding.proof).endswith("are 0.2 of their size apart at the end")
    assert modes(ended_apart()) == []


def test_what_is_not_trained_differs_for_another_reason():
    first, second = found(ended_apart(TRAINED, TRAINED + 1))
    assert (first.by_framework, second.by_framework) == (True, False)


@pytest.mark.parametrize(
    "events",
    [
        [updated()],
        [updated(), DataRanOut(LINE, 4)],
        [updated(), DataRanOut(LINE, 0), written(number=TRAINED, writer=Owner.USER)],
    ],
    ids=["data of known length", "a known number of steps", "the program writes it too"],
)
def test_what_the_end_of_the_data_does_not_explain(events):
    assert [each.by_framework for each in found(ended_apart(TRAINED, events=events))][:1] == [False]


# What the first replica alone stores


def stored(devices, value, **changes):
    mean = variable(1, copies=devices, aggregation="ONLY_FIRST_REPLICA", shape=(2,))
    events = strategy(devices), replace(mean, **changes), CALLED[devices], written(number=1)
    return run(*events, ended({1: [value, value], 2: [1.0, 1.0]}), devices=devices)


CALLED = {1: ModelCalled(LINE, 8, 1, (1,)), 2: ModelCalled(LINE, 4, 2, (1,))}


def stored_apart(*runs, again):
    return diagnose(Runs(runs), answering(same=again)).findings


def test_a_statistic_of_the_first_replica_s_part():
    other = stored(2, 1.2)
    (finding,) = stored_apart(stored(1, 1.0), other, again=other)
    assert (finding.mode, finding.line) == ("fm38", 7)
    assert "that of the first is stored" in str(finding.message)


def test_the_line_that_chooses_the_first_replica(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "model = Net()\nmean = add(aggregation='only_first_replica', trainable=False)\n"
    )
    made = stack(path, 1)
    other = stored(2, 1.2, location=made)
    (finding,) = stored_apart(stored(1, 1.0, location=made), other, again=other)
    assert finding.line == 2


def test_a_number_that_changes_from_run_to_run():
    assert stored_apart(stored(1, 1.0), stored(2, 1.2), again=stored(2, 1.1)) == []


@pytest.mark.parametrize(
    "value, changes",
    [
        (1.000001, {}),
        (1.2, {"aggregation": "MEAN"}),
        (1.2, {"dtype": "int64"}),
        (1.2, {"location": ()}),
        (1.2, {"maker": Owner.OPTIMIZER}),
        (1.2, {"number": 2}),
    ],
    ids=["the same", "a mean", "a count", "a library's", "an optimizer's", "never written"],
)
def test_what_is_right_although_the_first_replica_stores_it(value, changes):
    other = stored(2, value, **changes)
    assert stored_apart(stored(1, 1.0, **changes), other, again=other) == []


# Processes


def process(index, value, outcome=Outcome.FINISHED, **changes):
    kept = variable(1, **{"copies": 1, "synchronization": "ON_WRITE"} | changes)
    task = {"role": Role.TASK, "task": f"worker {index}", "outcome": outcome}
    return run(kept, ended({1: [value, value]}), **task)


def test_processes_that_differ_at_the_end():
    (finding,) = found(process(0, 1.0), process(1, 1.2))
    assert (finding.mode, finding.line) == ("fm38", 7)
    assert str(finding.proof).startswith("compared worker 0 and worker 1: ")


@pytest.mark.parametrize("own", [{"copies": 0}, {"synchronization": "ON_READ"}, {"dtype": "int64"}])
def test_what_each_process_has_for_itself(own):
    assert modes(process(0, 1.0, **own), process(1, 1.2, **own)) == []


def test_what_only_one_process_has():
    other = run(
        variable(1, copies=1, shape=(4,)), ended({1: [1.2, 1.2]}), role=Role.TASK, task="worker 1"
    )
    assert modes(process(0, 1.0), other) == []


def test_a_process_that_is_no_worker():
    chief = process(0, 1.0)
    assert modes(replace(chief, task="chief 0"), process(0, 1.2)) == []


def test_processes_that_agree():
    assert modes(process(0, 1.0), process(1, 1.000001)) == []


def test_a_process_that_did_not_finish():
    assert modes(process(0, 1.0), process(1, 1.2, Outcome.KILLED)) == []


# Exceptions

IN_KERAS = (
    'File "/lib/{}.py", line 632, in call\n  File "/lib/tensorflow/values.py", line 1, in assign'
)
MESSAGE = (
    "You must specify an aggregation method to update a AggregatingVariable in Replica Context."
)


@pytest.mark.parametrize(
    "place, expected",
    [
        ("tf_keras/src/layers/normalization", [("fm38", 7)]),
        ("tf_keras/src/optimizers/optimizer", []),
        ("theirs/optimizers/optimizer", [("fm38", 7)]),
    ],
    ids=["a layer that was chosen", "an optimizer for itself", "an optimizer of somebody else"],
)
def test_who_writes_without_an_aggregation(place, expected):
    text = f"Traceback\n  {IN_KERAS.format(place)}\nValueError: {MESSAGE}"
    raised = ExceptionRaised(LINE, "ValueError", text, ())
    assert modes(run(raised, outcome=Outcome.RAISED)) == expected


# A variable that follows from the part of each replica, whose copies agree

LEARNS = """\
def learn(x):
    book.follow(x)
    return tape.gradient(x)
def step(x):
    return strategy.run(learn, args=(x,))
def main():
    step(x)
    book.reset()
"""


def learned(path, devices, first=0.5, lines=(2, 5, 7), held=(1, 3), **changes):
    """A run whose weight gets this value in step 1, and in step 2 another one on each number of devices."""
    entries = [[value] * 8 for value in (1.0, first, 0.3 / devices)]
    before, *after = (values({1: each}) for each in entries)
    steps = [StepEnded(n, each, before, (), ()) for n, each in enumerate(after, 1)]
    mean = variable(3, maker=Owner.USER, shape=(), copies=2, parts=(12, 13))
    called = ModelCalled(stack(path, 3, 5, 7), 8 // devices, devices, held)
    write = written(location=stack(path, *lines), number=3)
    gradient = GradientComputed(stack(path, 3, 5, 7), 0, 1)
    made = strategy(devices), variable(1, shape=(8,)), replace(mean, **changes)
    role = Role.WATCHED if devices > 1 else Role.COMPARED
    last = ended({1: entries[-1]})
    return run(*made, called, gradient, updated(), write, *steps, last, devices=devices, role=role)


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, ("fm38", 2)),
        ({"first": 0.6}, ("fm37", 5)),
        ({"lines": (8,)}, ("fm55", 5)),
        ({"copies": 0, "parts": ()}, ("fm23", 7)),
        ({"held": (1,)}, ("fm55", 5)),
    ],
    ids=[
        "in the step",
        "the first update differs",
        "outside of the step",
        "one for all",
        "of no model",
    ],
)
def test_what_a_step_writes_follows_from_the_part_of_a_replica(tmp_path, fields, expected):
    path = tmp_path / "train.py"
    path.write_text(LEARNS)
    one, other = learned(path, 1), learned(path, 2, **fields)

    def answer(follow_up):
        parts = getattr(follow_up.change, "replacements", set())
        is_same = Replacement.SAME_PARTS in parts
        return learned(path, 1) if is_same else follow_up.recording

    (finding,) = diagnose(Runs([other, one], [first_divergence(one, other)]), answer).findings
    assert (finding.mode, finding.line) == expected


@pytest.mark.parametrize("first, is_suspected", [(0.5, True), (0.505, False)])
def test_a_first_update_that_differs_is_no_matter_of_what_is_written(tmp_path, first, is_suspected):
    path = tmp_path / "train.py"
    path.write_text(LEARNS)
    divergence = first_divergence(learned(path, 1), learned(path, 2, first))
    assert bool(rule.written_in_step(divergence)) == is_suspected


CENTRED = """\
import numpy as np, tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
class Centred(tf.keras.layers.Dense):
    def call(self, x, training=False):
        shift = -tf.reduce_mean(tf.matmul(x, self.kernel), 0)
        replica = tf.distribute.get_replica_context()
        if training:
            self.bias.assign({})
        return super().call(x)
tf.keras.utils.set_random_seed(0)
x = np.random.RandomState(0).rand(32, 4).astype("float32")
with strategy.scope():
    layers = [tf.keras.Input((4,)), Centred(3), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
model.fit(x, x.sum(1, keepdims=True), batch_size=16, verbose=0)
"""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "value, expected",
    [("shift", [("fm38", 8)]), ('replica.all_reduce("MEAN", shift) if replica else shift', [])],
    ids=["of its part", "the mean of all"],
)
def test_replicas_that_assign_a_variable_of_a_layer(value, expected, tmp_path):
    examination = examined(tmp_path, CENTRED.format(value))
    assert [(each.mode, each.line) for each in examination.findings] == expected
