"""The examiner's rule for fm37: updates that grow with the devices, and where a value becomes one number."""

from dataclasses import replace
from importlib import import_module

import pytest
from recorded import (
    LINE,
    OTHER,
    answering,
    ended,
    run,
    stack,
    strategy,
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner import lineage
from strategy_clinic.examiner.divergence import (
    first_divergence,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import OnDevices, Replace
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.observer.events import (
    BatchTaken,
    Carries,
    DatasetBatched,
    GradientComputed,
    GradientsApplied,
    InputShared,
    LossTraced,
    ModelCalled,
    Operation,
    Owner,
    Part,
    PartUsed,
    ReplicaCountRead,
    StepEnded,
)
from strategy_clinic.observer.replacements import Replacement
from strategy_clinic.processes import python_process

rule = import_module("strategy_clinic.modes.fm37_loss_scaled_per_replica.rule")


def steps(update, devices=2, batch=8, **changes):
    """A run whose first step changes the one variable by this much; changes are those of the optimizer's state."""
    after = [1.0 - update * each for each in (1, 2, 3)]
    step = StepEnded(1, values({1: after}), values({1: [1.0, 1.0, 1.0]}), (), ())
    taken, gradient = BatchTaken(LINE, (batch // devices,) * devices), GradientComputed(LINE, 0, 1)
    events = [
        strategy(devices),
        variable(1),
        taken,
        gradient,
        updated(**changes),
        step,
        ended({1: after}),
    ]
    return run(*events, devices=devices, role=Role.WATCHED if devices > 1 else Role.COMPARED)


def judged(one, other):
    divergence = first_divergence(one, other)
    runs = Runs([other, one], [divergence] if divergence else [])
    return [finding.mode for finding in diagnose(runs).findings]


@pytest.mark.parametrize(
    "update, devices",
    [(0.2, 2), (0.4, 4), (0.19, 2)],
    ids=["2", "4", "bent by statistics of parts"],
)
def test_an_update_that_grows_with_the_devices(update, devices):
    assert judged(steps(0.1, 1), steps(update, devices)) == ["fm37"]


@pytest.mark.parametrize("size, expected", [(64, ["fm37"]), (128, [])], ids=["the same", "larger"])
def test_data_that_are_fewer_than_a_batch(size, expected):
    """A loss that is divided by what a whole batch has is a half where the program makes batches of twice the size."""
    runs = [
        replace(each, events=(ReplicaCountRead(LINE), DatasetBatched(LINE, of), *each.events))
        for each, of in ((steps(0.1, 1), 64), (steps(0.05, 2), size))
    ]
    assert judged(*runs) == expected


def late(update, devices):
    """The same change by the second step: the first one has a learning rate of 0."""
    recording = steps(update, devices)
    (step,) = recording.of(StepEnded)
    both = replace(step, values=step.initial_values), replace(step, number=2, initial_values=())
    return replace(
        recording,
        events=tuple(new for e in recording.events for new in (both if e is step else (e,))),
    )


def test_a_first_step_that_changes_nothing():
    assert judged(late(0.1, 1), late(0.2, 2)) == ["fm37"]
    assert judged(steps(0.1, 1), late(0.2, 2)) == []


@pytest.mark.parametrize("update, expected", [(0.21, ["fm37"]), (0.13, [])])
def test_an_update_that_is_as_large_again(update, expected):
    """A program that draws other data each time may come to twice the update by chance."""
    one, other = steps(0.1, 1), steps(0.2, 2)
    again = answering(same=steps(update, 2))
    assert [each.mode for each in diagnose(Runs([other, one]), again).findings] == expected
    assert again.asked == [None]


@pytest.mark.parametrize("shape, expected", [((3,), []), ((), ["fm37"])])
def test_a_sum_of_gradients_outside_the_scope_is_not_taken_for_it(shape, expected):
    outside = variable(8, shape=shape, maker=Owner.USER), written(number=8)
    other = steps(0.2, 2)
    other = replace(other, events=(*outside, *other.events))
    found = judged(steps(0.1, 1), other)
    assert [mode for mode in found if mode == "fm37"] == expected


def test_what_is_said_of_it():
    one, other = steps(0.1, 1), steps(0.2, 2)
    (finding,) = diagnose(Runs([other, one], [first_divergence(one, other)])).findings
    assert str(finding.message).startswith("the first update is 2.00 times as large on 2 devices")
    assert str(finding.proof).startswith("compared 1 and 2 devices: v1 differs in step 1, by ")
    (finding,) = diagnose(Runs([other, one])).findings
    assert str(finding.proof) == "compared 1 and 2 devices, in step 1"


@pytest.mark.parametrize(
    "other",
    [steps(0.1000001, 2), steps(0.13, 2), steps(0.17, 2), steps(0.2, 4), steps(0.2, 2, batch=16)],
    ids=["the same", "1.3", "1.7", "half of 4", "with the batch"],
)
def test_an_update_that_does_not_grow_with_the_devices(other):
    assert judged(steps(0.1, 1), other) == []


@pytest.mark.parametrize("update, devices", [(0.05, 2), (0.025, 4)])
def test_a_loss_that_is_divided_twice(update, devices):
    one, other = steps(0.1, 1), steps(update, devices)
    (finding,) = diagnose(Runs([other, one])).findings
    assert finding.mode == "fm37"
    assert str(finding.message).endswith("divided by the number of replicas once too often")


@pytest.mark.parametrize(
    "other",
    [
        steps(0.09, 2),
        steps(0.07, 2),
        steps(0.05, 4),
        steps(0.05, 2, batch=4),
        steps(0.05, 2, clipnorm=1.0),
        steps(0.05, 2, learning_rate="0.05"),
    ],
    ids=["0.9", "0.7", "half on 4", "with the batch", "clipped", "with the rate"],
)
def test_an_update_that_is_smaller_for_a_reason(other):
    assert judged(steps(0.1, 1), other) == []


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_an_optimizer_that_clips(name):
    """Keras 3 clips before it adds up the replicas: their sum grows, and the program is right."""
    clipped = {name: 0.5}
    assert judged(steps(0.1, 1, **clipped), steps(0.2, 2, **clipped)) == []
    off = {name: None}
    assert judged(steps(0.1, 1, **off), steps(0.2, 2, **off)) == ["fm37"]


@pytest.mark.parametrize("part", [Part.CLIPPING, Part.WHOLE_BATCH_LOSS, Part.SCALAR_LOSS])
def test_updates_that_grow_for_another_reason(part):
    one, other = steps(0.1, 1), steps(0.2, 2)
    used = replace(other, events=(*other.events, PartUsed(LINE, part)))
    assert judged(one, used) == []
    drawn = replace(other, events=(*other.events, PartUsed(LINE, Part.RANDOM_NUMBERS)))
    assert judged(one, drawn) == ["fm37"]


@pytest.mark.parametrize("unmasked, expected", [(0.1, False), (0.2, True)])
def test_an_update_that_grows_with_a_mask(unmasked, expected):
    """Keras divides by the values that the part of a replica has left: a factor says something only without the mask."""
    masked = PartUsed(LINE, Part.MASK)
    one, other = steps(0.1, 1), steps(0.2, 2)
    one, other = (replace(each, events=(*each.events, masked)) for each in (one, other))
    answers = {
        one: one,
        other: replace(steps(unmasked, 2), events=(*steps(unmasked, 2).events, masked)),
    }
    asked = []

    def answer(follow_up):
        asked.append(follow_up.change)
        return answers[follow_up.recording]

    runs = Runs([other, one], [first_divergence(one, other)])
    found = [finding.mode for finding in diagnose(runs, answer).findings]
    assert ("fm37" in found) == expected
    assert Replace(frozenset({Replacement.NO_MASK})) in asked


TRAINED = """\
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 3)).astype("float32")
y = (x @ np.array([[3.0], [-2.0], [5.0]], "float32")) + 4
strategy = tf.distribute.MirroredStrategy()


def loss_of(label, output):
    return tf.square(label - output)


with strategy.scope():
    layers = [tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    model.compile(tf.keras.optimizers.SGD(0.1, global_clipnorm=0.5), loss=loss_of)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
model.fit(data, epochs=1, verbose=0)
"""
CLIPS, MEAN = ", global_clipnorm=0.5", "return tf.reduce_mean(tf.square(label - output))"


@pytest.mark.replayed
@pytest.mark.parametrize(
    "edits, expected",
    [
        ([], ["fm50"]),
        ([(CLIPS, ", clipnorm=0.5")], ["fm50"]),
        ([(CLIPS, "")], []),
        ([(CLIPS, ""), ("return tf.square(label - output)", MEAN)], ["fm49"]),
    ],
    ids=["global_clipnorm", "clipnorm", "correct", "a mean in each replica"],
)
def test_what_keras_does_is_not_blamed_on_the_loss(tmp_path, edits, expected):
    text = TRAINED
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "train.py").write_text(text)
    socket = python_process.fork_server()
    program = ProgramSpec(("train.py",), tmp_path, keras=3, fork_server=socket)
    examination = plan.examine(program)
    assert [finding.mode for finding in examination.findings] == expected
    assert [run.finished for run in examination.recordings] == [True, True]


def test_only_whole_runs_of_the_program_are_compared():
    one, other = steps(0.1, 1), steps(0.2, 2)
    for role in (Role.TASK, Role.RESTARTED):
        assert judged(one, replace(other, role=role)) == []
        assert judged(replace(one, role=role), other) == []


def test_a_gradient_that_no_line_of_the_program_computes():
    one, other = steps(0.1, 1), steps(0.2, 2)
    events = [
        replace(e, location=()) if isinstance(e, GradientComputed) else e for e in other.events
    ]
    assert judged(one, replace(other, events=tuple(events))) == []
    assert judged(one, replace(other, events=(*events, GradientComputed(LINE, 0, 1)))) == ["fm37"]


def test_the_gradient_of_a_penalty_on_gradients_is_not_that_of_the_training():
    within, own = GradientComputed(OTHER, 0, 1), GradientComputed(LINE, 0, 1, connected=(1,))
    assert rule.line_of_gradient(run(within, own), 1) == LINE


SUMS = """\
def step(self, batch):
    with tf.GradientTape() as tape:
        loss = self.loss_of(batch)
    gradients = tape.gradient(loss, weights)
    context = tf.distribute.get_replica_context()
    gradients = context.all_reduce("SUM", gradients)
    optimizer.apply_gradients(zip(gradients, weights))

def one_number(self, batch):
    gradients = tape.gradient(loss, weights)
    self.seen = context.all_reduce("SUM", batch.size)
    optimizer.apply_gradients(zip(gradients, weights))

def divided(self, batch):
    gradients = tape.gradient(loss, weights)
    gradients = context.all_reduce("SUM", gradients)
    gradients = [each / strategy.num_replicas_in_sync for each in gradients]
    optimizer.apply_gradients(zip(gradients, weights))
"""


@pytest.mark.parametrize("line, blamed", [(4, 6), (10, 10), (15, 15)])
def test_gradients_that_are_added_up_twice(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    path.write_text(SUMS)
    other = steps(0.2, 2)
    events = [
        replace(e, location=stack(path, line)) if isinstance(e, GradientComputed) else e
        for e in other.events
    ]
    recording = replace(other, events=tuple(events))
    (finding,) = diagnose(Runs([recording, steps(0.1, 1)])).findings
    assert (finding.mode, finding.line) == ("fm37", blamed)
    assert bool(finding.fix) is (line != blamed)
    assert ("adds them up again" in str(finding.message)) is (line != blamed)


def test_another_divergence_proves_nothing():
    one, other = steps(0.1, 1), steps(0.2, 2)
    divergences = [first_divergence(steps(0.1, 1), steps(0.4, 4))]
    (finding,) = diagnose(Runs([other, one], divergences)).findings
    assert str(finding.proof) == "compared 1 and 2 devices, in step 1"


def test_optimizers_of_other_rates_are_other_trainings():
    assert judged(steps(0.1, 1), steps(0.2, 2, learning_rate="0.2")) == []


def kept(gradient, devices, batch=8):
    """A step of an optimizer whose update is the same whatever the factor, and what it keeps of the gradient."""
    first = steps(0.1, devices, batch)
    slots = values({5: [gradient * each for each in (1.0, -2.0, 3.0)]})
    events = [
        replace(e, optimizer_values=slots) if isinstance(e, StepEnded) else e for e in first.events
    ]
    return run(variable(5, maker=Owner.OPTIMIZER), *events, devices=devices, role=first.role)


@pytest.mark.parametrize("gradient, devices", [(0.2, 2), (0.4, 4)])
def test_gradients_that_an_optimizer_keeps_and_no_update_shows(gradient, devices):
    assert judged(kept(0.1, 1), kept(gradient, devices)) == ["fm37"]


@pytest.mark.parametrize(
    "other",
    [kept(0.1, 2), kept(0.13, 2), kept(0.2, 2, batch=16), kept(-0.2, 2)],
    ids=["the same", "1.3", "with the batch", "another direction"],
)
def test_gradients_that_do_not_grow_with_the_devices(other):
    assert judged(kept(0.1, 1), other) == []


# A penalty on the weights

WEIGHTS = [0.5, -0.25, 1.0, -2.0, 0.75, -1.5, 0.3, 0.9]
OTHERS = [0.5, -0.5, 0.25]
GRADIENT = [1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 1.5, -0.5]


def penalized(replicas, penalty, slots=False, bias=0.0, of_others=0.0):
    """A run whose first update is that of the data and of as many penalties as there are replicas."""
    change = [g + replicas * p for g, p in zip(GRADIENT, penalty)]
    after = {
        1: [w - 0.1 * g for w, g in zip(WEIGHTS, change)],
        2: [each - 0.1 * (1 + bias + replicas * of_others * each) for each in OTHERS],
    }
    if slots:  # the update itself says nothing of the size of a gradient
        after[1] = [w - 0.1 for w in WEIGHTS]
    kept = values({5: [0.1 * g for g in change]}) if slots else ()
    step = StepEnded(1, values(after), values({1: WEIGHTS, 2: OTHERS}), kept, ())
    made = [variable(1, shape=(8,)), variable(2, shape=(3,))]
    first = steps(0.1, replicas)
    others = [e for e in first.events if not isinstance(e, StepEnded | GradientsApplied)][:-1]
    slot = variable(5, maker=Owner.OPTIMIZER, shape=(8,))
    events = [*made, slot, *others[2:], updated(trains=(1, 2)), step, ended(after)]
    return run(strategy(replicas), *events, devices=replicas, role=first.role)


SQUARES, SIGNS = [0.2 * w for w in WEIGHTS], [0.3 if w > 0 else -0.3 for w in WEIGHTS]


@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("penalty", [SQUARES, SIGNS], ids=["of squares", "of absolute values"])
@pytest.mark.parametrize("slots", [False, True], ids=["update", "what the optimizer keeps"])
def test_a_penalty_that_each_replica_adds(penalty, replicas, slots):
    one, other = penalized(1, penalty, slots), penalized(replicas, penalty, slots)
    (finding,) = diagnose(Runs([other, one])).findings
    assert finding.mode == "fm37"
    assert f"each of {replicas} replicas adds the whole penalty" in str(finding.message)


@pytest.mark.parametrize(
    "other",
    [
        penalized(2, [each / 2 for each in SQUARES]),
        penalized(2, [0.1 * each for each in reversed(WEIGHTS)]),
        penalized(2, [0.9 * w + 0.3 * g for w, g in zip(SQUARES, GRADIENT)]),
        penalized(2, SQUARES, bias=0.5),
    ],
    ids=["divided", "of other weights", "of the data, too", "and another variable differs"],
)
def test_an_update_that_does_not_differ_by_a_penalty_only(other):
    assert judged(penalized(1, SQUARES), other) == []


ADDED, COMPUTED = stack("train.py", 5), stack("train.py", 3)
SUM, MEAN, PENALTY = ("Sum", Carries.TOTAL), ("Mean", Carries.TOTAL), ("L2Loss", Carries.WEIGHTS)


def with_loss(recording, *terms):
    """The run where the loss is the sum of these, of examples or of weights."""
    count = len(terms)
    operations = [Operation(0, "AddV2", ADDED, (*range(1, count + 1),), Carries.TOTAL, False, None)]
    for number, (kind, carries) in enumerate(terms, 1):
        inputs = (number + count,)
        operations.append(Operation(number, kind, COMPUTED, inputs, carries, False, None))
    for number, (_, carries) in enumerate(terms, count + 1):
        leaf = carries if carries is Carries.WEIGHTS else Carries.EXAMPLES
        kind = "ReadVariableOp" if carries is Carries.WEIGHTS else "Placeholder"
        operations.append(Operation(number, kind, COMPUTED, (), leaf, False, None))
    traced = LossTraced(LINE, tuple(operations))
    return replace(recording, events=(*recording.events[:-1], traced, recording.events[-1]))


@pytest.mark.parametrize(
    "terms, modes",
    [((SUM, PENALTY), ["fm37"]), ((SUM,), []), ((MEAN, PENALTY), []), ((), [])],
    ids=["a penalty", "none", "a mean, too", "unknown"],
)
def test_a_penalty_on_three_weights_is_one_if_the_loss_has_it(terms, modes):
    """The direction of three numbers alone may be that of a weight by chance."""
    none = [0.0] * len(WEIGHTS)
    runs = [penalized(replicas, none, of_others=0.2) for replicas in (1, 2)]
    assert judged(*(with_loss(each, *terms) if terms else each for each in runs)) == modes


@pytest.mark.parametrize("divisors, modes", [((1.0, 2.0), []), ((2.0, 2.0), ["fm37"])])
def test_a_penalty_on_three_weights_that_is_divided_by_the_replicas_is_none(divisors, modes):
    runs = []
    for replicas, divisor in zip((1, 2), divisors):
        kept = with_loss(penalized(replicas, [0.0] * 8, of_others=0.2), SUM, PENALTY)
        (traced,) = kept.of(LossTraced)
        total, *others = traced.operations
        number = len(traced.operations)
        operations = [
            replace(total, inputs=(1, number)),
            *others,
            Operation(number, "RealDiv", ADDED, (2, number + 1), Carries.WEIGHTS, False, None),
            Operation(number + 1, "Const", ADDED, (), Carries.WEIGHTS, False, divisor),
        ]
        events = [
            replace(e, operations=tuple(operations)) if e is traced else e for e in kept.events
        ]
        runs.append(replace(kept, events=tuple(events)))
    assert judged(*runs) == modes


PART = [0.4, -0.1, 0.3, 0.2, -0.5, 0.6, -0.2, 0.1]  # of the gradients


def of_part(replicas, size):
    """A run in whose first update a part has this size."""
    return penalized(replicas, [size / replicas * each for each in PART])


def judged_part(sizes, same_parts, *terms):
    """The findings where a part has these sizes on 1, 2 and 4 devices, and on 1 and 2 if all replicas have the same examples."""
    one, other, third = (
        with_loss(each, *terms) if terms else each
        for each in (of_part(n, size) for n, size in zip((1, 2, 4), sizes))
    )
    again = answering(OnDevices=third, Replace=None, same=other)
    with_same_parts = iter([of_part(n, size) for n, size in zip((1, 2), same_parts)])

    def answer(follow_up):
        is_same = follow_up.change == Replace(frozenset({Replacement.SAME_PARTS}))
        return next(with_same_parts) if is_same else again(follow_up)

    runs = Runs([other, one], [first_divergence(one, other)])
    return [str(each.message) for each in diagnose(runs, answer).findings if each.mode == "fm37"]


@pytest.mark.parametrize(
    "sizes, words",
    [((1, 2, 4), "grows as their number"), ((1, 1 / 2, 1 / 4), "falls as their number grows")],
)
def test_a_part_that_changes_with_the_devices(sizes, words):
    (message,) = judged_part(sizes, sizes)
    assert message.startswith("on 1, 2 and 4 devices, ") and words in message


@pytest.mark.parametrize(
    "terms, words",
    [((SUM, PENALTY), "adds a whole penalty"), ((MEAN, PENALTY), "divides that part")],
    ids=["a penalty", "a mean, too"],
)
def test_a_part_that_grows_is_a_penalty_if_nothing_is_a_mean(terms, words):
    (message,) = judged_part((1, 2, 4), (1, 2, 4), *terms)
    assert words in message


@pytest.mark.parametrize("third", [3, 5, 2.1, 0.5])
def test_a_part_that_changes_otherwise(third):
    assert judged_part((1, 2, third), (1, 2)) == []


def test_a_part_that_changes_with_how_a_batch_is_divided():
    assert judged_part((1, 2, 4), (1, 1)) == []


def judged_print(printed, *terms):
    """The findings where the weights agree on 1, 2 and 4 devices, and these numbers are printed."""
    one, other, third = (
        replace(with_loss(steps(0.1, n), *terms), output=f"loss {number:.4f}\n")
        for n, number in zip((1, 2, 4), printed)
    )

    def answer(follow_up):
        return third if isinstance(follow_up.change, OnDevices) else follow_up.recording

    return diagnose(Runs([other, one]), answer).findings


@pytest.mark.parametrize(
    "terms, line, words",
    [((SUM, PENALTY), 5, "adds a whole penalty"), ((SUM, MEAN), 3, "divides that part")],
)
def test_a_part_of_a_printed_loss_that_hardly_changes_the_weights(terms, line, words):
    (finding,) = judged_print((0.6560, 0.6341, 0.5901), *terms)
    assert (finding.mode, finding.line) == ("fm37", line)
    assert "0.6341 on 2 devices, with the same weights, and 0.5901 on 4" in str(finding.message)
    assert words in str(finding.message) and bool(finding.fix) is (PENALTY in terms)


@pytest.mark.parametrize(
    "third, terms",
    [(0.5901, (SUM,)), (0.6231, (SUM, PENALTY)), (0.6341, (SUM, MEAN))],
    ids=["no such part", "half as much again", "no more"],
)
def test_a_printed_loss_that_changes_otherwise(third, terms):
    assert "fm37" not in [each.mode for each in judged_print((0.6560, 0.6341, third), *terms)]


AFTER_LOSS = """\
count = strategy.num_replicas_in_sync
def step(pairs):
    for gradient, weight in pairs:
        share = gradient / (count * 2)
        given.append((share, weight))
    optimizer.apply_gradients(given)
"""


@pytest.mark.parametrize(
    "old, new, terms, line",
    [
        ("", "", (SUM,), 4),
        ("count =", "count: int =", (SUM,), 4),
        ("count =", "other, count = size,", (SUM,), 4),
        ("count * 2", "2", (SUM,), 6),
        ("", "", (MEAN,), 7),
        ("", "", (), 7),
    ],
    ids=[
        "in the step",
        "with its type",
        "one of two",
        "nobody knows where",
        "a mean of a part",
        "an unknown loss",
    ],
)
def test_gradients_of_a_whole_share_that_are_divided_once_more(tmp_path, old, new, terms, line):
    path = tmp_path / "train.py"
    path.write_text(AFTER_LOSS.replace(old, new))
    runs = [steps(0.1, 1), steps(0.05, 2, location=stack(path, 6))]
    one, other = (with_loss(each, *terms) if terms else each for each in runs)
    (finding,) = diagnose(Runs([other, one])).findings
    assert (finding.mode, finding.line) == ("fm37", line)
    assert ("its gradients" in str(finding.message)) is ("in the loss alone" in finding.fix)
    assert bool(finding.fix) is (line != 7)


# The line to blame

CHOSEN = """\
def make_step(strategy, share):
    def learn(part):
        return share(errors(part))

    return lambda batch: strategy.run(learn, args=(batch,))


def main():
    mean = tf.reduce_mean
    step = make_step(strategy, mean)
    step(batch)
"""


def test_a_mean_that_is_given_to_the_function_around_the_step(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(CHOSEN)
    learn, main = stack(path, 3, function="learn"), stack(path, 11, function="main")
    assert rule.chosen((*learn, *main))[0].line == 9
    path.write_text(CHOSEN.replace("share(", "tf.reduce_mean("))
    assert rule.chosen((*learn, *main))[0].line == 3


@pytest.mark.parametrize("function, line", [("step", 9), ("penalty_of", 3)])
def test_a_penalty_is_blamed_where_it_is_added_or_in_its_own_function(function, line):
    """A step that computes it divides it where it adds it; another function may be given to several steps."""
    lines = {"step": 8, "penalty_of": 3}
    step = stack("train.py", 9, function="step")
    own = stack("train.py", lines[function], function=function)
    operations = (
        Operation(0, "AddV2", step, (1, 2), Carries.TOTAL, False, None),
        Operation(1, "Sum", step, (), Carries.TOTAL, False, None),
        Operation(2, "L2Loss", own, (3,), Carries.WEIGHTS, False, None),
        Operation(3, "ReadVariableOp", own, (), Carries.WEIGHTS, False, None),
    )
    (blamed,) = lineage.Loss(stack("train.py", 10), operations).penalties()
    assert blamed.location[0].line == line


@pytest.mark.parametrize(
    "number_at, sum_at, line, by_keras",
    [
        (
            LINE,
            COMPUTED,
            COMPUTED,
            True,
        ),  # the program's loss makes one number, and Keras divides it
        (LINE, LINE, LINE, False),  # Keras makes the number, too
        (ADDED, COMPUTED, ADDED, False),  # the program divides by itself
    ],
)
def test_a_loss_of_one_number_that_keras_divides_again(number_at, sum_at, line, by_keras):
    runs = []
    for replicas, number in ((1, 1.0), (2, 0.5)):
        recording = steps(0.1 * number, replicas)
        operations = (
            Operation(0, "Mul", number_at, (1, 2), Carries.TOTAL, False, None),
            Operation(1, "Sum", sum_at, (3,), Carries.TOTAL, False, None),
            Operation(2, "Const", number_at, (), Carries.WEIGHTS, False, number),
            Operation(3, "Placeholder", sum_at, (), Carries.EXAMPLES, False, None),
        )
        events = (*recording.events[:-1], LossTraced(LINE, operations), recording.events[-1])
        runs.append(replace(recording, events=events))
    (finding,) = diagnose(Runs(runs[::-1], [first_divergence(*runs)])).findings
    assert (finding.mode, finding.line) == ("fm37", line[0].line)
    assert ("by Keras" in str(finding.message)) == ("each example" in finding.fix) == by_keras


@pytest.mark.parametrize(
    "kind, few, many, growing",
    [("DivNoNan", 8, 4, True), ("RealDiv", 1, 2, False), ("Mul", 1, 2, True)],
)
def test_a_number_of_which_a_loss_grows_is_another_one_on_more_devices(kind, few, many, growing):
    def of(number):
        told = [
            Operation(0, kind, LINE, (1, 2), Carries.TOTAL, False, None),
            Operation(1, "Sum", LINE, (), Carries.TOTAL, False, None),
            Operation(2, "Const", LINE, (), Carries.WEIGHTS, False, float(number)),
        ]
        return lineage.Loss(LINE, tuple(told))

    for grows in (True, False):
        found = [each.kind for each in of(many).others_than(of(few), grows=grows)]
        assert found == ([kind] if grows is growing else [])
    assert not [*of(few).others_than(of(few), grows=True)]


@pytest.mark.parametrize(
    "full, expected",
    [
        ([DatasetBatched(LINE, 8)], ["fm37"]),
        ([DatasetBatched(LINE, 8), InputShared(LINE, "run", (8,))], []),
        ([DatasetBatched(LINE, 8), ModelCalled(LINE, 8, 2, (1,))], []),
    ],
    ids=["distributed", "given to all replicas", "a model is called with a whole batch"],
)
def test_batches_of_which_a_graph_does_not_know_the_size(full, expected):
    """A run without a smaller last batch tells whether they are for all replicas."""
    one, other = (
        replace(each, events=(DatasetBatched(LINE, 8), *each.events[:2], *each.events[3:]))
        for each in (steps(0.1, 1), steps(0.2, 2))
    )
    answers = {True: run(strategy(), updated(), *full), False: other}

    def answer(follow_up):
        return answers[isinstance(follow_up.change, Replace)]

    found = diagnose(Runs([other, one], [first_divergence(one, other)]), answer).findings
    assert [each.mode for each in found if each.mode == "fm37"] == expected


@pytest.mark.parametrize(
    "terms, said",
    [((SUM, PENALTY), "adds a whole part"), ((MEAN, PENALTY), "divides by its own part")],
)
def test_a_penalty_that_is_most_of_a_loss(terms, said):
    one, other = (with_loss(each, *terms) for each in (steps(0.1, 1), steps(0.19, 2)))
    (finding,) = diagnose(Runs([other, one])).findings
    assert finding.mode == "fm37" and said in str(finding.message)
