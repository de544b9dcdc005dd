"""The examiner's rule for fm54: what callbacks forget when a program is started again, or `fit` continues from a backup."""

import functools
import math
from dataclasses import replace

import edited_programs
import pytest
import recorded
from recorded import (
    LINE,
    OTHER,
    ended,
    found,
    loaded,
    modes,
    run,
    saved,
    stack,
    updated,
    variable,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    CallbackState,
    ExamplesTaken,
    FileMoved,
    Held,
    LearningRateWritten,
    OptimizerState,
    Outcome,
    Owner,
    ProgramState,
    SavedAgain,
)

FIT = "model.fit(data, callbacks=[backup, best])\n"


def callback(name="ModelCheckpoint", best=0.4, begins=False, epoch=3, **changes):
    path = "best.keras" if name == "ModelCheckpoint" else ""
    usual = CallbackState(OTHER, name, begins, best, 0, path, epoch, "loss")
    return replace(usual, **changes)


HELD = (callback(),)
BEGINS = callback(best=math.inf, begins=True, epoch=-1)
SAVED = saved(path="best.keras")


def restarted(*events, before, **fields):
    killed = run(*before, saved(path="backup"), outcome=Outcome.KILLED)
    role = {"role": Role.RESTARTED, "moment": Moment.BETWEEN, "before": killed, "whole": run()}
    return run(*events, **role | fields)


def messages(*recordings):
    return [str(each.message) for each in found(*recordings) if each.mode == "fm54"]


def test_each_callback_has_a_fix_of_its_own():
    for name, words in (("EarlyStopping", "`best` and `wait`"), ("ReduceLROnPlateau", "cooldown")):
        held = callback(name, path="")
        again = replace(BEGINS, callback=name, path=""), callback(name, best=0.9, path="")
        (finding,) = [
            each for each in found(restarted(*again, before=(held,))) if each.mode == "fm54"
        ]
        assert words in finding.fix


@pytest.mark.parametrize(
    "state, other, count",
    [
        ({"best": math.inf}, (), 1),
        ({"best": math.inf, "callback": "EarlyStopping"}, (), 0),
        ({"best": 0.4}, (), 0),
        ({"best": math.inf}, (SAVED,), 0),
        ({"best": math.inf, "path": "best-{epoch}.keras"}, (saved(path="best-3.keras"),), 0),
        ({"best": math.inf, "path": "best-{epoch}.keras"}, (), 1),
        ({"best": math.inf, "path": "logs/cp-{epoch}"}, (saved(path="logs/workertemp_1/cp-3"),), 0),
        ({"best": math.inf, "path": "logs/{epoch}"}, (saved(path="logs/3"),), 0),
        ({"best": math.inf, "path": "logs/cp-{epoch}"}, (saved(path="logs/last/3"),), 1),
        ({"best": math.inf, "path": "logs/cp-{epoch}"}, (saved(path="logs2/cp-3"),), 1),
    ],
    ids=[
        "nothing",
        "another callback",
        "a value",
        "a file",
        "a numbered file",
        "none of them",
        "a folder of a worker's own",
        "only a number",
        "another name",
        "another folder",
    ],  # fmt: skip
)
def test_a_callback_that_never_saves_is_noted(state, other, count):
    states = replace(BEGINS, path=state.get("path", "best.keras")), callback(**state)
    notes = diagnose(Runs([run(*states, *other)])).notes
    assert len([note for note in notes if "has saved nothing in 1 epochs" in str(note)]) == count


FIRST = replace(BEGINS, steps=0), callback(best=0.4)
SECOND = BEGINS, callback(best=0.9)


@pytest.mark.parametrize(
    "events, count",
    [
        ((*FIRST, *SECOND, SAVED), 1),
        ((*FIRST, BEGINS, callback(best=0.3), SAVED), 0),
        ((*FIRST, *SECOND), 0),
        ((*FIRST, loaded(path="best.keras"), *SECOND, SAVED), 1),
        ((*FIRST, variable(2), loaded(path="best.keras"), *SECOND, SAVED), 1),
        ((*FIRST, loaded(path="start.keras"), *SECOND, SAVED), 0),
        ((*FIRST, saved(path="first.keras"), *SECOND, SAVED), 0),
        ((*FIRST, SavedAgain("first.keras", 3), *SECOND, SAVED), 0),
        ((updated(), *FIRST, BEGINS, updated(), callback(best=0.9), SAVED), 1),
        ((updated(), *FIRST, BEGINS, updated(trains=(7,)), callback(best=0.9), SAVED), 0),
        ((*FIRST, variable(3, maker=Owner.LAYER), *SECOND, SAVED), 0),
        ((*FIRST, FileMoved(LINE, "best.keras", "first.keras"), *SECOND, SAVED), 0),
        ((*FIRST, replace(BEGINS, best=0.4), callback(best=0.4), SAVED), 0),
    ],
    ids=[
        "worse",
        "better",
        "no file",
        "the best loaded",
        "the best loaded into a new model",
        "a load of other weights",
        "saved under another name",
        "saved there again",
        "the same model with a new optimizer",
        "a model that was made before",
        "a new model",
        "a renamed file",
        "the same callback",
    ],
)
def test_a_best_model_that_a_new_callback_replaces_is_noted(events, count):
    notes = diagnose(Runs([run(*events)])).notes
    assert len([note for note in notes if "begins without the best value" in str(note)]) == count


# Programs that are started again


def test_early_stopping_that_forgets_how_long_it_has_waited():
    early = functools.partial(callback, "EarlyStopping")
    held, begins = early(wait=2), early(best=math.inf, begins=True)
    (finding,) = found(restarted(begins, early(best=0.6), before=[held]))
    assert (finding.mode, finding.line) == ("fm54", 20)
    assert str(finding.message) == (
        "EarlyStopping loses its best loss 0.4, and that 2 epochs have passed without a better one: "
        "after a restart it takes 0.6 for the best"
    )
    assert "killed" in str(finding.proof)


@pytest.mark.parametrize("best, smaller, count", [(0.9, True, 1), (0.3, True, 0), (0.3, False, 1)])
def test_a_best_model_that_a_worse_one_replaces(best, smaller, count):
    held, begins, taken = (
        replace(each, smaller=smaller) for each in (callback(), BEGINS, callback(best=best))
    )
    assert len(messages(restarted(begins, taken, SAVED, before=[held]))) == count


WORSE = callback(best=0.9)


def test_a_program_that_is_started_again_after_its_end():
    ended = replace(
        restarted(BEGINS, WORSE, SAVED, before=[callback()]), role=Role.AGAIN, moment=None
    )
    (finding,) = diagnose(Runs([run()], again=[ended])).findings
    assert (finding.mode, finding.line) == ("fm54", 20)
    assert "it had ended, and was started again" in str(finding.proof)


@pytest.mark.parametrize(
    "recording",
    [
        restarted(BEGINS, WORSE, before=[callback()]),
        restarted(replace(BEGINS, best=0.4), callback(), SAVED, before=[callback()]),
        restarted(BEGINS, WORSE, SAVED, before=[BEGINS]),
        restarted(BEGINS, SAVED, before=[callback()]),
        restarted(BEGINS, WORSE, SAVED, before=[callback(monitor="accuracy")]),
        restarted(BEGINS, WORSE, SAVED, before=[callback()], outcome=Outcome.RAISED),
        replace(restarted(BEGINS, WORSE, SAVED, before=[callback()]), role=Role.WATCHED),
    ],
    ids=[
        "no file is replaced",
        "it knows",
        "there was no best value",
        "no epoch",
        "another value is monitored",
        "it fails",
        "it was not restarted",
    ],
)
def test_restarts_that_lose_nothing(recording):
    assert messages(recording) == []


def plateau(*, waited=0, knows=False, rate="0.1"):
    """A restart that takes a better value than the lost one, and the whole run, which waits two epochs by then."""
    slows = functools.partial(callback, "ReduceLROnPlateau")
    begins = slows(best=0.4 if knows else math.inf, begins=True, epoch=-1)
    whole = run(
        slows(wait=1, epoch=3),
        slows(wait=2, epoch=4),
        ended(optimizers=(recorded.state(learning_rate="0.01"),)),
    )
    after = (
        slows(best=0.3, wait=waited, epoch=4),
        ended(optimizers=(recorded.state(learning_rate=rate),)),
    )
    restart = restarted(begins, *after, before=[slows(wait=1, epoch=3)])
    return replace(restart, whole=whole)


def test_a_callback_that_counts_its_epochs_again():
    assert messages(plateau()) == [
        "ReduceLROnPlateau loses its best loss 0.4: after epoch 4 it has waited 0 epochs, "
        "and 2 in the run that was never stopped"
    ]


@pytest.mark.parametrize(
    "changes",
    [{"waited": 2}, {"knows": True}, {"rate": "0.01"}],
    ids=["it waits as long", "it knows the best value", "nothing follows"],
)
def test_a_callback_that_loses_no_epoch(changes):
    assert messages(plateau(**changes)) == []


def test_what_is_lost_explains_that_the_end_is_another_one():
    assert {each.mode for each in found(restarted(BEGINS, WORSE, SAVED, before=[callback()]))} == {
        "fm54"
    }


# The same process


def resumed(folder, *, text=FIT, first=HELD, second=None, epoch=4):
    """A `fit`, and another one that loads a backup on the first line of a file."""
    path = folder / "train.py"
    path.write_text(text)
    load = loaded(function="load_weights", path="backup/latest", location=stack(path, 1))
    second = second or (BEGINS, load, replace(WORSE, epoch=epoch), SAVED)
    return run(callback(best=math.inf, begins=True), *first, *second)


def test_a_fit_that_continues_from_a_backup(tmp_path):
    (finding,) = found(resumed(tmp_path))
    assert (finding.mode, finding.line) == ("fm54", 20)
    assert str(finding.proof).endswith("`fit` continued from a backup in the same process")


def test_a_fit_that_does_not_continue(tmp_path):
    assert messages(resumed(tmp_path, text="model.load_weights('start')\n")) == []
    assert messages(resumed(tmp_path, epoch=0)) == []
    assert messages(resumed(tmp_path, second=(BEGINS, WORSE, SAVED))) == []
    assert messages(resumed(tmp_path, first=())) == []


# A best value in a name of the program

KEEPS = """\
class Job:
    def __init__(self):
        self.best, self.done = 1.0, 0

    def saves(self, value):
        self.done += 1
        if value < self.best:
            self.best = value
            return True
        return False
"""


def state(path, updates, before_step=False, **values):
    held = (Held(str(path), "Job", name, value) for name, value in values.items())
    return ProgramState(updates, tuple(held), before_step)


def states_after_restart(tmp_path, **values):
    """A program that is killed after 2 of 6 updates, and has these values when it goes on."""
    path = tmp_path / "train.py"
    path.write_text(KEEPS)
    usual = [
        {"done": "2", "best": "0.6"},
        {"done": "4", "best": "0.5"},
        {"done": "6", "best": "0.4"},
    ]
    states = [state(path, 2 * i, **each) for i, each in enumerate(usual, 1)]
    states = [
        state(path, 0, True, done="0", best="1"),
        states[0],
        state(path, 2, True),
        *states[1:],
    ]
    made = variable(1), updated()
    whole = run(*made, saved(path="ck-1"), *states, ended({1: [0.5]}), output="score 0.41")
    taken = ExamplesTaken(LINE, False, 2, 2, (3, 4))
    states_again = state(path, 2, True, **values), state(path, 4, done="2", best="0.55")
    events = loaded(path="ck-1"), *made, taken, *states_again, saved(path="ck-1")
    end = ended({1: [0.7]})
    killed = restarted(*events, end, before=(saved(path="ck-1"),), whole=whole, output="score 0.47")
    return killed, run(*states, devices=1, role=Role.COMPARED)


@pytest.mark.parametrize(
    "values, expected",
    [
        (
            {"done": "2", "best": "1"},
            [("fm54", 3, "best of Job begins again")],
        ),
        (
            {"done": "2", "best": "0.5"},
            [("fm54", 3, "best of Job is not saved, or before it changes")],
        ),
        ({"done": "0", "best": "0.6"}, [("fm05", 3, "done of Job begins again")]),
        ({"done": "2", "best": "0.6"}, []),
    ],
    ids=["a best value", "another best value", "a counter", "nothing"],
)
def test_a_value_of_python_that_a_restart_has_lost(tmp_path, values, expected):
    findings = found(*states_after_restart(tmp_path, **values))
    told = [(each.mode, each.line, str(each.message).partition(":")[0]) for each in findings]
    assert told == expected


WAITS = """\
class SlowDown:
    def __init__(self):
        self.waited = tf.Variable(0)
    def on_epoch_end(self):
        self.waited.assign_add(1)
        return error < self.waited
model.fit(
    x, callbacks=[state, slow])
checkpoint = Checkpoint(waited=slow.waited)
"""


@pytest.mark.parametrize(
    "held, lines, first, expected",
    [
        ((3,), (5, 7), 0, 8),
        ((3,), (5,), 0, 5),
        ((3,), (5,), 1, 5),
        ((2,), (5, 7), 0, 9),
        ((2,), (5, 7), 1, 9),
    ],
    ids=["in fit", "in a loop", "with its first value", "not saved", "not saved, its first value"],
)
def test_a_variable_that_is_saved_before_it_changes(tmp_path, held, lines, first, expected):
    path = tmp_path / "train.py"
    path.write_text(WAITS)

    def after(updates, waited, before_step=False):
        held = Held(str(path), "SlowDown", "waited", f"() {waited}")
        return ProgramState(updates, (held,), before_step)

    made = variable(1), variable(3, maker=Owner.USER, location=stack(path, 3)), updated()
    save = saved(path="ck-1", location=stack(path, *lines), made_at=stack(path, 9), held=held)
    states = after(0, first, True), after(2, 1), after(2, 2, True), after(4, 2)
    whole = run(*made, save, *states, ended({1: [0.5]}), output="score 0.31")
    taken = ExamplesTaken(LINE, False, 2, 2, (3, 4))
    states_again = after(2, 1, True), after(4, 1)
    again = loaded(path="ck-1"), *made, taken, *states_again, save, ended({1: [0.5]})
    killed = restarted(*again, before=(*made, save), whole=whole, output="score 0.47")
    before = replace(killed.before, events=killed.before.events[:-1])  # no other save
    other = run(*states, devices=1, role=Role.COMPARED)
    (finding,) = found(replace(killed, before=before), other)
    assert finding.line == expected
    assert ("is saved before it changes" in str(finding.message)) == (3 in held)
    assert ("save waited" in finding.fix) == (2 in held)
    assert ("save below the line that changes it" in finding.fix) == (3 in held)


# A learning rate that follows from what was lost

DECIDES = """\
best = 1.0
checkpoint = Checkpoint(net=net)
while more:
    if error < best:
        best = error
    else:
        optimizer.learning_rate.assign(rate / 2)
    checkpoint.save(path)
"""


def rates(tmp_path, mine="0.1", right="0.05", repeated="0.05", net="(1,) 0.5;", best="0.7"):
    """A program that is killed after 2 of 4 updates, and saves these learning rates after 4 when it goes on."""
    path = tmp_path / "train.py"
    path.write_text(DECIDES)

    def after(updates, rate, net="(1,) 0.5;", best="0.6"):
        names = Held("", "", "net", net), Held(str(path), "", "best", best)
        made_at = stack(path, 2, function="<module>")
        optimizer = (OptimizerState("SGD", (1,), updates, (4, 5), rate),)
        return ProgramState(updates, names), saved(made_at=made_at, optimizers=optimizer)

    made = variable(1), updated()
    end = ended({1: [0.5]})
    whole = run(*made, *after(2, "0.1"), *after(4, right), end)
    again = run(*made, *after(2, "0.1"), *after(4, repeated), end, devices=1, role=Role.COMPARED)
    events = loaded(path="ck-1"), *made, *after(4, mine, net, best)
    killed = restarted(*events, end, before=after(2, "0.1"), whole=whole)
    stopped = replace(killed.before, events=killed.before.events[:-1])  # no other save
    return replace(killed, before=stopped), again


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, [("fm54", 1)]),
        ({"best": "0.6"}, [("fm54", 2)]),
        ({"mine": "0.05"}, []),
        ({"net": "(1,) 0.4;"}, []),
        ({"repeated": "0.1"}, []),
    ],
    ids=["a name", "a variable", "the same rate", "other weights", "not repeated"],
)
def test_a_rate_that_a_restart_decides_otherwise(tmp_path, fields, expected):
    assert modes(*rates(tmp_path, **fields)) == expected


@pytest.mark.parametrize(
    "decided, rate, expected",
    [(7, "0.1", [("fm54", 1)]), (7, "0.05", []), (8, "0.1", [("restart", 20)])],
    ids=["by the value", "the same rate", "by no value"],
)
def test_a_rate_that_is_decided_before_the_next_save(tmp_path, decided, rate, expected):
    """The value is set again before that save, and has then the value of the whole run."""
    path = tmp_path / "train.py"
    path.write_text(DECIDES)

    def after(updates, best, before_step=False):
        return ProgramState(updates, (Held(str(path), "", "best", best),), before_step)

    def end(rate):
        optimizers = (recorded.state(learning_rate=rate),)
        return ended({1: [0.5]}, optimizers=optimizers)

    made = variable(1), updated()
    lowers = LearningRateWritten(stack(path, decided), 5, 0.05)
    begins = after(0, "1", before_step=True), after(2, "0.6")
    whole = run(*made, *begins, lowers, after(4, "0.5"), end("0.05"), output="rate 0.05")
    again = loaded(path="ck-1"), *made, after(2, "1", before_step=True), after(4, "0.5"), end(rate)
    goes_on = after(2, "0.6", before_step=True)
    whole = replace(whole, events=(*whole.events[:4], goes_on, *whole.events[4:]))
    killed = restarted(*again, before=[saved()], whole=whole, output=f"rate {rate}")
    findings = diagnose(Runs([killed]), lambda _: whole).findings
    assert [(each.mode, each.line) for each in findings] == expected


# In real processes

BEGIN = """
import tensorflow as tf

x = tf.ones((8, 1))
callbacks = tf.keras.callbacks


def new_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(tf.keras.optimizers.SGD(0.125), "mse")
    return model


def fit(model, *more, **options):
    best = callbacks.ModelCheckpoint("best.keras", save_best_only=True)
    early = callbacks.EarlyStopping("val_loss", patience=9)
    data = {"x": x, "y": 2 * x, "validation_data": (x, x), "verbose": 0}
    model.fit(**data, **options, callbacks=[*more, best, early])


def backup():
    return callbacks.BackupAndRestore("backup", delete_checkpoint=False)

"""
RETRIED = "fit(new_model(), backup(), epochs=4)\nfit(new_model(), backup(), epochs=6)\n"
FOLDS = "for fold in range(2):\n    fit(new_model(), epochs=4 - fold)\n"
TUNED = """
model = new_model()
fit(model, epochs=4)
model.optimizer.learning_rate = 0.01
fit(model, epochs=6, initial_epoch=4)
"""
LOADED = """
fit(new_model(), epochs=4)
model = tf.keras.models.load_model("best.keras")
fit(model, epochs=4)
"""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "text, expected",
    [(RETRIED, ["fm54", "fm54"]), (FOLDS, []), (TUNED, []), (LOADED, [])],
    ids=["continued from a backup", "folds", "fine-tuning", "another training of the best model"],
)
def test_programs(tmp_path, text, expected):
    findings = edited_programs.examined(tmp_path, BEGIN + text).findings
    assert [each.mode for each in findings] == expected


@pytest.mark.replayed
def test_a_program_that_is_killed(tmp_path):
    """After the first epoch, the only better one, in the second of four steps each."""
    text = BEGIN + "fit(new_model(), backup(), epochs=3, batch_size=2)\n"
    findings = edited_programs.examined(tmp_path, text).findings
    assert {each.mode for each in findings} == {"fm54"}
    assert all("it was killed" in str(each.proof) for each in findings)


# Repairs

HEAD = "import tensorflow as tf\n"


def test_a_class_that_keeps_the_best_value():
    text = "early = tf.keras.callbacks.EarlyStopping('loss')\nmodel.fit(x, callbacks=[early])\n"
    removes, keeps = edited_programs.repaired("fm54", HEAD, text, 2)
    for made in (removes, keeps):
        compile(made, "train.py", "exec")
        assert "class RememberingEarlyStopping(tf.keras.callbacks.EarlyStopping):\n" in made
        assert "            self.best, self.wait = map(float, " in made
        assert made.endswith(text.replace("tf.keras.callbacks.", "Remembering"))
    assert "gfile.remove" in removes and "gfile.remove" not in keeps


def test_a_class_that_keeps_a_cooldown():
    text = "lower = tf.keras.callbacks.ReduceLROnPlateau('loss')\nmodel.fit(x, callbacks=[lower])\n"
    made = edited_programs.repaired("fm54", HEAD, text, 2)[0]
    assert "            self.best, self.wait, self.cooldown_counter = map(float, " in made


def test_a_class_in_front_of_the_function_that_makes_the_callback():
    text = "def train():\n    return keras.callbacks.ModelCheckpoint('best.keras')\n"
    made = edited_programs.repaired("fm54", HEAD, text, 3)[0]
    assert made.startswith("class RememberingModelCheckpoint(keras.callbacks.ModelCheckpoint):\n")
    assert "            self.best, = map(float, " in made


def test_a_callback_that_is_made_elsewhere_gets_no_repair():
    assert edited_programs.repaired("fm54", HEAD, "best = new_callback()\n", 2) == []
