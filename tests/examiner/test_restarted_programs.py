"""Restarts compared with the whole run: on events, and in real processes with savers of Keras and TensorFlow."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    ended,
    loaded,
    run,
    saved,
    stack,
    state,
    updated,
    values,
    variable,
    written,
)
from score_restarts import examined, outcomes, program
from strategy_clinic.examiner import moments
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.rule import Rule, Runs, mode_rules, observed
from strategy_clinic.observer.events import (
    CallbackState,
    CheckpointRestored,
    CheckpointSought,
    ExceptionRaised,
    FileMoved,
    FileWritten,
    LookedFor,
    OrderDrawn,
    Outcome,
    Owner,
    Part,
    PartUsed,
    SavedAgain,
    SaveKind,
    Started,
    StepEnded,
)

# When a program is killed

START = Started(2, "/program")


def callback(name, begins, best, wait=0, path="", steps=0, **changes):
    usual = CallbackState(OTHER, name, begins, best, wait, path, 0, "loss", True, steps)
    return replace(usual, **changes)


@pytest.mark.parametrize(
    "steps, total, expected",
    [
        ([4, 8], 8, {"AFTER": "--die-at-step 5", "BETWEEN": "--die-at-step 6"}),
        ([4], 20, {"AFTER": "--die-at-step 5", "BETWEEN": "--die-at-step 12"}),
        ([4, 5], 6, {"AFTER": "--die-at-step 5"}),
        ([4], 4, {"AFTER": "--die"}),  # no step comes after it
        ([0, 0], 0, {"AFTER": "--die"}),  # a program whose steps cannot be counted
    ],
)
def test_the_moments_are_chosen_by_the_steps_of_saves(steps, total, expected):
    saves = [saved(path="ck", steps=steps[0]), *(SavedAgain("ck", each) for each in steps[1:])]
    chosen = moments.moments_of(run(*saves, steps=total))
    during = chosen.pop(Moment.DURING)
    assert {moment.name: " ".join(options) for moment, options in chosen.items()} == expected
    assert during == ("--die-in-save", "2" if len(steps) > 1 else "1")


SEEKS_SECOND = CheckpointSought(LINE, "second", None, ())
FIRST_SAVE, LATE_SAVE = saved(path="first/ck-1", steps=4), saved(path="second/ck-1", steps=8)
FIRST_MODEL = saved(path="best.keras", kind=SaveKind.MODEL, steps=4)
LATE_MODEL = replace(FIRST_MODEL, path="last.keras", steps=8)
SEEKS_MODEL = LookedFor(LINE, "last.keras", False)


@pytest.mark.parametrize(
    "events, is_late",
    [
        ([FIRST_SAVE, SEEKS_SECOND, LATE_SAVE], True),
        ([FIRST_SAVE, LATE_SAVE], False),
        ([FIRST_SAVE, LATE_SAVE, SEEKS_SECOND], False),
        ([FIRST_SAVE, replace(SEEKS_SECOND, folder="other"), LATE_SAVE], False),
        ([FIRST_SAVE, SEEKS_SECOND, replace(LATE_SAVE, kind=SaveKind.MODEL)], False),
        ([FIRST_MODEL, SEEKS_MODEL, LATE_MODEL], True),
        ([FIRST_MODEL, LATE_MODEL], False),
        ([FIRST_MODEL, SEEKS_MODEL, replace(LATE_MODEL, path="best.keras")], False),
        ([FIRST_SAVE, SEEKS_SECOND, replace(LATE_SAVE, steps=5)], False),
        ([SEEKS_SECOND, LATE_SAVE], False),
        ([SEEKS_SECOND], False),
    ],
    ids=[
        "late",
        "not sought",
        "sought after it",
        "sought elsewhere",
        "a model's file beside it",
        "a late model",
        "a late model that is not sought",
        "a model that is saved early, too",
        "saved before a kill",
        "the first save",
        "no save",
    ],
)
def test_a_file_that_no_killed_run_leaves(events, is_late):
    assert moments.has_late_file(run(*events, steps=8)) is is_late


def test_it_is_killed_before_an_epoch_in_which_a_callback_finds_nothing_better():
    states = [callback("EarlyStopping", False, 0.5, steps=step) for step in (4, 8, 16)]
    better = replace(states[1], best=0.4), replace(states[2], best=0.4)
    saves = [saved(path="ck", steps=4), *(SavedAgain("ck", each) for each in (8, 12, 16))]
    assert moments.step_between(run(*saves, states[0], states[1], steps=16)) == 6
    assert moments.step_between(run(*saves, states[0], *better, steps=16)) == 14
    assert moments.step_between(run(*saves, steps=16)) == 10


def test_it_is_killed_in_its_last_phase():
    """Which has a checkpoint of its own; a model that is exported at the end is none."""
    first = [saved(path=f"first/ck-{step}", steps=step, made_at=LINE) for step in (4, 8, 12)]
    second = [saved(path=f"second/ck-{step}", steps=step, made_at=OTHER) for step in (16, 20)]
    export = saved(path="model.keras", kind=SaveKind.MODEL, steps=24)
    assert moments.step_between(run(*first, *second, export, steps=24)) == 22
    assert moments.step_between(run(*first, second[0], export, steps=24)) == 20
    assert moments.step_between(run(*first, export, steps=24)) == 10


def test_it_is_killed_while_it_writes_a_file_that_it_reads_when_it_starts():
    saves = [
        saved(path="backup/last", steps=4),
        saved(path="best.keras", steps=4),
        SavedAgain("best.keras", 8),
        SavedAgain("backup/last", 8),
    ]
    looks = LookedFor(LINE, "backup", True)
    assert moments.moments_of(run(looks, *saves, steps=9))[Moment.DURING][1] == "4"
    assert moments.moments_of(run(*saves, steps=9))[Moment.DURING][1] == "3"


LOOKS = [
    (LookedFor(LINE, "/program/best.keras", False), True),
    (LookedFor(LINE, "best.keras", False), True),
    (LookedFor(LINE, "best.keras.index", False), True),
    (LookedFor(LINE, "saved", False), False),
    (LookedFor(LINE, "/program", False), False),  # it may be made for what is going to be saved
    (LookedFor(LINE, ".", True), True),
    (LookedFor(LINE, "best*", True), True),
    (LookedFor(LINE, "/", True), True),
    (LookedFor(LINE, "other*", True), False),
    (LookedFor(LINE, "data.csv", False), False),
    (CheckpointRestored(LINE, None, (), (), (), ""), True),
    (CheckpointRestored(LINE, "/elsewhere/ck-1", (), (), (), ""), False),
    (CheckpointSought(LINE, ".", None, ()), True),
    (CheckpointSought(LINE, "/elsewhere", None, ()), False),
]


@pytest.mark.parametrize("looks, expected", LOOKS)
def test_a_program_that_looks_for_its_own_saves_means_to_go_on(looks, expected):
    save = saved(path="best.keras")
    assert moments.means_to_go_on(run(START, looks, save)) is expected
    assert moments.means_to_go_on(run(START, save, looks)) is False  # it reads what it has saved
    assert moments.means_to_go_on(run(START, looks)) is False


@pytest.mark.parametrize(
    "move", [FileMoved(LINE, "done.tmp", "done.json"), FileWritten(LINE, "/program/done.json")]
)
def test_a_program_that_looks_for_a_list_of_its_own_means_to_go_on(move):
    look, save = LookedFor(LINE, "done.json", False), saved(path="trial_1.keras")
    assert moments.means_to_go_on(run(START, look, save, move))
    assert not moments.means_to_go_on(run(START, save, move, look))
    assert not moments.means_to_go_on(run(START, look, move))  # nothing tells when to stop it
    other = replace(look, path="data.csv")
    assert not moments.means_to_go_on(run(START, other, save, move))


# What is found


SAVE = saved((1,), path="ck", values=values({1: [2.0]}))
LOAD = loaded(path="ck", location=LINE, variables=(1,))
WEIGHT = variable(1)
RATES = state(steps=8, learning_rate="0.1", variables=(4,))


def step(*entries):
    return StepEnded(1, values({1: [9.0]}), values({1: entries}), (), ())


def last(entries, slots, **changes):
    return ended({1: entries, 4: slots}, optimizers=(replace(RATES, **changes),))


def whole(
    *events, entries=(5.0,), slots=(1.0,), begins=(0.5,), outcome=Outcome.FINISHED, **changes
):
    slot = variable(4, maker=Owner.OPTIMIZER)
    end = last(entries, slots, **changes)
    return run(START, WEIGHT, slot, updated(), step(*begins), *events, end, outcome=outcome)


def restarted(
    *events, entries=(5.0,), slots=(1.0,), begins=(2.0,), before=(), loads=True, **fields
):
    changes = {name: fields.pop(name) for name in ("steps", "learning_rate") if name in fields}
    slot = variable(4, maker=Owner.OPTIMIZER)
    return run(
        START,
        WEIGHT,
        slot,
        *([LOAD] if loads else []),
        updated(),
        *events,
        step(*begins),
        last(entries, slots, **changes),
        **{
            "role": Role.RESTARTED,
            "moment": Moment.BETWEEN,
            "before": run(START, WEIGHT, updated(), *before, SAVE, outcome=Outcome.KILLED),
            "whole": whole(),
        }
        | fields,
    )


def found(recording, again=None):
    """The messages about a restart and the notes; the whole run repeats itself, or gives `again`."""
    answer = again or recording.whole
    diagnosis = diagnose(Runs([recording]), lambda _: replace(answer))
    messages = [str(each.message) for each in diagnosis.findings if each.mode == "restart"]
    return messages, [*map(str, diagnosis.notes)]


def test_a_program_that_goes_on_as_it_would_have_is_right():
    assert found(restarted()) == ([], [])


def test_a_program_that_begins_from_zero_is_not_accused():
    messages, notes = found(restarted(loads=False, begins=(0.5,), entries=(7.0,)))
    assert messages == []
    assert notes == ["started again, it begins from zero, without what it has saved"]


def test_a_program_that_goes_on_with_its_next_model_does_not_begin_from_zero():
    """Each window of a series has a model of its own, and a list says which are done."""
    again = restarted(begins=(0.5,), loads=False)
    second = variable(9), updated(trains=(9,))
    windows = replace(again.whole, events=(*second, *again.whole.events))
    for whole, is_next in ((windows, True), (again.whole, False)):
        fewer = replace(again, steps=3, whole=replace(whole, steps=8))
        assert any("from zero" in note for note in found(fewer)[1]) is not is_next


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"learning_rate": "0.2"},
            "it does not end as the whole run: the learning rate is 0.2 instead of 0.1",
        ),
        ({"entries": (7.0,)}, "it does not end as the whole run: v1 differs by 0.29"),
        ({"slots": (2.0,)}, "it does not end as the whole run: v4 differs by 0.5"),
    ],
    ids=["learning rate", "weights", "slots"],
)
def test_what_differs_after_a_restart_is_a_finding(changes, message):
    assert found(restarted(**changes))[0] == [message]
    assert found(restarted(**changes, moment=Moment.DURING))[0] == [message]
    # A program that does not repeat itself is not accused of numbers.
    assert found(restarted(**changes), again=whole(entries=(6.0,)))[0] == []


@pytest.mark.parametrize(
    "events, words",
    [
        ([OrderDrawn(OTHER, "shuffle")], "the order of the examples (line 20)"),
        ([PartUsed(OTHER, Part.RANDOM_NUMBERS)], "numbers in a step (line 20)"),
        ([variable(7, maker=Owner.RANDOM), written(number=7)], "seeds of layers"),
    ],
)
def test_what_is_drawn_at_random_is_named_and_no_finding(events, words):
    messages, notes = found(restarted(*events, entries=(7.0,)))
    assert messages == []
    assert notes[-1].endswith(f"what it draws at random may be the reason: {words}")


@pytest.mark.parametrize("iterators, messages", [((1, 1), 0), ((1, 2), 1), ((0, 0), 1)])
def test_an_iterator_that_goes_on_after_a_save_gives_other_examples(iterators, messages):
    saves = [SavedAgain("ck", 2 * place, made) for place, made in enumerate(iterators, 1)]
    found_messages, notes = found(restarted(*saves, entries=(7.0,)))
    assert len(found_messages) == messages
    told = "which a restart begins anew, while the whole run reads on after a save"
    assert notes[-1:] == [] if messages else notes[-1].endswith(told)


def test_ends_at_different_steps_are_not_compared():
    messages, notes = found(restarted(steps=12, entries=(7.0,)))
    assert messages == []
    assert notes[0].startswith("started again, its optimizers end at step 12, and at step 8 in")
    assert "makes all steps" not in notes[0]


def test_of_several_optimizers_the_steps_of_each_are_told():
    again = restarted()
    others = [replace(RATES, steps=steps, variables=(steps,)) for steps in (9, 12)]
    end = replace(again.events[-1], optimizers=(RATES, *others))
    note = found(replace(again, events=(*again.events[:-1], end)))[1][0]
    assert "its optimizers end at steps 8, 9 and 12, and at step 8 in the run" in note


def test_a_part_of_the_training_that_had_ended_is_not_made_again():
    """Such as a fold: a restart makes the steps of the others."""
    again = restarted()
    second = replace(RATES, variables=(9,))
    end = replace(again.whole.events[-1], optimizers=(RATES, second))
    whole = replace(again.whole, events=(*again.whole.events[:-1], end))
    note = found(replace(again, whole=whole))[1][0]
    assert note.startswith("started again, it makes the steps of 1 of 2 optimizers of the run")


def test_steps_that_are_all_made_once_more_are_told():
    killed = run(START, WEIGHT, updated(), replace(SAVE, optimizers=(state(steps=4),)))
    told = "it has loaded what was saved at step 4, and makes all steps of a whole run after that"

    def note(steps, *events):
        again = restarted(*events, steps=steps, entries=(7.0,))
        return found(replace(again, before=killed))[1][0]

    assert told in note(12)
    assert told in note(12, OrderDrawn(OTHER, "shuffle"))
    assert "loaded" not in note(13)
    at_first, later = (CallbackState(OTHER, "EarlyStopping", False, 1.0, 0, "", n) for n in (0, 1))
    assert told in note(12, at_first, later) and told not in note(12, later)


def note_on_all_steps(path, *lines):
    """The note on a restart that makes all steps of a whole run on these lines, after what it has loaded."""
    killed = run(START, WEIGHT, updated(), replace(SAVE, optimizers=(state(steps=4),)))
    again = restarted(steps=12, entries=(7.0,))
    events = [
        replace(each, location=stack(path, *lines)) if each == updated() else each
        for each in again.events
    ]
    again = replace(again, events=tuple(events), before=killed)
    (note,) = [each for each in found(again)[1] if "loaded" in each]
    return note


def test_a_fit_that_makes_all_steps_once_more_is_told_with_its_line(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("model.fit(data, epochs=9)\n")
    note = note_on_all_steps(path, 1)
    assert "after that at line 1: begin with the saved epoch" in note
    assert "`initial_epoch=`" in note


def test_a_loop_that_makes_all_steps_once_more_is_told_with_its_header(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def step(x):\n    adam.apply(x)\nfor epoch in range(9):\n    for x in data:\n        step(x)\n"
    )
    assert "after that at line 3)" in note_on_all_steps(path, 2, 5)


def test_a_program_that_cannot_be_started_again():
    raised = ExceptionRaised(LINE, "OSError", "Traceback\nOSError: truncated file", ())
    failed = restarted(raised, outcome=Outcome.RAISED, status=1)
    assert found(failed)[0] == ["started again, it fails: OSError: truncated file"]
    killed_in_save = replace(failed, moment=Moment.DURING, whole=whole(SAVE))
    assert found(killed_in_save)[0] == [
        "ck is written under its final name, so that a kill during the save leaves a part of it: "
        "started again, it fails: OSError: truncated file"
    ]
    by_keras = replace(SAVE, kind=SaveKind.MODEL)
    assert found(replace(killed_in_save, whole=whole(by_keras)))[0] == []
    # Another fault at the same line does not explain it.
    known = [observed("fm05", killed_in_save, SAVE.location, "another fault")]
    other = Rule("fm05", lambda _: (each for each in known))
    rules = replace(mode_rules(), rules=[other])
    diagnosis = diagnose(Runs([killed_in_save]), rules=rules)
    assert [each.mode for each in diagnosis.findings] == ["fm05", "restart"]
    also_fails = replace(failed, whole=whole(outcome=Outcome.RAISED))
    assert found(also_fails)[0] == []


def test_a_failure_that_no_half_file_explains():
    """After a whole save, too, the program fails there."""
    raised = ExceptionRaised(LINE, "OSError", "Traceback\nOSError: no such file", ())
    failed = restarted(raised, outcome=Outcome.RAISED, status=1)
    killed_in_save = replace(failed, moment=Moment.DURING, whole=whole(SAVE))

    def messages(*recordings):
        return [str(each.message)[:20] for each in diagnose(Runs(recordings)).findings]

    assert messages(failed, killed_in_save) == ["started again, it fa"]
    at = (LINE[0]._replace(line=30),)
    elsewhere = replace(failed, events=(*failed.events, replace(raised, location=at)))
    assert len(messages(elsewhere, killed_in_save)) == 2


LOG = LookedFor(LINE, "log.csv", False)
MISSING = ExceptionRaised(LINE, "FileNotFoundError", "FileNotFoundError: [Errno 2]: 'log.csv'", ())


def without_log(*events, raised=MISSING, **changes):
    """A restart that reads a file that is written just after the save."""
    end = {"moment": Moment.AFTER, "outcome": Outcome.RAISED, "status": 1}
    return restarted(*events, raised, **(end | changes))


@pytest.mark.parametrize(
    "later, is_gap",
    [
        ({}, True),
        ({"moment": Moment.DURING}, True),
        ({"moment": Moment.AFTER}, False),
        ({"outcome": Outcome.RAISED}, False),
        ({"role": Role.AGAIN}, False),
    ],
)
def test_a_file_that_is_written_just_after_a_save(later, is_gap):
    diagnosis = diagnose(Runs([without_log(LOG), restarted(**later)]))
    messages = [str(each.message) for each in diagnosis.findings if each.mode == "restart"]
    notes = [str(note) for note in diagnosis.notes]
    assert (
        any("killed after the save of ck at line 20 and before it writes log" in e for e in notes)
        == is_gap
    )
    assert any("started again, it fails: FileNotFoundError" in e for e in messages) != is_gap
    assert not any("each worker" in note for note in notes)


@pytest.mark.parametrize(
    "events, raised",
    [
        ((), MISSING),
        ((LOG,), replace(MISSING, traceback="FileNotFoundError: [Errno 2]: 'other.csv'")),
        ((replace(LOG, lists=True),), MISSING),
        ((replace(LOG, path="log"), replace(LOG, path=".")), MISSING),
    ],
    ids=["not looked for", "another file", "a folder that is listed", "parts of its name"],
)
def test_a_failure_that_is_of_no_file_that_was_looked_for(events, raised):
    later = restarted()
    (message,) = diagnose(Runs([without_log(*events, raised=raised), later])).findings
    assert message.fix == ""


def test_what_is_to_be_done_about_a_file_that_a_restart_misses():
    other = replace(LOG, path="other.csv")
    (finding,) = diagnose(Runs([without_log(LOG, other)])).findings
    assert finding.fix.startswith("write log.csv before the save")


@pytest.mark.parametrize("saves, is_later", [([SAVE, SavedAgain("ck", 0)], True), ([SAVE], False)])
def test_a_later_moment_is_during_another_save(saves, is_later):
    chosen = moments.later_moment(run(*saves))
    assert chosen == ({Moment.DURING: ("--die-in-save", "2")} if is_later else {})


# In real processes


@pytest.mark.replayed
@pytest.mark.parametrize(
    "saver, keras, during",
    [
        ("BackupAndRestore, double", 3, "goes on"),
        ("BackupAndRestore", 3, "fails"),
        ("CheckpointManager", 2, "goes on"),
    ],
)
def test_a_program_that_was_killed_goes_on(tmp_path, saver, keras, during):
    examination = examined(tmp_path, program(saver), keras)
    ends = outcomes(examination)
    assert ends == {Moment.AFTER: "goes on", Moment.BETWEEN: "goes on", Moment.DURING: during}
    half = [note for note in examination.notes if "a kill during the save leaves a part" in note]
    assert examination.findings == [] and examination.notes == half
    assert examination.failure == ""
    assert bool(half) == (during == "fails")


@pytest.mark.replayed
@pytest.mark.parametrize("saver, is_its_own", [("NumPy", True), ("save, .keras", False)])
def test_half_a_file_that_a_line_of_the_program_has_written(saver, is_its_own, tmp_path):
    """Keras writes each file under its final name: a program that has it save is not to blame."""
    examination = examined(tmp_path, program(saver), 3)
    assert outcomes(examination)[Moment.DURING] == "fails" and examination.failure == ""
    assert ("restart" in [each.mode for each in examination.findings]) == is_its_own
    notes = [note for note in examination.notes if "saved at line" in note]
    assert bool(notes) != is_its_own


@pytest.mark.replayed
def test_a_restart_is_made_without_being_asked_where_a_program_looks_for_its_saves(tmp_path):
    examination = examined(tmp_path, program("save, .keras"), 3, restart=None)
    assert outcomes(examination) == {Moment.BETWEEN: "goes on"}
    plain = examined(tmp_path, program("save, .keras"), 3, restart=False)
    assert outcomes(plain) == {}


FITS = """
import os, time
import numpy as np, tensorflow as tf
x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
NEW_BACKUP = f"""{FITS}
model.fit(x, y, epochs=4, batch_size=2, verbose=0, callbacks=[
    tf.keras.callbacks.BackupAndRestore(f"backup_{{time.time()}}"),  # wrong
])
"""
NEW_LOGS = f"""{FITS}
os.makedirs(logs := f"logs_{{time.time()}}")
model.fit(x, y, epochs=4, batch_size=2, verbose=0, callbacks=[
    tf.keras.callbacks.CSVLogger(logs + "/history.csv"),
    tf.keras.callbacks.ModelCheckpoint(logs + "/{{epoch}}.keras"),
    tf.keras.callbacks.BackupAndRestore("backup"),
])
"""
OPTIONAL = f"""{FITS}
if os.path.exists("pretrained/model.keras"):
    model = tf.keras.models.load_model("pretrained/model.keras")
if os.path.isfile("config.json"):
    print(open("config.json").read())
if not os.path.exists("cache.npy"):
    print("no cache")
model.fit(x, y, epochs=4, batch_size=2, verbose=0, callbacks=[
    tf.keras.callbacks.ModelCheckpoint("model.keras"),
])
"""
TWO_PHASES = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(16, 3)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(4)
strategy = tf.distribute.MirroredStrategy()
data = strategy.experimental_distribute_dataset(data)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])


class Phase:
    def __init__(self, model, folder):
        with strategy.scope():
            self.model, self.optimizer = model, tf.keras.optimizers.Adam(0.01)
            self.optimizer.build(model.trainable_variables)
        if folder:
            parts = {"model": model, "optimizer": self.optimizer}
            checkpoint = tf.train.Checkpoint(**parts)
            self.manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1)
            checkpoint.restore(self.manager.latest_checkpoint)

    def step(self, batch):
        with tf.GradientTape() as tape:
            losses = tf.square(self.model(batch[0]) - batch[1])[:, 0]
            loss = tf.nn.compute_average_loss(losses, global_batch_size=4)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))

    @tf.function
    def steps(self, batch):
        strategy.run(self.step, args=(batch,))

    def train(self):
        for batch in data:
            self.steps(batch)


first = Phase(model, "first")
first.train()
first.manager.save()
second = Phase(model, "second")
second.train()
second.manager.save()
"""
CHECKPOINT = "checkpoint = tf.train.Checkpoint("
WITHOUT_LATE_OPTIMIZER = TWO_PHASES.replace(
    f"{CHECKPOINT}**parts)",
    f'{CHECKPOINT}model=model)  # wrong\n            if folder == "first":\n                {CHECKPOINT}**parts)',
)
ONE_CHECKPOINT = TWO_PHASES.replace('"second"', '""').replace("second.manager.save()\n", "")
DELETES_ALL = f"{TWO_PHASES}tf.io.gfile.rmtree('first')\ntf.io.gfile.rmtree('second')\n"
ENDS_ONCE = f"{TWO_PHASES}open('done', 'x').close()\n"
GOES_ON = f"""{FITS}
import glob
done = sorted(glob.glob("w-*.weights.h5"))
if done:
    model.load_weights(done[-1])
model.fit(x, y, epochs=4, initial_epoch=len(done), batch_size=2, verbose=0, callbacks=[
    tf.keras.callbacks.ModelCheckpoint("w-{{epoch}}.weights.h5", save_weights_only=True),
])
"""
COUNTS_ANEW = GOES_ON.replace("initial_epoch=len(done), ", "").replace(
    "callbacks=[", "callbacks=[  # wrong"
)
PRINTS_ANEW = f"""{FITS}
epoch = tf.Variable(0)
batches = tf.Variable(0)
checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)  # wrong
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)
if manager.latest_checkpoint:
    checkpoint.restore(manager.latest_checkpoint)
while model.optimizer.iterations.numpy() < 16:
    batches.assign(0)
    for begin in range(0, 8, 2):
        model.train_on_batch(x[begin:begin + 2], y[begin:begin + 2])
        batches.assign_add(1)
    epoch.assign_add(1)
    print("epoch", epoch.numpy(), "ends with batch", batches.numpy())
    manager.save()
"""
PRINTS_ON = PRINTS_ANEW.replace("model.optimizer)  # wrong", "model.optimizer, epoch=epoch)")

LOADS_ELSEWHERE = f"""{FITS}
import json
os.makedirs("runs/saved", exist_ok=True)
done = json.load(open("done.json")) if os.path.exists("done.json") else 0
if done:
    model.load_weights("runs/last.weights.h5")  # wrong
for epoch in range(done, 4):
    model.fit(x, y, batch_size=2, verbose=0)
    model.save_weights("runs/saved/last.weights.h5")
    with open("done.json", "w") as file:
        json.dump(epoch + 1, file)
"""
LOADS_IT = LOADS_ELSEWHERE.replace("runs/last.weights.h5", "runs/saved/last.weights.h5").replace(
    "  # wrong", ""
)
MOVES_IT = LOADS_ELSEWHERE.replace("  # wrong", "").replace(
    "    with open",
    '    os.replace("runs/saved/last.weights.h5", "runs/last.weights.h5")\n    with open',
)

SAVES_LAST = f"""{FITS.replace('"sgd"', '"adam"')}
done = 0
if os.path.exists("last.keras"):
    model = tf.keras.models.load_model("last.keras")
    done = int(model.optimizer.iterations) // 4
    model.compile("adam", "mse")  # wrong
model.fit(x, y, epochs=done + 3, initial_epoch=done, batch_size=2, verbose=0, callbacks=[
    tf.keras.callbacks.ModelCheckpoint("best.weights.h5", save_weights_only=True),
])
model.save("last.keras")
"""
GOES_ON_FROM_LAST = SAVES_LAST.replace('    model.compile("adam", "mse")  # wrong\n', "")

COUNTS_ALONE = """
import tensorflow as tf
x, y = tf.random.stateless_normal((8, 3), (1, 2)), tf.ones((8, 1))
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.05)
epoch = tf.Variable(0)
checkpoint = tf.train.Checkpoint(epoch=epoch)  # wrong
manager = tf.train.CheckpointManager(checkpoint, "saved", 2)
checkpoint.restore(manager.latest_checkpoint)
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
while int(epoch.numpy()) < 6:
    print(float(step()), float(step()))
    epoch.assign_add(1)
    manager.save()
"""
COUNTS_BESIDE = COUNTS_ALONE.replace("epoch=epoch)  # wrong", "epoch=epoch, model=model)")

RESUMES_A_MODEL = f"""{FITS}
import pickle


class Epochs(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        pickle.dump(epoch, open("epoch.pkl", "wb"))


class Clock(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.ticks = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.ticks += 1
        if self.ticks % 2 == 1:
            open("last.txt", "w").write(str(epoch))


class Resumed:
    def __init__(self, model):
        self.epoch = pickle.load(open("epoch.pkl", "rb")) if os.path.exists("epoch.pkl") else 0
        is_there = os.path.exists("resumed.keras")
        self.model = tf.keras.models.load_model("resumed.keras") if is_there else model

    def train(self):
        saves = tf.keras.callbacks.ModelCheckpoint("resumed.keras")
        self.model.fit(x, y, epochs=4, initial_epoch=self.epoch, batch_size=2, verbose=0,
                       callbacks=[Clock(), saves, Epochs()])


Resumed(model).train()
"""
SUMS_EPOCHS = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
x = np.random.default_rng(0).random((24, 4)).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, "saved", 2)
checkpoint.restore(manager.latest_checkpoint)


@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch) - 1.0))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def train_epoch():
    seen = 0
    total = 0.0
    for number in range(6):
        batch = x[np.random.choice(24, 4)]
        batch = tf.convert_to_tensor(batch)
        total += step(batch)
        seen += 4
        if number % 3 == 1:
            manager.save()
    print("loss", float(total) / seen)


for epoch in range(2):
    train_epoch()
"""


# These look for what they save before they save anything, so that one restart is made without being asked. Others are restarted
# at several moments.
UNASKED = (
    "two phases",
    "a phase without",
    "deletes",
    "fails after",
    "new",
    "prints",
    "resumes",
    "saves at its end",
    "sums",
)


@pytest.mark.replayed
@pytest.mark.parametrize(
    "text, keras, mode",
    [
        (WITHOUT_LATE_OPTIMIZER, 3, "fm29"),
        (WITHOUT_LATE_OPTIMIZER, 2, "fm29"),
        (TWO_PHASES, 3, "fm29"),
        (ONE_CHECKPOINT, 3, "fm29"),
        (DELETES_ALL, 3, "fm29"),
        (ENDS_ONCE, 3, "fm29"),
        (LOADS_ELSEWHERE, 3, "fm08"),
        (LOADS_ELSEWHERE, 2, "fm08"),
        (LOADS_IT, 3, "fm08"),
        (MOVES_IT, 3, "fm08"),
        (NEW_BACKUP, 3, "fm08"),
        (NEW_BACKUP, 2, "fm08"),
        (NEW_LOGS, 3, "fm08"),
        (OPTIONAL, 3, "fm08"),
        (COUNTS_ANEW, 3, "fm05"),
        (GOES_ON, 3, "fm05"),
        (PRINTS_ANEW, 3, "fm05"),
        (PRINTS_ON, 3, "fm05"),
        (SAVES_LAST, 3, "fm29"),
        (GOES_ON_FROM_LAST, 3, "fm29"),
        (COUNTS_ALONE, 3, "fm05"),
        (COUNTS_BESIDE, 3, "fm05"),
        (RESUMES_A_MODEL, 3, "fm05"),
        (SUMS_EPOCHS, 3, "fm05"),
    ],
    ids=[
        "a late checkpoint without the optimizer",
        "a late checkpoint without the optimizer, Keras 2",
        "two phases",
        "a phase without a checkpoint",
        "deletes its checkpoints",
        "fails after its end",
        "loads from another folder",
        "loads from another folder, Keras 2",
        "loads what it has saved",
        "loads what it has moved",
        "new backup",
        "new backup, Keras 2",
        "new logs",
        "optional files",
        "counts anew",
        "goes on with the count",
        "prints the count anew",
        "prints the count as it goes on",
        "saves at its end, and compiles again",
        "saves at its end",
        "saves its count alone",
        "saves its count and the model, and not the optimizer, which keeps nothing",
        "resumes a model that the script has under another name",
        "sums the losses of each epoch, and saves within it",
    ],
)
def test_what_a_program_does_with_its_saves_when_it_is_started_again(
    tmp_path, text, keras, mode, request
):
    name = request.node.callspec.id
    examination = examined(tmp_path, text, keras, None if name.startswith(UNASKED) else True)
    assert outcomes(examination)
    wrong = [line for line, code in enumerate(text.splitlines(), 1) if code.endswith("# wrong")]
    found = [each for each in examination.findings if "during a save" not in str(each.proof)]
    assert [(each.mode, each.line) for each in found] == [(mode, line) for line in wrong]


@pytest.mark.replayed
def test_a_program_that_saves_at_its_end_is_started_again_after_that_without_being_asked(tmp_path):
    examination = examined(tmp_path, SAVES_LAST, 3, restart=None)
    assert [each.mode for each in examination.findings] == ["fm29"]
    assert outcomes(examination) == {Moment.BETWEEN: "starts over"}
