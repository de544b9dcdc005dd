"""The examiner's rule for fm23: replicas that write to a variable outside the scope."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    MINE,
    OTHER,
    ended,
    found,
    loaded,
    modes,
    run,
    stack,
    strategy,
    updated,
    variable,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    BatchTaken,
    ClusterStrategyRequested,
    DatasetFromFunction,
    DivergedCopies,
    KerasDistributionSet,
    ModelCalled,
    Outcome,
    Owner,
    ReplicaCountRead,
    StepsCounted,
    VariableSharedCentrally,
)


def test_replicas_that_write_to_a_variable_outside_the_scope():
    (finding,) = found(run(MINE, written(), written()))
    assert (finding.mode, finding.line) == ("fm23", 7)
    assert str(finding.proof).endswith("2 replicas wrote to it at line 20")


@pytest.mark.parametrize("function, expected", [("load", []), ("restore", [("fm23", 7)])])
def test_what_a_load_outside_the_scope_has_made(function, expected):
    """A restore fills what was there before."""
    load = loaded(function=function, variables=(1,), undistributed=(1,))
    found_modes = modes(run(MINE, load, written()))
    assert [each for each in found_modes if each[0] == "fm23"] == expected


@pytest.mark.parametrize(
    "statement, is_right",
    [
        ("seen.assign_add(tf.shape(x)[0])", True),
        ("seen.assign_add(tf.cast(tf.shape(x)[0], tf.int64))", True),
        ("total.assign_add(tf.reduce_sum(losses))", True),
        ("count = tf.size(x)\n    seen.assign_add(count)", True),
        ("count = 1\n    seen.assign_add(count)", False),
        ("seen.assign_add(1)", False),
        ("total.assign_add(loss)", False),
        ("total.assign_add(tf.reduce_mean(losses))", False),
        ("total.assign(tf.reduce_sum(losses))", False),
    ],
)
def test_replicas_that_add_up_their_parts(tmp_path, statement, is_right):
    path = tmp_path / "train.py"
    path.write_text(f"def step(x):\n    {statement}\n")
    expected = [] if is_right else [("fm23", 7)]
    last = path.read_text().count("\n")
    assert modes(run(MINE, written(location=stack(path, last)))) == expected


@pytest.mark.parametrize(
    "lines, line",
    [((4, 8), 8), ((4, 12, 15), 12), ((4, 17, 20), 20), ((23, 26), 23), ((29,), 29)],
    ids=["in a method", "given a strategy", "in a file", "in a method that has a scope", "itself"],
)
def test_a_variable_is_blamed_where_a_scope_could_have_been_entered(tmp_path, lines, line):
    path = tmp_path / "train.py"
    path.write_text(CLASSES)
    made = replace(MINE, location=stack(path, *lines))
    assert modes(run(made, written())) == [("fm23", line)]


CLASSES = """\
class Sums:
    def __init__(self, weights):
        zeros = tf.zeros_like
        self.sums = [tf.Variable(zeros(each)) for each in weights]

class Trainer:
    def prepare(self):
        self.sums = Sums(self.model.weights); self.strategy.run(f)


def train(model, strategy):
    sums = Sums(model.weights)


train(model, chosen)
def sums_of(model):
    return Sums(model.weights)


sums = sums_of(model)
class Loop:
    def __init__(self):
        self.count = tf.Variable(0)
        with strategy.scope():
            self.model = built()
loop = Loop()


count = tf.Variable(0)
"""


def test_writes_on_several_lines_are_one_finding():
    (finding,) = found(run(MINE, written(), written(location=MINE.location)))
    assert str(finding.proof).endswith("at line 20")


@pytest.mark.parametrize(
    "events",
    [
        [variable(1, maker=Owner.USER, copies=2), written()],
        [variable(1, maker=Owner.METRIC), written(writer=Owner.METRIC)],
        [MINE, written(writer=Owner.OPTIMIZER)],
        [MINE, written(replicas=0)],
        [MINE, VariableSharedCentrally(1), written()],
        [replace(MINE, location=()), written()],
        [written()],
    ],
    ids=[
        "distributed",
        "a metric",
        "by an optimizer",
        "once for all",
        "central",
        "no line",
        "not seen",
    ],
)
def test_writes_that_are_right(events):
    assert modes(run(*events)) == []


# An optimizer outside the scope

WEIGHT = variable(1, location=OTHER, copies=2)
SLOT = variable(4, maker=Owner.OPTIMIZER)
COUNT = variable(5, maker=Owner.OPTIMIZER, shape=(), dtype="int64")
BY_OPTIMIZER = written(number=5, writer=Owner.OPTIMIZER)


@pytest.mark.parametrize(
    "events",
    [[WEIGHT, SLOT, updated()], [WEIGHT, COUNT, updated(), BY_OPTIMIZER]],
    ids=["its slots exist once", "every replica counts its steps"],
)
def test_an_optimizer_outside_the_scope(events):
    (finding,) = found(run(strategy(), *events))
    assert (finding.mode, finding.line) == ("fm23", LINE[0].line)
    assert "this Adam was made outside the scope" in str(finding.message)
    assert str(finding.proof).endswith("copy of the weights that it trains at line 20")


def test_slots_that_were_made_later_than_their_optimizer():
    """Its step counter, which Keras 2 writes to once for all replicas, is where it was made."""
    later = replace(SLOT, number=6, location=OTHER)
    assert modes(run(strategy(), WEIGHT, COUNT, later, updated())) == [("fm23", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [WEIGHT, replace(SLOT, copies=2), updated()],
        [WEIGHT, COUNT, updated(), replace(BY_OPTIMIZER, replicas=0)],
        [WEIGHT, COUNT, updated()],
        [replace(WEIGHT, copies=0), SLOT, updated()],
        [WEIGHT, SLOT, VariableSharedCentrally(4), updated()],
        [WEIGHT, replace(SLOT, maker=Owner.USER), updated()],
        [WEIGHT, variable(9, maker=Owner.OPTIMIZER, parts=(4,)), SLOT, updated()],
    ],
    ids=[
        "slots in the scope",
        "counted once for all",
        "a rate that nobody writes",
        "a model on one device",
        "central",
        "not its own",
        "a copy of a slot",
    ],
)
def test_an_optimizer_in_the_scope(events):
    assert modes(run(strategy(), *events)) == []


def test_what_an_optimizer_outside_the_scope_has_caused_is_not_another_finding():
    """The weights of the replicas part: that is fm38 only if no such optimizer trains them."""
    parted = ended(diverged_copies=(DivergedCopies(1, 0.1, OTHER),))
    weight = replace(WEIGHT, maker=Owner.LAYER)
    assert modes(run(strategy(), weight, SLOT, updated(), parted)) == [("fm23", 7)]
    assert modes(run(strategy(), weight, updated(), parted)) == [("fm38", 20)]
    others = ended(diverged_copies=(DivergedCopies(2, 0.1, OTHER),))
    apart = replace(weight, number=2)
    events = [strategy(), weight, apart, SLOT, updated(), others]
    assert sorted(modes(run(*events))) == [("fm23", 7), ("fm38", 20)]


def test_statistics_of_a_layer_outside_the_scope():
    made = variable(1)
    assert modes(run(made, written(writer=Owner.LAYER))) == [("fm23", 7)]
    assert modes(run(replace(made, copies=2), written(writer=Owner.LAYER))) == []


def unused(*events, **fields):
    """The notes on a strategy of two replicas, beside a model of one variable that trains on one device."""
    alone = strategy(), variable(1), ModelCalled(OTHER, 8, 1, (1,)), updated()
    notes = diagnose(Runs([run(*alone, *events, **fields)])).notes
    return [str(each) for each in notes if "distributes no variable" in str(each)]


def test_a_strategy_that_distributes_nothing_is_noted():
    (note,) = unused(BatchTaken(LINE, (8,)), written(replicas=0))
    assert note.startswith("the MirroredStrategy of line 7 distributes no variable and no batch")


@pytest.mark.parametrize(
    "events, fields",
    [
        ([ReplicaCountRead(OTHER)], {}),
        ([ClusterStrategyRequested(LINE, "parameter_server")], {}),
        ([VariableSharedCentrally(1)], {}),
        ([variable(2, copies=2)], {}),
        ([ModelCalled(OTHER, 4, 2, (1,))], {}),
        ([BatchTaken(LINE, (4, 4))], {}),
        ([DatasetFromFunction(LINE)], {}),
        ([written()], {}),
        ([StepsCounted(8, 8, 0, 0, (), 0, None, (), None)], {}),
        ([KerasDistributionSet(LINE, "DataParallel", 2)], {}),
        ([], {"outcome": Outcome.RAISED}),
        ([], {"role": Role.RESTARTED}),
    ],
    ids=[
        "asked for its replicas", "servers", "central storage", "another model in the scope", "an inference on all devices",
        "distributed batches", "batches of a function", "replicas write", "eager steps", "a distribution of Keras",
        "raised", "started again",
    ],
)  # fmt: skip
def test_a_strategy_that_may_be_used(events, fields):
    assert unused(*events, **fields) == []


def test_a_strategy_of_a_program_that_trains_nothing():
    assert diagnose(Runs([run(strategy(), variable(1))])).notes == []
    alone = strategy(1), variable(1), updated()
    assert diagnose(Runs([run(*alone, devices=1)])).notes == []
