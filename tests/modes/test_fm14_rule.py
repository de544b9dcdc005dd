"""The examiner's rules for fm14: copies that part from what they were copied from."""

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
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    CalledAlike,
    CalledApart,
    CalledInTurn,
    CopiedToItself,
    CopyCalled,
    CopyMoved,
    Frame,
    GradientComputed,
    ModelCalled,
    ModelUsed,
    Outcome,
    OutdatedCopyUsed,
    Owner,
    SavedAgain,
    StepEnded,
    WeightsCopied,
)

COPIED = WeightsCopied(LINE, "set_weights", (1, 2), (3, 4), equal=True)
TOGETHER = updated(trains=(1, 2, 3, 4))


def test_a_copy_that_is_trained_together_with_its_source():
    (finding,) = found(run(COPIED, TOGETHER))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 trains both" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [COPIED, updated(trains=(1, 2))],
        [COPIED, updated(trains=(3, 4))],
        [COPIED, TOGETHER, replace(COPIED, equal=False)],
        [replace(COPIED, function="clone_model", equal=False), TOGETHER],
        [TOGETHER, COPIED],
        [replace(COPIED, location=()), TOGETHER],
    ],
    ids=[
        "a target network or a teacher",
        "a model that starts from another",
        "copied again and again",
        "a clone with weights of its own, as in an ensemble",
        "trained before",
        "on no line",
    ],
)
def test_a_copy_that_is_meant(events):
    assert modes(run(*events)) == []


def test_a_copy_that_is_used_after_its_source_was_trained():
    (finding,) = found(run(COPIED, OutdatedCopyUsed(OTHER, "set_weights", LINE, (3, 4))))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 uses the copy after that training" in str(finding.proof)
    assert modes(run(OutdatedCopyUsed(OTHER, "set_weights", (), (3, 4)))) == []


# Clones of models that have learnt

CLONE = WeightsCopied(LINE, "clone_model", (1, 2), (3, 4), equal=False)
LEARNT = written(writer=Owner.OPTIMIZER)
STEP = """\
def train_step():
    answers = teacher(x)
    optimizer.apply_gradients(pairs)

def main():
    print(teacher(x))
    for batch in data:
        optimizer.apply_gradients(pairs)
    student.fit(data)
"""


@pytest.fixture
def at(tmp_path):
    """Returns the stack of a line in the functions of STEP."""
    (tmp_path / "train.py").write_text(STEP)
    return lambda line: stack(tmp_path / "train.py", line, function="step" if line < 5 else "main")


def test_a_clone_that_is_called_in_training_and_keeps_random_weights(at):
    student = updated(at(3), trains=(8,))
    (finding,) = found(run(LEARNT, CLONE, CopyCalled(at(2), (3, 4)), student))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 2 calls it in the training of another model, at line 3" in str(finding.proof)
    from_config = replace(CLONE, function="from_config")
    (finding,) = found(run(LEARNT, from_config, CopyCalled(at(2), (3, 4)), student))
    assert str(finding.message).startswith("from_config copies no weights")
    from_file = loaded(variables=(1, 2))
    assert modes(run(from_file, CLONE, CopyCalled(at(2), (3, 4)), student)) == [("fm14", 7)]


def test_a_clone_that_a_loss_calls_in_fit(at):
    call = CopyCalled((Frame("loss.py", 3, "loss"), *at(9)), (3, 4))
    assert modes(run(LEARNT, CLONE, call, updated(at(9), trains=(8,)))) == [("fm14", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [CLONE, LEARNT],
        [LEARNT, CLONE, written(number=3)],
        [LEARNT, CLONE, loaded(variables=(3, 4))],
        [LEARNT, CLONE, updated(trains=(3, 4))],
        [LEARNT, replace(CLONE, equal=True)],
        [LEARNT, replace(CLONE, location=())],
        [LEARNT, replace(CLONE, function="deepcopy")],
        [LEARNT, replace(CLONE, target=(1, 2))],
    ],
    ids=[
        "of an untrained model",
        "filled",
        "loaded",
        "trained",
        "with the same values",
        "on no line",
        "a copy with its weights",
        "of the same layers",
    ],
)
def test_a_clone_with_weights_of_its_own(at, events):
    used = CopyCalled(at(2), (3, 4)), updated(at(3), trains=(8,))
    assert modes(run(*events, *used)) == []


@pytest.mark.parametrize("call, update", [(6, 8), (6, 9)], ids=["before a loop", "before fit"])
def test_a_clone_that_is_called_outside_of_training(at, call, update):
    used = CopyCalled(at(call), (3, 4)), updated(at(update), trains=(8,))
    assert modes(run(LEARNT, CLONE, *used)) == []


def test_a_model_that_is_called_before_it_gets_the_weights_of_another(at):
    called, update = CopyCalled(at(2), (3, 4)), updated(at(3), trains=(8,))
    assert modes(run(LEARNT, called, CLONE, update)) == []


CALLED = CopyCalled(OTHER, (3, 4))


# A layer from the configuration of another one, whose weights are equal if its initializers have seeds

FROM_CONFIG = replace(COPIED, function="from_config")
APART = CalledApart((3, 4))


@pytest.mark.parametrize("equal", [True, False])
def test_a_note_if_only_the_program_knows_whether_a_layer_is_another_one(equal):
    copied = replace(FROM_CONFIG, equal=equal)
    diagnosis = diagnose(Runs([run(copied, APART, TOGETHER)]))
    (note,) = map(str, diagnosis.notes)
    assert "line 7 makes a layer from the configuration of another one" in note
    assert not diagnosis.findings


def test_a_clone_that_is_trained_beside_the_original_is_no_other_layer():
    clone = replace(FROM_CONFIG, function="clone_model")
    assert modes(run(clone, APART, TOGETHER)) == [("fm14", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [FROM_CONFIG, TOGETHER],
        [FROM_CONFIG, APART, CalledInTurn((3, 4)), TOGETHER],
        [FROM_CONFIG, replace(FROM_CONFIG, target=(5, 6)), APART, TOGETHER],
        [FROM_CONFIG, APART, updated(trains=(1, 2)), updated(trains=(3, 4))],
    ],
    ids=[
        "not called",
        "the next layer",
        "one of several",
        "with its own optimizer",
    ],
)
def test_a_layer_from_a_configuration_that_is_another_one(events):
    assert not diagnose(Runs([run(*events)])).notes


# A clone that a loss is computed with, and that keeps random weights

TAPED = CopyCalled((), (3, 4), trainable=True, taped=True)


def test_a_clone_that_no_optimizer_trains(at):
    (finding,) = found(run(CLONE, replace(TAPED, location=at(2)), updated(at(3), trains=(1, 2))))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 2 calls it for the loss, and no optimizer trains it" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [CalledAlike((3, 4))],
        [updated(trains=(3, 4))],
        [written(number=3)],
        [loaded(variables=(3, 4))],
    ],
    ids=["learns to answer as it does", "trained", "written", "loaded"],
)
def test_a_clone_that_is_random_on_purpose_or_gets_values(at, events):
    used = replace(TAPED, location=at(2)), updated(at(3), trains=(1, 2))
    assert modes(run(CLONE, *used, *events)) == []


@pytest.mark.parametrize(
    "changes", [{"trainable": False}, {"taped": False}], ids=["frozen", "outside of tapes"]
)
def test_a_clone_that_no_gradient_is_meant_for(at, changes):
    call = replace(TAPED, location=at(2), **changes)
    assert modes(run(CLONE, call, updated(at(3), trains=(1, 2)))) == []
    assert modes(run(CLONE, replace(TAPED, location=at(2)), updated(at(3), trains=(8,)))) == []
    assert modes(run(CLONE, replace(TAPED, location=at(6)), updated(at(8), trains=(1, 2)))) == []


# A clone that follows its source

MOVED = CopyMoved((3, 4), 0.2)


def test_a_clone_that_follows_from_random_weights():
    (finding,) = found(run(CLONE, written(number=3), MOVED))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 lets it follow the original by 20% in a step" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [CLONE, replace(MOVED, share=1.0)],
        [CLONE, replace(MOVED, target=(5, 6))],
        [CLONE, loaded(variables=(3, 4)), MOVED],
        [replace(CLONE, equal=True), MOVED],
        [replace(CLONE, location=()), MOVED],
        [replace(CLONE, function="deepcopy"), MOVED],
    ],
    ids=["gets the values", "another", "loaded", "begins equal", "on no line", "a copy"],
)
def test_a_copy_that_may_follow(events):
    assert not diagnose(Runs([run(*events)])).notes


# A clone whose variables are trained in place of those of its source

INSTEAD = GradientComputed(OTHER, 2, 3, disconnected=(3, 4), connected=(5,))
GIVEN = updated(trains=(3, 4))


def test_an_optimizer_that_is_given_the_variables_of_a_copy():
    (finding,) = found(run(CLONE, INSTEAD, GIVEN))
    assert (finding.mode, finding.line) == ("fm14", 20)
    assert "line 7 makes the copy, which nothing calls" in str(finding.proof)
    deepcopied = replace(COPIED, function="deepcopy")
    assert modes(run(deepcopied, INSTEAD, GIVEN)) == [("fm14", 20)]


@pytest.mark.parametrize(
    "events",
    [
        [CLONE, INSTEAD, updated(trains=(5,))],
        [CLONE, replace(INSTEAD, disconnected=(3, 4), connected=(1, 2)), GIVEN],
        [CLONE, INSTEAD, replace(INSTEAD, disconnected=(), connected=(3, 4)), GIVEN],
        [CLONE, INSTEAD, GIVEN, CALLED],
        [CLONE, INSTEAD, GIVEN, written(number=3)],
        [replace(CLONE, location=()), INSTEAD, GIVEN],
    ],
    ids=[
        "not given to an optimizer",
        "beside the original",
        "trained by another loss",
        "called",
        "written by the program",
        "on no line",
    ],
)
def test_variables_of_a_copy_that_may_have_no_gradient(events):
    assert modes(run(*events)) == []


# One model under two names

NAMES = """\
class Agent:
    def __init__(self):
        self.target = self.online

    def synchronise(self):
        self.target.set_weights(self.online.get_weights())
        self.other.set_weights(
            self.online.get_weights()
        )
        weights = self.online.get_weights()
        self.online.set_weights(weights)
        self.online.set_weights(self.online.get_weights())
"""


@pytest.mark.parametrize("line, blamed", [(6, [3]), (7, [7]), (11, []), (12, [])])
def test_weights_that_are_copied_to_the_model_that_they_are_of(tmp_path, line, blamed):
    """A program may also put the weights back that it has taken from a model."""
    (tmp_path / "agent.py").write_text(NAMES)
    copied = CopiedToItself(stack(tmp_path / "agent.py", line))
    assert [finding.line for finding in found(run(copied))] == blamed


@pytest.mark.parametrize(
    "line", ["self.target: Model = self.online", "keep(target := self.online)"]
)
def test_a_second_name_that_is_given_in_another_form(tmp_path, line):
    target = "self.target" if ":" in line[:12] else "target"
    text = f"def step(self):\n    {line}\n    {target}.set_weights(self.online.get_weights())\n"
    (tmp_path / "agent.py").write_text(text)
    (finding,) = found(run(CopiedToItself(stack(tmp_path / "agent.py", 3))))
    assert finding.line == 2


# A model that keeps random weights

TRAINED = ModelCalled(LINE, 8, 2, (1, 2), (LINE[0], *OTHER))
RANDOM = ModelUsed(OTHER, (3, 4), (3, 4), (LINE[0], OTHER[0]._replace(line=21)))
LATER = replace(TRAINED, variables=(5, 6))
MADE = [variable(n, shape=(3, 2)) if n % 2 else variable(n) for n in range(1, 7)]


def test_a_model_that_is_used_with_random_weights_instead_of_the_trained_one():
    (finding,) = found(run(*MADE, TRAINED, LEARNT, RANDOM))
    assert (finding.mode, finding.line) == ("fm14", 21)
    assert "line 20 uses it" in str(finding.proof)


def test_a_program_that_raised_may_have_meant_to_load_its_weights_later():
    recording = run(*MADE, TRAINED, LEARNT, RANDOM, outcome=Outcome.RAISED)
    assert "fm14" not in dict(modes(recording))


@pytest.mark.parametrize(
    "events",
    [
        [TRAINED, RANDOM],
        [TRAINED, LEARNT, RANDOM, ModelUsed(OTHER, (1, 2), (1, 2), ())],
        [TRAINED, LATER, LEARNT, RANDOM, ModelUsed(OTHER, (5, 6), (5, 6), ())],
        [TRAINED, LEARNT, RANDOM, written(number=3, writer=Owner.LAYER, replicas=0)],
        [TRAINED, LEARNT, loaded(variables=(3, 4)), RANDOM],
        [TRAINED, LEARNT, replace(RANDOM, trainable=())],
        [replace(TRAINED, variables=(1,)), LEARNT, RANDOM],
        [replace(TRAINED, variables=(2, 3)), LEARNT, RANDOM],
        [TRAINED, LEARNT, replace(RANDOM, made_at=TRAINED.made_at)],
    ],
    ids=[
        "before the training",
        "a baseline beside the trained one",
        "a baseline beside one that is trained later",
        "changed later",
        "loaded",
        "frozen, as a network that is random on purpose",
        "of other shapes",
        "with shared layers",
        "made on the same line",
    ],
)
def test_a_model_that_may_keep_its_random_weights(events):
    assert modes(run(*MADE, *events)) == []


# A model and a part of it that are loaded from two files

USE = stack("/program/train.py", 30)
PART_USED = ModelUsed(USE, (1, 2), (1, 2), ())
FILES = saved(path="part", held=(1, 2)), saved(path="whole", held=(1, 2, 3))
LOADS = loaded(path="part", variables=(11, 12)), loaded(path="whole", variables=(21, 22, 23))
AFTER = updated(trains=(21, 22)), ModelUsed(USE, (11, 12), (11, 12), ())
SHAPES = [
    variable(number, shape=(number % 10,)) for number in (1, 2, 3, 11, 12, 21, 22, 23, 31, 32)
]
BEFORE = [*SHAPES, updated(trains=(1, 2)), PART_USED, *FILES]


def test_a_part_that_is_loaded_beside_its_model():
    (finding,) = found(run(*BEFORE, *LOADS, *AFTER))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 trains those of whole, and line 30 uses those of part" in str(finding.proof)


def test_a_part_that_a_restart_loads_beside_its_model():
    restart = {"role": Role.RESTARTED, "moment": Moment.BETWEEN, "whole": run()}
    again = run(*SHAPES, *LOADS, *AFTER, before=run(*BEFORE, outcome=Outcome.KILLED), **restart)
    assert "fm14" in [mode for mode, _ in modes(again)]


def test_a_part_that_a_loop_uses_again_after_the_update(tmp_path):
    """A line is reported once, at its first use."""
    path = tmp_path / "train.py"
    path.write_text("while more:\n    part(x)\n    fit(whole)\npart(x)\n")
    for line, expected in ((2, ["fm14"]), (4, [])):
        used = [replace(each, location=stack(path, line)) for each in (PART_USED, AFTER[1])]
        update = replace(AFTER[0], location=stack(path, 3))
        events = [*SHAPES, updated(trains=(1, 2)), used[0], *FILES, *LOADS, used[1], update]
        assert [mode for mode, _ in modes(run(*events))] == expected


@pytest.mark.parametrize(
    "events",
    [
        [*BEFORE, LOADS[1], *AFTER],
        [*BEFORE, *LOADS, AFTER[1]],
        [*BEFORE, *LOADS, AFTER[0], updated(trains=(11, 12)), written(number=11), AFTER[1]],
        [*BEFORE, *LOADS, AFTER[0], written(number=11, writer=Owner.LAYER), AFTER[1]],
        [*BEFORE, *LOADS, AFTER[0], LOADS[0], AFTER[1]],
        [*BEFORE, *LOADS, *AFTER, ModelUsed(USE, (21, 22), (21, 22), ())],
        [*BEFORE, *LOADS, AFTER[0], replace(AFTER[1], location=OTHER)],
        [*BEFORE, *LOADS, updated(trains=(23,)), AFTER[1]],
        [*BEFORE, LOADS[0], replace(LOADS[1], variables=(11, 12, 23)), *AFTER],
        [*BEFORE, SavedAgain("whole", 9), *LOADS, *AFTER],
        [*SHAPES, updated(trains=(3,)), PART_USED, *FILES, *LOADS, *AFTER],
        [*SHAPES, updated(trains=(1, 2)), *FILES, *LOADS, *AFTER],
    ],
    ids=[
        "the whole model alone",
        "none is trained",
        "both are trained",
        "a copy in each round",
        "loaded once more",
        "both are used, and compared",
        "a use of its own",
        "another part is trained",
        "they share it",
        "files of other times",
        "the part was not trained before",
        "the part was not used before",
    ],
)
def test_a_part_that_may_have_variables_of_its_own(events):
    assert "fm14" not in [mode for mode, _ in modes(run(*events))]


# A copy of the weights that a model had before a load

STEPS = """\
while more:
    target(x)
    update(model)
target.set_weights(model.get_weights())
"""


@pytest.fixture
def synchronised(tmp_path):
    """Events: a copy, a load of its source, a call of the copy and an update in a loop, and the copy once more."""
    path = tmp_path / "train.py"
    path.write_text(STEPS)
    call = CopyCalled(stack(path, 2), (3, 4))
    update = updated(location=stack(path, 3), trains=(1, 2))
    again = replace(COPIED, location=stack(path, 4), equal=False)
    return [COPIED, loaded(variables=(1, 2)), call, update, again]


def test_a_copy_that_is_made_before_a_load(synchronised):
    (finding,) = [each for each in found(run(*synchronised)) if each.mode == "fm14"]
    assert finding.line == 7
    assert "line 7 loads the model, and line 2 uses the copy" in str(finding.proof)


def test_a_copy_that_may_keep_the_weights_from_before_a_load(synchronised):
    copied, load, call, update, again = synchronised
    outside = replace(call, location=again.location)
    for events in (
        [load, copied, call, update, again],
        [copied, load, again, call, update],
        [copied, load, call, update],
        [copied, load, call, update, written(number=3)],
        [written(number=1, writer=Owner.LAYER), *synchronised],
        [LEARNT, *synchronised],
        [replace(copied, equal=False), load, call, update, again],
        [copied, load, replace(load, variables=(3, 4)), call, update, again],
        [copied, load, written(number=3, writer=Owner.LAYER), call, update, again],
        [copied, replace(load, variables=(1, 2, 3, 4)), call, update, again],
        [copied, load, outside, update, again],
        [*synchronised, updated(trains=(3, 4))],
        [copied, call, update, again],
    ):
        assert "fm14" not in [mode for mode, _ in modes(run(*events))]


def test_a_copy_beside_a_load_that_changes_nothing(synchronised):
    """The file was saved before the first step."""
    step = StepEnded(1, values({1: [2.0]}), values({1: [1.0]}), (), ())
    events = variable(1), *synchronised, step
    for began in ({1: [1.0]}, {1: [0.5]}):
        whole = run(*events[:-1], replace(step, initial_values=values(began)))
        restart = run(
            *events, role=Role.RESTARTED, moment=Moment.BETWEEN, before=run(), whole=whole
        )
        assert ("fm14" in [mode for mode, _ in modes(restart)]) == (began != {1: [1.0]})
