"""The examiner's rule for fm53: the same examples for every replica."""

from dataclasses import replace
from importlib import import_module

import pytest
import recorded
from recorded import LINE, OTHER, answering, found, modes, run, stack, strategy, updated
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import FULL_BATCHES
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    BatchTaken,
    DatasetBatched,
    DatasetFromFunction,
    ExceptionRaised,
    GradientsApplied,
    InputShared,
    ModelCalled,
    Outcome,
    ReplicaCountRead,
)
from strategy_clinic.observer.replacements import Replacement

rule = import_module("strategy_clinic.modes.fm53_same_work_on_every_replica.rule")
VALUES = "experimental_distribute_values_from_function"
TRAINS = updated(trains=(1,))
SHARED, CALLED = InputShared(LINE, "run", (16,)), ModelCalled(OTHER, 16, 2, (1,))


# Batches of which a step has more examples on more devices


def pair(*events, examples, sizes=(16,)):
    """Runs on one and two devices whose steps have these examples."""
    made = [DatasetBatched(OTHER, size) for size in sizes]
    one = run(ModelCalled(LINE, examples[0], 1, (1,)), TRAINS, *made, devices=1, role=Role.COMPARED)
    calls = ModelCalled(LINE, examples[1] // 2, 2, (1,))
    return run(strategy(), calls, TRAINS, *made, *events), one


@pytest.mark.parametrize(
    "runs, line",
    [
        (pair(examples=(16, 32)), 20),
        (pair(examples=(16, 16)), None),
        (pair(examples=(16, 32), sizes=()), None),  # of a number of GPUs, perhaps
        (pair(DatasetFromFunction(LINE), examples=(16, 32)), None),  # fm21
        (pair(examples=(16, 32), sizes=(8,)), None),
    ],
    ids=["batches", "divided", "arrays", "in functions", "another size"],
)
def test_each_replica_has_the_whole_batch(runs, line):
    found_lines = [each.line for each in found(*runs) if each.mode == "fm53"]
    assert found_lines == ([line] if line else [])


@pytest.mark.parametrize(
    "runs, noted",
    [
        (pair(examples=(16, 32), sizes=()), True),
        (pair(examples=(16, 16), sizes=()), False),
        (pair(examples=(16, 24), sizes=()), False),
        (pair(ReplicaCountRead(LINE), examples=(16, 32), sizes=()), False),
        (pair(SHARED, examples=(16, 32), sizes=()), False),
        (pair(examples=(16, 32), sizes=(8,)), False),
    ],
    ids=["arrays", "divided", "another size", "their number is read", "tensors", "a dataset"],
)
def test_steps_that_grow_with_the_devices_are_noted(runs, noted):
    notes = [note for note in diagnose(Runs(runs)).notes if "fm53" in note]
    assert ["16 examples on 1 replica and 32 on 2" in note for note in notes] == [True] * noted


# Tensors that a step gives to all replicas


@pytest.mark.parametrize(
    "events",
    [
        [SHARED, TRAINS, CALLED],
        [SHARED, BatchTaken(LINE, (8, 8)), TRAINS, CALLED],
        [replace(SHARED, function=VALUES), TRAINS, CALLED],
        [replace(SHARED, function=VALUES), TRAINS, CALLED, BatchTaken(LINE, (8, 8))],
        [DatasetBatched(OTHER, 16), SHARED, TRAINS],
    ],
    ids=[
        "run",
        "run, and batches besides",
        "values",
        "values, and batches later",
        "without a model of Keras",
    ],
)
def test_the_same_batch_on_every_replica(events):
    (finding,) = found(run(strategy(), *events))
    assert (finding.mode, finding.line) == ("fm53", 7)
    assert "each of 2 replicas takes the same 16 examples" in str(finding.message)
    assert "strategy.experimental_distribute_dataset" in finding.fix


@pytest.mark.parametrize(
    "events",
    [
        [SHARED, TRAINS, replace(CALLED, examples=8)],
        [SHARED, TRAINS, replace(CALLED, replicas=1)],
        [SHARED, TRAINS, replace(CALLED, variables=(2,))],
        [replace(SHARED, location=()), TRAINS, CALLED],
        [replace(SHARED, function=VALUES), BatchTaken(LINE, (8, 8)), TRAINS, CALLED],
        [TRAINS, CALLED],
        [DatasetBatched(OTHER, 8), SHARED, TRAINS],
        [DatasetBatched(OTHER, 16), SHARED, TRAINS, replace(CALLED, examples=40)],
        [DatasetBatched(OTHER, 16), SHARED, TRAINS, replace(CALLED, examples=8)],
    ],
    ids=[
        "parts",
        "one replica",
        "another model",
        "no line",
        "beside batches",
        "distributed",
        "no batch, without a model of Keras",
        "no whole number of rows for each example",
        "parts that each replica takes of a whole batch",
    ],
)
def test_what_all_replicas_may_share(events):
    assert modes(run(strategy(), *events)) == []


def test_a_model_that_is_called_with_several_rows_for_each_example():
    rows = DatasetBatched(OTHER, 16), SHARED, TRAINS, replace(CALLED, examples=48)
    assert modes(run(strategy(), *rows)) == [("fm53", 7)]


UNKNOWN = run(
    strategy(), GradientsApplied(OTHER, 1, 0, TRAINS.optimizer), DatasetBatched(OTHER, 16)
)


@pytest.mark.parametrize(
    "full, expected",
    [
        ([SHARED, TRAINS, CALLED], [("fm53", 7)]),
        ([BatchTaken(LINE, (8, 8)), TRAINS, replace(CALLED, examples=8)], []),
    ],
    ids=["shared", "distributed"],
)
def test_batches_whose_size_a_graph_does_not_know(full, expected):
    """Without a smaller last batch it knows them."""
    again = answering(Replace=run(strategy(), *full))
    found = diagnose(Runs([UNKNOWN]), again).findings
    assert [(each.mode, each.line) for each in found] == expected
    assert again.asked == [FULL_BATCHES]


@pytest.mark.parametrize("events", [[CALLED, TRAINS], [strategy(1), TRAINS], []])
def test_a_run_with_full_batches_is_made_only_where_sizes_are_not_known(events):
    again = answering()
    assert diagnose(Runs([run(strategy(1), *events)]), again).findings == again.asked == []


# Methods of Keras for one batch

ON_BATCH = """\
model.train_on_batch(x, y)
out = model.predict_on_batch(x)
out = model.predict(x, batch_size=8)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(ON_BATCH)
    return tmp_path / "train.py"


JUDGES = """\
def judge_all(later):
    for batch in later:
        strategy.run(judge, args=batch)
judge_all(dataset)
print(f"of {asked.result()} loans")
"""


def judged(path, devices, asked, judge, sizes):
    """A run that prints how many examples it has judged, and calls a model with so many of them on each replica."""
    at = (*stack(path, 3, 2, function="judge_all"), *stack(path, 4))
    batches = [DatasetBatched(LINE, size) for size in sizes]
    call, taken = ModelCalled(at, judge, devices, (1,)), BatchTaken(LINE, (8 // devices,) * devices)
    output = f"of {asked:.1f} loans\n"
    return recorded.trained(0.5, taken, *batches, call, devices=devices, output=output)


@pytest.mark.parametrize(
    "asked, judge, sizes, known, expected",
    [
        (256, 64, (8, 64), True, [("fm53", 4)]),
        (256, 64, (8, 64), False, [("fm53", 4)]),
        (256, 32, (8, 64), True, [("fm44", 5)]),
        (256, 64, (8, 128), True, [("fm44", 5)]),
        (128, 64, (8, 64), True, []),
    ],
    ids=["whole", "of a size that no graph knows", "divided", "larger batches", "the same count"],
)
def test_an_evaluation_that_each_replica_makes(tmp_path, asked, judge, sizes, known, expected):
    path = tmp_path / "train.py"
    path.write_text(JUDGES)
    full = {1: judged(path, 1, 128, 64, (8, 64)), 2: judged(path, 2, asked, judge, sizes)}
    seen = full if known else {n: judged(path, n, 128 * n, 1, (8, 64)) for n in full}

    def answer(follow_up):
        is_full = Replacement.FULL_BATCHES in follow_up.change.replacements
        return full[follow_up.recording.devices] if is_full else follow_up.recording

    findings = diagnose(Runs([seen[2], seen[1]]), answer).findings
    assert [(each.mode, each.line) for each in findings] == expected


def called(script, line, replicas, examples=8, **fields):
    call = ModelCalled(stack(script, line), examples, replicas, (1,))
    role = Role.WATCHED if replicas > 1 else Role.COMPARED
    return run(strategy(replicas), call, **{"devices": replicas, "role": role} | fields)


@pytest.mark.parametrize(
    "message, line, expected",
    [
        ("operands could not be broadcast with shapes (16,4) (8,4)", 2, [("fm53", 2)]),
        ("operands could not be broadcast with shapes (24,4) (8,4)", 2, []),
        ("operands could not be broadcast with shapes (16,4) (8,4)", 3, []),
    ],
    ids=["of two replicas", "of three", "another method"],
)
def test_a_result_that_every_replica_returns(script, message, line, expected):
    error = ExceptionRaised(stack(script, 9), "ValueError", f"Traceback\nValueError: {message}", ())
    call = called(script, line, 2)
    failed = replace(call, events=(*call.events, error), outcome=Outcome.RAISED)
    assert modes(failed) == expected


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_whole_batch_for_each_replica(script, replicas):
    (finding,) = found(called(script, 2, replicas), called(script, 2, 1))
    assert (finding.mode, finding.line, finding.devices) == ("fm53", 2, (1, replicas))
    assert str(finding.message).startswith(f"each of {replicas} replicas takes all 8 examples")
    assert "`predict`" in finding.fix


def test_training_on_a_batch_is_reported_once(script):
    at = stack(script, 1)
    events = [InputShared(at, "run", (8,)), TRAINS, ModelCalled(at, 8, 2, (1,))]
    (finding,) = found(run(strategy(), *events), called(script, 1, 1))
    assert (finding.mode, finding.line) == ("fm53", 1)
    assert "`fit`" in finding.fix


@pytest.mark.parametrize(
    "line, one, other",
    [
        (3, {}, {}),
        (2, {}, {"examples": 4}),
        (2, {"examples": 4}, {"examples": 8}),
        (2, {}, {"outcome": Outcome.RAISED}),
        (2, {"role": Role.CHANGED}, {}),
    ],
    ids=["predict", "divided", "a batch for each replica", "not finished", "another run"],
)
def test_a_batch_that_is_distributed(script, line, one, other):
    assert modes(called(script, line, 2, **other), called(script, line, 1, **one)) == []


def test_one_number_of_devices_is_not_compared(script):
    assert modes(called(script, 2, 2), called(script, 2, 2)) == []


# The line to blame

LOOPS = """\
def train(a, b):
    return s.run(step, args=(a, b))
def each(batch):
    return s.run(step, batch)
for n, (x, y) in enumerate(data):
    train(x, y)
    each(batch=x)
for i in range(0, 64, 8):
    train(x[i:i + 8], y)
train(x, y)
while more:
    batch = next(data)
    each(batch)
for batch in data:
    s.run(step, args=(batch,))
    each(*batch)
    each(weights)
def epoch(train_step):
    for n, batch in enumerate(data):
        x, y = batch[0], batch[1]
        train_step(x, y)
"""


@pytest.mark.parametrize(
    "lines, line",
    [
        ([2, 6], 5),
        ([4, 7], 5),
        ([15], 14),
        ([4, 16], 14),
        ([2, 9], 2),
        ([2, 10], 2),
        ([4, 13], 4),
        ([4, 17], 4),
        ([2, 21], 19),
    ],
    ids=[
        "positions",
        "keyword",
        "here",
        "starred",
        "counted",
        "no loop",
        "next",
        "something else",
        "another name",
    ],
)
def test_the_line_is_the_loop_over_what_is_given(tmp_path, lines, line):
    path = tmp_path / "train.py"
    path.write_text(LOOPS)
    assert rule.from_data(stack(path, *lines))[0].line == line


MADE = """\
class Trainer:
    def batches(self, rows):
        data = Dataset(rows)
        return data.batch(8)
    def train(self):
        return [self.step(batch) for batch in self.batches(rows)]
    def step(self, batch):
        return self.strategy.run(self.learn, args=(batch,))
def windows(rows):
    return Dataset(rows)
def train(rows):
    data = windows(rows)
    for batch in data:
        strategy.run(learn, args=(batch,))
    for batch in enumerate(load(rows)):
        strategy.run(learn, args=(batch,))
    data = Dataset(rows).batch(8)
    for batch in data:
        strategy.run(learn, args=(batch,))
"""
ELSEWHERE = "def load(rows, strategy):\n    return Dataset(rows)\n"


@pytest.mark.parametrize(
    "lines, file, line",
    [
        ((8, 6), "train.py", 4),
        ((14,), "train.py", 12),
        ((16,), "data.py", 2),
        ((19,), "train.py", 18),
    ],
    ids=["method in a comprehension", "without strategy", "another file", "no function"],
)
def test_the_line_that_makes_what_a_loop_takes(tmp_path, lines, file, line):
    path, other = tmp_path / "train.py", tmp_path / "data.py"
    path.write_text(MADE)
    other.write_text(ELSEWHERE)
    blamed = rule.from_data(stack(path, *lines), [str(path), str(other)])[0]
    assert (blamed.path, blamed.line) == (str(tmp_path / file), line)


PASSED = """\
class Batches:
    def __init__(self, strategy):
        self.strategy = strategy
    def feed(self, rows):
        return rows
    def training(self, epoch):
        return self.feed(rows[epoch])
def mean_of(step, batches):
    for batch in batches:
        strategy.run(step, args=(batch,))
mean_of(learn, data.training(epoch))
mean_of(learn, rows)
"""


@pytest.mark.parametrize("call, line", [(11, 5), (12, 12)], ids=["made", "no function"])
def test_a_loop_over_what_the_caller_gives(tmp_path, call, line):
    path = tmp_path / "train.py"
    path.write_text(PASSED)
    assert rule.from_data(stack(path, 10, call))[0].line == line


WRAPPED = """\
class Cached:
    def __init__(self, inner, strategy):
        self.inner = inner
    def build(self):
        return self.inner.build().cache()
class Batched:
    def __init__(self, inner, strategy):
        self.inner = inner
    def build(self):
        return self.inner.{calls}().batch(8)
    def again(self):
        return self.build()
for batch in data.build():
    strategy.run(step, args=(batch,))
"""


@pytest.mark.parametrize("calls, line", [("build", 10), ("again", 12), ("load", 10)])
def test_methods_that_call_each_other_for_what_a_loop_takes(tmp_path, calls, line):
    path = tmp_path / "train.py"
    path.write_text(WRAPPED.format(calls=calls))
    assert rule.from_data(stack(path, 14))[0].line == line
