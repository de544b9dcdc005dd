"""The examiner's rules for fm77: the order of the examples begins again after a restart."""

from dataclasses import replace

import edited_programs
import pytest
from recorded import (
    LINE,
    answering,
    ended,
    loaded,
    run,
    saved,
    state,
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    EpochsLeftOut,
    ExamplesTaken,
    Held,
    Outcome,
    ProgramState,
    SeedRepeated,
    StepEnded,
)


def taken(begins, *checksums):
    return ExamplesTaken(LINE, False, begins, len(checksums), checksums)


MADE = variable(1), updated()
WHOLE = run(*MADE, saved(path="ck-1"), taken(0, 1, 2, 3, 4, 5, 6, 7, 8), ended({1: [0.5]}))


AGAIN_FROM_0 = taken(4, 1, 2, 3, 4)
BEGINS_AGAIN = "the examples that were taken after 0: their order begins again"


@pytest.mark.parametrize(
    "examples, otherwise, message",
    [
        (AGAIN_FROM_0, AGAIN_FROM_0, BEGINS_AGAIN),
        (AGAIN_FROM_0, taken(4, 3, 1, 4, 2), ""),
        (AGAIN_FROM_0, taken(4, 1, 2, 3, 4, 9), BEGINS_AGAIN),
        (taken(4, 5, 6, 7, 8), None, ""),
        (taken(0, 1, 2, 3, 4), None, ""),
    ],
    ids=[
        "from the beginning",
        "in another order for each seed",
        "with more that is read ahead",
        "as without a stop",
        "from zero",
    ],
)
def test_a_training_that_goes_on(examples, otherwise, message):
    """`otherwise` is what it takes with other random numbers, where the program chooses no seed."""
    killed = run(saved(path="ck-1"), outcome=Outcome.KILLED)
    role = {"role": Role.RESTARTED, "moment": Moment.BETWEEN, "before": killed, "whole": WHOLE}
    restarted = run(loaded(path="ck-1"), *MADE, examples, ended({1: [0.7]}), **role)
    run_again = answering(OtherSeed=run(*MADE, *[otherwise] if otherwise else []))
    diagnosis = diagnose(Runs([restarted]), run_again)
    told = [str(each.message) for each in diagnosis.findings if each.mode == "fm77"]
    assert [each.endswith(message) for each in told] == ([True] if message else [])


FEED = """\
class Feed:
    def __init__(self):
        self.passes = 0

    def order(self):
        self.passes += 1
        return np.random.default_rng(self.passes).permutation(8)
"""


@pytest.mark.parametrize(
    "values, goes_on, mode",
    [
        (("0", "1", "2"), AGAIN_FROM_0, "fm77"),
        (("0.5", "0.4", "0.3"), AGAIN_FROM_0, "fm05"),
        (("0", "1", "2"), taken(4, 3, 1, 4, 2), "fm05"),
        (("0", "1", "2"), taken(4, 5, 6, 7, 8), "fm05"),
    ],
    ids=["with the first order", "no count", "with another order", "with the same examples"],
)
def test_a_count_that_begins_again(tmp_path, values, goes_on, mode):
    path = tmp_path / "train.py"
    path.write_text(FEED)

    def seen(updates, value, before_step):
        return ProgramState(updates, (Held(str(path), "Feed", "passes", value),), before_step)

    first, second, third = values
    states = [seen(0, first, True), seen(4, second, False), seen(4, second, True)]
    events = saved(path="ck-1"), taken(0, 1, 2, 3, 4, 5, 6, 7, 8), ended({1: [0.5]})
    whole = run(*MADE, *states, seen(8, third, False), *events, output="loss 10.25")
    killed = run(saved(path="ck-1"), outcome=Outcome.KILLED)
    again = run(
        loaded(path="ck-1"),
        *MADE,
        seen(4, first, True),
        goes_on,
        seen(8, second, False),
        ended({1: [0.7]}),
        role=Role.RESTARTED,
        moment=Moment.BETWEEN,
        before=killed,
        whole=whole,
        output="loss 10.31",
    )
    run_again = answering(OtherSeed=run(*MADE, goes_on))
    (finding,) = diagnose(Runs([again]), run_again).findings
    assert (finding.mode, finding.line) == (mode, 3)
    assert (
        f"passes begins again with {first} and not with {second}" in str(finding.message)
        or mode == "fm05"
    )


@pytest.mark.parametrize("first, expected", [(1.0, False), (0.8, True)])
def test_weights_that_were_not_loaded_begin_again_with_the_examples(first, expected):
    """A file may give an optimizer the count of its updates, and no weight its value."""
    killed = run(saved(path="ck-1"), outcome=Outcome.KILLED)

    def begun(weight):
        return StepEnded(1, values({1: [0.5]}), values({1: [weight]}), (), ())

    whole = replace(WHOLE, events=(*WHOLE.events, begun(1.0)))
    role = {"role": Role.RESTARTED, "moment": Moment.BETWEEN, "before": killed, "whole": whole}
    events = loaded(path="ck-1"), *MADE, AGAIN_FROM_0, begun(first), ended({1: [0.7]})
    run_again = answering(OtherSeed=run(*MADE, AGAIN_FROM_0))
    diagnosis = diagnose(Runs([run(*events, **role)]), run_again)
    assert ("fm77" in [each.mode for each in diagnosis.findings]) == expected


def test_epochs_that_are_left_out_take_their_examples_with_them():
    killed = run(saved(path="ck-1"), outcome=Outcome.KILLED)
    role = {"role": Role.RESTARTED, "moment": Moment.BETWEEN, "before": killed, "whole": WHOLE}
    left_out = EpochsLeftOut(LINE, 2, 0, 2, True)
    events = loaded(path="ck-1"), *MADE, AGAIN_FROM_0, left_out, ended({1: [0.7]})
    run_again = answering(OtherSeed=run(*MADE, AGAIN_FROM_0))
    diagnosis = diagnose(Runs([run(*events, **role)]), run_again)
    assert "fm77" not in [each.mode for each in diagnosis.findings]


# In one process

AGAIN_SEEDED = SeedRepeated(LINE, "shuffle", 1)
ROUNDS = taken(0, 1, 2, 3, 4, 1, 2, 3, 4)
OTHERS = taken(0, 1, 2, 3, 4, 2, 1, 3, 4)
SECOND = updated(variables=(7, 8, 9))


def test_one_training_takes_its_examples_in_the_same_order_again():
    run_again = answering(OtherLaterSeeds=run(*MADE, OTHERS))
    (finding,) = diagnose(Runs([run(*MADE, AGAIN_SEEDED, ROUNDS)]), run_again).findings
    assert (finding.mode, finding.line) == ("fm77", LINE[0].line)
    assert "the examples of the first 4 updates follow in the same order" in str(finding.message)


@pytest.mark.parametrize(
    "events, otherwise",
    [
        ([ROUNDS], OTHERS),
        ([AGAIN_SEEDED, OTHERS], ROUNDS),
        ([AGAIN_SEEDED, taken(0, 1, 1, 1, 1, 1, 1)], OTHERS),
        ([AGAIN_SEEDED, ROUNDS], ROUNDS),
        ([AGAIN_SEEDED, ROUNDS], taken(0, 9, 2, 3, 4, 2, 1, 3, 4)),
        ([SECOND, AGAIN_SEEDED, ROUNDS], OTHERS),
        ([written(replicas=0), AGAIN_SEEDED, ROUNDS], OTHERS),
        ([loaded(path="first", variables=(1,)), AGAIN_SEEDED, ROUNDS], OTHERS),
        (
            [
                saved(path="ck", optimizers=(state(steps=2),)),
                loaded(path="ck", variables=(1,)),
                SECOND,
                AGAIN_SEEDED,
                ROUNDS,
            ],
            OTHERS,
        ),
    ],
    ids=[
        "no seed",
        "another order",
        "one batch",
        "no order of the seed",
        "a seed of something else, too",
        "another training",
        "weights that are set again",
        "weights of another file",
        "what was saved at another time",
    ],
)
def test_an_order_that_may_be_meant(events, otherwise):
    run_again = answering(OtherLaterSeeds=run(*MADE, otherwise))
    assert not diagnose(Runs([run(*MADE, *events)]), run_again).findings


def test_a_training_that_is_loaded_goes_on_with_the_first_examples():
    kept = saved(path="ck", optimizers=(state(steps=4),)), loaded(path="ck", variables=(1,))
    run_again = answering(OtherLaterSeeds=run(*MADE, OTHERS))
    found = diagnose(Runs([run(*MADE, *kept, SECOND, AGAIN_SEEDED, ROUNDS)]), run_again).findings
    assert "fm77" in [each.mode for each in found]


# In real processes

EPOCHS = """
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=(32, 2)).astype("float32")
examples = tf.data.Dataset.from_tensor_slices((x, x[:, :1]))
with tf.distribute.MirroredStrategy().scope():
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
for epoch in range(3):
    model.fit(examples.shuffle(32, seed=SEED).batch(8), verbose=0)
"""


@pytest.mark.replayed
@pytest.mark.parametrize("seed, modes", [("1", ["fm77"]), ("epoch", []), ("None", [])])
def test_a_dataset_that_is_shuffled_anew_in_each_epoch(tmp_path, seed, modes):
    examination = edited_programs.examined(tmp_path, EPOCHS.replace("SEED", seed))
    assert [each.mode for each in examination.findings] == modes


SKIPS = """
import numpy as np
import tensorflow as tf

examples = np.random.default_rng(0).normal(size=(16, 2)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices(examples)
weights, done = tf.Variable([0.5, 0.25]), tf.Variable(0)
optimizer = tf.keras.optimizers.SGD(0.1)
checkpoint = tf.train.Checkpoint(weights=weights, optimizer=optimizer, done=done)
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
shuffled = dataset.shuffle(16, seed=1).batch(4)
while done < 12:
    epoch, skipped = divmod(int(done), 4)
    for batch in shuffled.skip(skipped):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((batch @ weights[:, tf.newaxis] - batch[:, :1] ** 2) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        if int(done.assign_add(1)) % 5 == 0:
            manager.save()
"""
OF_EPOCH = SKIPS.replace("shuffled.skip", "dataset.shuffle(16, seed=epoch).batch(4).skip")
AGAIN = SKIPS.replace("divmod(int(done), 4)", "int(done) // 4, 0")
IN_LOOP = (
    SKIPS.replace(
        "for batch in shuffled.skip(skipped):",
        "for place, batch in enumerate(shuffled):\n        if place < skipped:\n            continue",
    )
    .replace(
        "        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])",
        "        update(tape.gradient(loss, weights))",
    )
    .replace(
        "while done",
        "update = tf.function(lambda gradient: optimizer.apply_gradients([(gradient, weights)]))\nwhile done",
    )
)
IN_LOOP_OF_EPOCH = IN_LOOP.replace(
    "enumerate(shuffled)", "enumerate(dataset.shuffle(16, seed=epoch).batch(4))"
)


@pytest.mark.replayed
@pytest.mark.parametrize(
    "text, count",
    [(SKIPS, 1), (OF_EPOCH, 0), (AGAIN, 0), (IN_LOOP, 1), (IN_LOOP_OF_EPOCH, 0)],
    ids=[
        "by skip",
        "order of the epoch",
        "nothing",
        "in the loop",
        "order of the epoch, in the loop",
    ],
)
def test_a_program_that_skips_what_it_took_before_a_restart(tmp_path, text, count):
    examination = edited_programs.examined(tmp_path, text)
    found = [(each.mode, each.line) for each in examination.findings]
    line = text.splitlines().index("shuffled = dataset.shuffle(16, seed=1).batch(4)") + 1
    assert found == [("fm77", line)] * count
    killed = [each for each in examination.recordings if each.role is Role.RESTARTED]
    assert killed and all(each.finished for each in killed)


# `fit` goes on with an epoch, whose order is the next one that the dataset draws: the first of the new process.
BACKED_UP = """
import numpy as np
import tensorflow as tf

{seed}
x = np.random.default_rng(0).normal(size=(16, 2)).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
kept = tf.keras.callbacks.BackupAndRestore("backup")
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).shuffle(16).batch(4)
model.fit(data, epochs=4, verbose=0, callbacks=[kept])
"""


@pytest.mark.replayed
@pytest.mark.parametrize("seed, modes", [("tf.keras.utils.set_random_seed(3)", ["fm77"]), ("", [])])
def test_an_order_begins_again_where_the_program_has_a_seed(tmp_path, seed, modes):
    examination = edited_programs.examined(tmp_path, BACKED_UP.format(seed=seed))
    assert [each.mode for each in examination.findings] == modes
