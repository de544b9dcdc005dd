"""The examiner's rules for fm77: the order of the examples begins again after a restart."""

import edited_programs
import pytest
from recorded import LINE, ended, found, loaded, run, saved, updated, variable
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.observer.events import ExamplesTaken, Outcome


def taken(begins, *checksums):
    return ExamplesTaken(LINE, False, begins, len(checksums), checksums)


MADE = variable(1), updated()
WHOLE = run(*MADE, saved(path="ck-1"), taken(0, 1, 2, 3, 4, 5, 6, 7, 8), ended({1: [0.5]}))


@pytest.mark.parametrize(
    "examples, message",
    [
        (taken(4, 1, 2, 3, 4), "the examples that were taken after 0: their order begins again"),
        (taken(4, 5, 6, 7, 8), ""),
        (taken(0, 1, 2, 3, 4), ""),
    ],
    ids=["from the beginning", "as without a stop", "from zero"],
)
def test_a_training_that_goes_on(examples, message):
    killed = run(saved(path="ck-1"), outcome=Outcome.KILLED)
    role = {"role": Role.RESTARTED, "moment": Moment.BETWEEN, "before": killed, "whole": WHOLE}
    findings = found(run(loaded(path="ck-1"), *MADE, examples, ended({1: [0.7]}), **role))
    told = [str(each.message) for each in findings if each.mode == "fm77"]
    assert [each.endswith(message) for each in told] == ([True] if message else [])


# In real processes

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
