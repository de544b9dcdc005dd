"""The examiner's rule for fm26: a training that goes on with larger steps."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    found,
    loaded,
    modes,
    run,
    saved,
    stack,
    strategy,
    updated,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    DatasetBatched,
    DatasetFromFunction,
    LearningRateWritten,
    ModelCalled,
    ReplicaCountRead,
)

THEN, NOW = ModelCalled(OTHER, 8, 1, (1,)), ModelCalled(OTHER, 8, 2, (2,))


def goes_on(size, trains=2):
    then, now = ModelCalled(OTHER, 8, 1, (1,)), ModelCalled(OTHER, size, 2, (2,))
    return run(then, saved(held=[1]), loaded(), now, updated(trains=(trains,), steps=9))


def test_a_training_that_goes_on_with_larger_steps():
    (finding,) = found(goes_on(8))
    assert (finding.mode, finding.line) == ("fm26", 20)
    assert "takes in 16 examples on 2 replicas, and 8 before" in str(finding.message)


FEEDS = """\
def data(args, strategy):
    size = args.batch * strategy.num_replicas_in_sync
    return rows.batch(size)
def train(model):
    model(x)
"""


@pytest.mark.parametrize("size, line", [(16, 2), (12, 5)], ids=["batches of that size", "others"])
def test_the_line_that_decides_about_the_batches_is_blamed(tmp_path, size, line):
    path = tmp_path / "train.py"
    path.write_text(FEEDS)
    batched = DatasetBatched(stack(path, 3), size)
    now = replace(NOW, location=stack(path, 5))
    events = THEN, saved(held=[1]), loaded(), batched, now, updated(trains=(2,), steps=9)
    (finding,) = found(run(*events))
    assert (finding.mode, finding.line) == ("fm26", line)


def test_a_training_that_goes_on_with_steps_as_before():
    assert modes(goes_on(4)) == []


@pytest.mark.parametrize(
    "events",
    [
        [THEN, saved(held=[1]), loaded(), replace(NOW, replicas=1)],
        [THEN, saved(held=[1]), loaded(), replace(NOW, location=())],
        [THEN, saved(held=[5]), loaded(), NOW],
        [THEN, saved(held=[1]), loaded(path="ck-2"), NOW],
        [THEN, saved(held=[1]), NOW],
        [saved(held=[1]), loaded(), NOW],
    ],
    ids=[
        "as many replicas",
        "no line",
        "another model saved",
        "another file",
        "not loaded",
        "not called before",
    ],
)
def test_calls_that_do_not_go_on_with_what_was_saved(events):
    assert modes(run(*events, updated(trains=(2,), steps=9))) == []


def test_another_model_is_trained():
    assert modes(goes_on(8, trains=5)) == []


# A batch that grows with every device, by the program's choice


def chosen(devices, examples, rate="0.1", asks=True, later=()):
    role = Role.WATCHED if devices == 2 else Role.COMPARED
    asked = [ReplicaCountRead(LINE)] if asks else []
    called = ModelCalled(OTHER, examples, devices, (2,))
    trained = updated(learning_rate=rate) if rate else written(location=OTHER)
    rates = [LearningRateWritten(OTHER, 6, each) for each in later]
    events = strategy(devices), *asked, called, trained, *rates
    return run(*events, devices=devices, role=role)


@pytest.mark.parametrize(
    "rate, later, lower, said",
    [
        ("0.1", (), (), ", with the same learning rate: a training"),
        ("0.1", (0.05, 0.2), (), ", with the same learning rate: a training"),
        ("0.1", (0.05,), (0.02,), ", with the same learning rate: a training"),
        ("Warmup", (), (), "if its learning rate does not follow"),
        ("", (), (), "if its learning rate does not follow"),
    ],
    ids=["one rate", "of a callback", "lowered by what it sees", "a schedule", "no optimizer"],
)
def test_a_batch_that_grows_while_the_learning_rate_stays_is_a_note(rate, later, lower, said):
    runs = chosen(2, 8, rate, later=(*later, *lower)), chosen(1, 8, rate, later=later)
    diagnosis = diagnose(Runs(runs))
    assert diagnosis.findings == []
    (note,) = [note for note in diagnosis.notes if "fm26" in note]
    assert "8 examples on 1 replica and 16 on 2" in note and said in note


@pytest.mark.parametrize(
    "one, other",
    [
        (chosen(1, 16), chosen(2, 8)),
        (chosen(1, 8), chosen(2, 8, rate="0.2")),
        (chosen(1, 8, later=[0.1, 0.4]), chosen(2, 8, later=[0.1, 0.8])),
        (chosen(1, 8), chosen(2, 8, later=[0.2])),
        (chosen(1, 8, asks=False), chosen(2, 8, asks=False)),
        (chosen(1, 0), chosen(2, 0)),
        (
            chosen(1, 8),
            replace(other := chosen(2, 8), events=(*other.events, DatasetFromFunction(LINE))),
        ),
    ],
    ids=[
        "one batch",
        "scaled rate",
        "scaled by a callback",
        "raised by a callback",
        "not chosen",
        "unknown",
        "batches of replicas",
    ],
)
def test_another_batch_or_another_rate_is_no_note(one, other):
    assert not [note for note in diagnose(Runs([other, one])).notes if "fm26" in note]


@pytest.mark.parametrize("of_more, noted", [(16, True), (8, False)])
def test_batches_of_replicas_that_the_program_enlarges_are_noted(of_more, noted):
    """One device that is told of two replicas takes as many examples as two of them."""
    one, other = chosen(1, 8), chosen(2, 8)
    other = replace(other, events=(*other.events, DatasetFromFunction(LINE)))
    matched = replace(chosen(1, of_more), role=Role.MATCHED, plain=one)
    notes = [note for note in diagnose(Runs([other, one, matched])).notes if "fm26" in note]
    assert ["8 examples on 1 replica and 16 on 2" in note for note in notes] == [True] * noted
