"""What a restart has lost: the place in the examples, and values of Python."""

import ast
import textwrap
from dataclasses import replace

import pytest
from recorded import LINE, OTHER, ended, run, saved, stack, updated, variable
from recorded import state as optimizer
from strategy_clinic.examiner import after_restart
from strategy_clinic.examiner.after_restart import (
    Lost,
    are_alike,
    has_consequence,
    is_best_value,
    is_generator,
    kept_values,
    lost_values,
    made_at,
    other_examples,
    without_unstable,
)
from strategy_clinic.examiner.blame import nodes_of_file
from strategy_clinic.examiner.findings import Location
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.restarts import failure
from strategy_clinic.observer.events import (
    ExamplesTaken,
    ExceptionRaised,
    Frame,
    Held,
    Outcome,
    ProgramState,
    SaveKind,
    StepEnded,
)


def taken(begins, *checksums, in_fit=False, location=LINE):
    return ExamplesTaken(location, in_fit, begins, len(checksums), checksums)


WHOLE = taken(0, 1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.parametrize(
    "restarted, repeats",
    [
        (taken(4, 5, 6, 7, 8), None),
        (taken(4, 1, 2, 3, 4), 0),
        (taken(4, 11, 12, 13, 14), None),  # another order: it may be drawn at random
        (taken(4, 1, 1, 1, 1), None),  # all alike
        (taken(0, 1, 2, 3, 4), None),  # it has not gone on
        (taken(4, 1, 2, 3, 4, location=OTHER), None),
        (taken(1, 5, 6, 7, 8), None),  # as many steps before the end: several make one update
    ],
)
def test_examples_of_steps(restarted, repeats):
    found = other_examples(run(restarted, role=Role.RESTARTED), run(WHOLE), [])
    assert (found and found.taken) == repeats


def test_a_line_that_trains_by_several_optimizers_in_turn():
    """Each training counts its own updates, and a restart begins with a later one."""
    restarted = run(taken(4, 21, 22, 23, 24), updated(LINE, variables=(9,)), role=Role.RESTARTED)
    step, later = StepEnded(1, (), (), (), ()), updated(LINE, variables=(9,))
    begun = WHOLE, updated(LINE, variables=(4,))
    for whole in (
        run(*begun, step),
        run(*begun, later, step),
        run(*begun, step, replace(later, location=OTHER)),
    ):
        assert other_examples(restarted, whole, [whole])
    in_turn = run(*begun, step, later)
    assert other_examples(restarted, in_turn, [in_turn]) is None


def test_no_example_is_lost_where_each_pass_has_one_order():
    """This program was killed within a pass, and its restart begins the pass again."""
    whole = run(taken(0, *(1, 2, 3, 4, 5) * 3))
    assert other_examples(run(taken(3, 1, 2, 3, 4)), whole, [whole]) is None


@pytest.mark.parametrize(
    "restarted, repeats",
    [
        (taken(4, 5, 6, 7, 8, in_fit=True), None),
        (taken(4, 1, 2, 3, 4, in_fit=True), 0),
        # One iterator of the whole run, of which each update takes two parts
        (taken(6, 9, 10, 11, 12, in_fit=True), None),
        (taken(6, 5, 6, 7, 8, in_fit=True), 4),
    ],
)
def test_examples_of_fit(restarted, repeats):
    whole = run(
        taken(0, 1, 2, 3, 4, in_fit=True),
        taken(4, 5, 6, 7, 8, 9, 10, 11, 12, in_fit=True),
    )
    found = other_examples(run(restarted, role=Role.RESTARTED), whole, [])
    assert (found and found.taken) == repeats


@pytest.mark.parametrize("trained_on, repeats", [((5, 6, 7, 8), None), ((1, 2, 3, 4), 0)])
def test_of_the_iterators_of_fit_the_last_one_is_trained_on(trained_on, repeats):
    """Keras takes a batch for the shapes before an epoch begins, and with it the order, and evaluates after the epoch before."""
    whole = run(taken(0, 1, 2, 3, 4, in_fit=True), taken(4, 5, 6, 7, 8, in_fit=True))
    for_shapes, evaluated = taken(4, 1, 2, 3, 4, in_fit=True), taken(4, 9, 8, 9, 8, in_fit=True)
    again = run(for_shapes, evaluated, taken(4, *trained_on, in_fit=True), role=Role.RESTARTED)
    found = other_examples(again, whole, [])
    assert (found and found.taken) == repeats


def test_other_batches_of_fit_need_no_run_on_other_devices():
    """A batch of `fit` is a part for each replica: on another number of devices all are others."""
    again = run(taken(4, 11, 12, 13, 14, in_fit=True), role=Role.RESTARTED)
    found = other_examples(again, run(taken(0, 1, 2, 3, 4, 5, 6, 7, 8, in_fit=True)), [])
    assert found and found.taken is None


@pytest.mark.parametrize("begins, steps, is_known", [(2, 40, True), (4, 40, False), (4, 4, False)])
def test_of_many_iterators_of_fit_the_later_ones_are_not_known(begins, steps, is_known):
    """Those of the first four updates are known; a restart may go on where the whole run has ended."""
    epochs = [taken(2 * n, *range(10 * n, 10 * n + 4), in_fit=True) for n in range(2)]
    whole = run(*epochs, ended(optimizers=(optimizer(steps=steps),)))
    again = run(taken(begins, 71, 72, 73, 74, in_fit=True), role=Role.RESTARTED)
    assert (other_examples(again, whole, []) is not None) is is_known


@pytest.mark.parametrize("begins, is_known", [(3, True), (6, False), (20, False)])
def test_of_a_long_run_the_later_batches_are_not_known(begins, is_known):
    """What is kept of 40 batches is the first eight: who takes others after three is known not to go on."""
    whole = replace(taken(0, *range(1, 9)), batches=40)
    others = replace(taken(begins, 31, 32, 33, 34), batches=40 - begins)
    again = run(others, role=Role.RESTARTED)
    found = other_examples(again, run(whole), [run(whole)])
    assert (found is not None) is is_known


@pytest.mark.parametrize("goes_on, repeats", [((5, 6, 7, 8), None), ((1, 2, 3, 4), 18)])
def test_the_updates_of_an_optimizer_before_are_not_those_of_this_training(goes_on, repeats):
    """In the whole run a teacher made 18 updates before; a restart needs none, and the batches of two devices are parts."""
    student = taken(18, *range(1, 9), 9, 10, in_fit=True)
    again = run(taken(20, *goes_on, 9, in_fit=True), role=Role.RESTARTED, devices=2)
    found = other_examples(again, run(taken(0, 31, 32, 33, 34, in_fit=True), student), [])
    assert (found and found.taken) == repeats
    again = run(taken(2, *goes_on, 9, in_fit=True), role=Role.RESTARTED, devices=2)
    assert (other_examples(again, run(student), []) is None) is (repeats is None)


def test_a_training_that_begins_in_the_restart_is_another_one():
    """The whole run has come to the next fold, and counts the updates of the optimizer before, too."""
    folds = taken(0, 1, 2, 3, 4, in_fit=True), taken(4, 5, 6, 7, 8, in_fit=True)
    whole = run(*folds, taken(8, 8, 7, 6, 5, in_fit=True), taken(8, 4, 3, 2, 1, in_fit=True))
    second = taken(0, 8, 7, 6, 5, in_fit=True), taken(4, 4, 3, 2, 1, in_fit=True)
    assert other_examples(run(*second, role=Role.RESTARTED), whole, []) is None


@pytest.mark.parametrize(
    "shape, line, repeats", [((3,), OTHER, None), ((4,), OTHER, 0), ((3,), LINE, 0)]
)
def test_updates_of_several_models_that_one_line_trains_are_not_compared(shape, line, repeats):
    models = variable(1, shape=(3,)), variable(2, shape=shape)
    steps = updated(trains=(1,)), updated(line, trains=(2,))
    whole = run(*models, *steps, taken(0, 1, 2, 3, 4, in_fit=True))
    again = run(taken(4, 1, 2, 3, 4, in_fit=True), role=Role.RESTARTED)
    found = other_examples(again, whole, [])
    assert (found and found.taken) == repeats


def test_steps_go_on_where_as_many_updates_were_made():
    """Not only where as many are left: this restart has ended earlier than the whole run."""
    restarted = run(taken(2, 3, 4, 5), role=Role.RESTARTED)
    assert other_examples(restarted, run(WHOLE), [run(WHOLE)]) is None


@pytest.mark.parametrize("other, differs", [(WHOLE, True), (taken(0, 1, 3, 2), False)])
def test_other_examples_where_whole_runs_take_the_same(other, differs):
    restarted = run(taken(4, 11, 12, 13, 14), role=Role.RESTARTED)
    found = other_examples(restarted, run(WHOLE), [run(other)])
    assert (found is not None) is differs
    assert not found or found.taken is None


@pytest.mark.parametrize("steps, repeats", [(6, None), (8, 2)], ids=["evaluated", "trained on"])
def test_batches_of_an_evaluation_are_of_no_training(steps, repeats):
    """The whole run evaluates another model at its end, with the count of its optimizer."""
    examples = 1, 2, 3, 4
    whole = run(taken(2, *examples, in_fit=True, location=OTHER))
    end = ended(optimizers=(optimizer(steps=steps),))
    again = run(taken(6, *examples, in_fit=True, location=OTHER), end, role=Role.RESTARTED)
    found = other_examples(again, whole, [])
    assert (found and found.taken) == repeats


def state(updates, **values):
    held = (Held("/program/train.py", "Job", name, value) for name, value in values.items())
    return ProgramState(updates, tuple(held))


def start(updates, **values):
    return replace(state(updates, **values), before_step=True)


def restarted(*states, begins=2, output="", whole=None):
    return run(taken(begins, 5, 6), *states, role=Role.RESTARTED, output=output, whole=whole)


USUAL = run(
    start(0, done="0", mean="0.9", start="0", best="9"),
    state(2, done="2", mean="0.5", best="0.9"),
    start(2),
    state(4, done="4", mean="0.4", best="0.7"),
    state(6, done="6", mean="0.3"),
)


def lost(*states):
    return [(each.held[2], each.is_reset) for each in lost_values(restarted(*states), USUAL)]


def test_what_is_as_in_the_whole_run_is_not_lost():
    assert lost(start(2, done="2", mean="0.50001", best="0.9")) == []


def test_a_counter_that_begins_again_comes_before_what_follows_from_it():
    begins = start(2, mean="0.3", done="0", best="0.9")
    assert lost(begins, state(4, mean="0.3", done="0")) == [("done", True), ("mean", False)]


def test_where_no_first_step_is_seen_nothing_is_known():
    assert lost(state(4, done="2", mean="0.45")) == []


def test_what_a_loop_counts_is_not_lost(tmp_path):
    """A restart makes the rest of the steps, and counts them from 0."""
    path = tmp_path / "train.py"
    path.write_text("for i in range(LAST - int(done)):\n    left = i\n    left += 0\n")

    def seen(updates, value, before_step):
        held = [Held(str(path), "", name, value) for name in ("i", "left")]
        return ProgramState(updates, tuple(held), before_step)

    whole = run(seen(0, "1", True), seen(2, "3", False), seen(2, "3", True))
    found = lost_values(restarted(seen(2, "1", True)), whole)
    assert [each.held[2] for each in found] == ["left"]


@pytest.mark.parametrize(
    "made, expected", [("np.random.default_rng(0)", True), ("Counter()", False), ("0", False)]
)
def test_what_is_a_generator(made, expected, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(f"numbers = {made}\n")
    assert is_generator((str(path), "", "numbers")) is expected


def test_only_what_the_whole_run_changes_is_lost():
    assert lost(start(2, done="2", mean="0.5", start="2", best="0.9")) == []


@pytest.mark.parametrize(
    "path, value, right",
    [("", "0", "4"), ("/program/train.py", "1: 0.5", "3: 0.7, 0.6, 0.5")],
    ids=["of Keras", "a list of what has happened"],
)
def test_what_is_no_state_of_the_program(path, value, right):
    def seen(updates, text, before_step):
        return ProgramState(updates, (Held(path, "History", "epoch", text),), before_step)

    whole = run(seen(0, value, True), seen(2, right, False), seen(2, right, True))
    again = restarted(seen(2, value, True), seen(4, value, False))
    assert lost_values(again, whole) == []


def test_what_changes_by_itself_is_left_out():
    begins = restarted(start(2, done="2", mean="0.3", best="0.9"), state(4, mean="0.3"))
    found = lost_values(begins, USUAL)
    assert [each.held[2] for each in found] == ["mean"]
    assert without_unstable(found, [USUAL]) == found
    assert without_unstable(found, [run(state(2, done="2", mean="0.47", best="0.9"))]) == []
    begun = lost_values(restarted(start(2, done="0"), state(4, done="0")), USUAL)
    assert begun and without_unstable(begun, [run(state(2, done="9"))]) == begun


MODEL = {"model": "(2, 3) 1.9 0.5; (3,) 2 1"}
OTHER_MODEL = {"model": "(2, 3) 1.7 0.5; (3,) 2 1"}
FROM_START = run(
    start(0, best="9", done="0", rate="0.5"),
    state(1, best="0.7", done="1"),
    state(2, best="0.4", done="2", average="(2,) 1 1; (3,) 1 1", **MODEL),
    start(2, done="3"),
    state(4, done="4", rate="0.25", average="(2,) 2 2; (3,) 2 2", **OTHER_MODEL),
)


@pytest.mark.parametrize(
    "begins, later, expected",
    [
        ({"best": "9", "done": "3"}, {"best": "9", "done": "4"}, [("best", True)]),
        ({"best": "0.7", "done": "3"}, {"best": "0.7", "done": "4"}, [("best", False)]),
        ({"best": "9", "done": "3"}, {"best": "0.4", "done": "4"}, []),
        ({"best": "0.4", "done": "3"}, {"best": "0.3", "done": "4"}, []),
        (
            {"best": "0.7", "done": "0"} | OTHER_MODEL,
            {"best": "0.7", "done": "0"},
            [("done", True)],
        ),
        (
            {"best": "0.4", "done": "3", "average": "(2,) 3 3; (3,) 3 3"},
            {"done": "4"},
            [("average", False)],
        ),
    ],
    ids=[
        "it begins again",
        "an earlier one",
        "it is set again before the save",
        "it differs later",
        "what may follow from other weights",
        "one of two models",
    ],
)
def test_what_differs_before_the_first_step_is_lost(begins, later, expected):
    again = restarted(start(2, **MODEL | begins), state(4, **later))
    found = lost_values(again, FROM_START)
    assert [(each.held[2], each.is_reset) for each in found] == expected


KEEPS = """\
mean = np.zeros(3)
kept = tf.Variable([0.0, 0.0, 0.0])
counts = {"seen": np.zeros(3)}
filled, row, ring = np.zeros(3), np.zeros(3), np.zeros(3)
while True:
    batch = next(batches)
    filled[:], row[...] = 0, 0
    filled[1:], row[0], ring[1:] = batch, batch, batch
    mean = 0.9 * mean + batch
    counts["seen"] += batch
"""


@pytest.mark.parametrize(
    "name, is_lost",
    [
        ("batch", 0),
        ("mean", 1),
        ("kept", 1),
        ("counts['seen']", 1),
        ("filled", 0),
        ("row", 0),
        ("ring", 1),
    ],
)
def test_an_array_is_lost_if_it_is_carried_on(tmp_path, name, is_lost):
    path = tmp_path / "train.py"
    path.write_text(KEEPS)

    def held(*values):
        states = zip((0, 2, 2, 4), (True, False, True, False), values)
        return [
            ProgramState(updates, (Held(str(path), "", name, f"(3,) {value} {value}"),), before)
            for updates, before, value in states
        ]

    whole = run(variable(1, location=stack(path, 2)), *held(0, 5, 5, 9))
    again = restarted(*held(0, 0, 0, 4)[2:], whole=whole)
    again = replace(again, events=(*whole.events[:1], *again.events))
    assert len(lost_values(again, whole)) == is_lost


PASSES = """\
def train(epochs):
    count = 0
    for epoch in range(epochs):
        total = 0.0
        for batch in data:
            part = batch[0]
            part = convert(part)
            loss = step(part, mean)
            total += loss
            mean = next_mean(loss)
            count += 1
            if epoch > 2 and loss < best:
                best = loss
for fold in folds:
    train(9)
"""


@pytest.mark.parametrize("name", ["count", "total", "part", "mean", "best"])
@pytest.mark.parametrize("steps, made", [(8, "part total"), (12, "part total count")])
def test_what_each_pass_gives_its_first_value_is_not_lost(tmp_path, name, steps, made):
    """A restart that makes more steps than the whole run begins a pass of the outer loop anew."""
    path = tmp_path / "train.py"
    path.write_text(PASSES)
    step = updated((Frame(str(path), 8, "train"), *stack(path, 15)))

    def seen(updates, value, before_step):
        return ProgramState(updates, (Held(str(path), "train", name, value),), before_step)

    end = ended({}, optimizers=(optimizer(steps=8),))
    saves = seen(2, "2.0", False), seen(4, "4.0", False)
    whole = run(step, seen(0, "0.0", True), saves[0], seen(2, "2.0", True), saves[1], end)
    again = restarted(step, seen(2, "0.0", True), seen(4, "0.0", False), whole=whole)
    end = replace(end, optimizers=(optimizer(steps=steps),))
    again = replace(again, events=(*again.events, end))
    assert bool(lost_values(again, whole)) is (name not in made.split())


@pytest.mark.parametrize(
    "first, is_lost",
    [("(2, 3) 1 0.5; (3,) 1 1", False), ("(2, 3) 7 0.5; (3,) 7 1", True)],
    ids=["one model under two names", "two models"],
)
def test_a_model_that_a_restart_has_under_another_name_is_not_lost(tmp_path, first, is_lost):
    path = tmp_path / "train.py"
    path.write_text("model = make()\nresumed = Resumable(model)\n")
    made, later = "(2, 3) 1 0.5; (3,) 1 1", "(2, 3) 3 0.5; (3,) 3 1"

    def seen(updates, model, resumed, before_step):
        values = [("", "model", model), ("Resumable", "model", resumed)]
        held = [Held(str(path), holder, name, value) for holder, name, value in values]
        return ProgramState(updates, tuple(held), before_step)

    whole = run(
        seen(0, made, first, True), seen(2, later, later, False), seen(2, later, later, True)
    )
    found = lost_values(restarted(seen(2, made, later, True)), whole)
    assert bool(found) is is_lost


@pytest.mark.parametrize(
    "kept, is_lost",
    [("(2, 3) 2 0.5 and (3,) 2 1", 1), ("(2, 3) 1.9 0.5 and (3,) 2 1", 0)],
    ids=["of a model", "of a batch"],
)
def test_arrays_are_lost_that_are_a_copy_of_a_model(tmp_path, kept, is_lost):
    path = tmp_path / "train.py"
    path.write_text("best = model.get_weights()\n")
    model, later = "(2, 3) 2 0.5; (3,) 2 1", "(2, 3) 3 0.5; (3,) 3 1"

    def seen(updates, best, weights, before_step):
        values = [("best", best), ("model", weights)]
        held = [Held(str(path), "", name, value) for name, value in values]
        return ProgramState(updates, tuple(held), before_step)

    best = later.replace(";", " and")
    whole = run(seen(0, kept, model, True), seen(2, best, later, False), seen(2, best, later, True))
    found = lost_values(restarted(seen(2, kept, later, True)), whole)
    assert len(found) == is_lost


def test_what_the_program_nowhere_gives_a_value_is_kept_by_keras(tmp_path):
    path = tmp_path / "train.py"
    text = """
    class Stop(EarlyStopping):
        done = 0

        def on_epoch_end(self):
            self.done += 1
    """
    path.write_text(textwrap.dedent(text))

    def seen(updates, value, before_step):
        held = [Held(str(path), "Stop", name, value) for name in ("best_epoch", "done")]
        return ProgramState(updates, tuple(held), before_step)

    whole = run(seen(0, "0", True), seen(2, "2", False), seen(2, "2", True))
    found = lost_values(restarted(seen(2, "0", True)), whole)
    assert [each.held[2] for each in found] == ["done"]


COUNTED = start(0, done="2"), state(2, done="4"), start(2), state(4, done="4")
COUNTED_ANEW = start(2, done="2"), state(4, done="2")


@pytest.mark.parametrize(
    "one, other, follows",
    [
        ("loss 0.25", "loss 0.25", False),
        ("loss 0.31", "loss 0.25", True),
        ("2 steps, loss 0.25", "4 steps, loss 0.25", False),
        ("2 steps, loss 0.31", "4 steps, loss 0.25", True),
        ("took 1.5 s", "took 3.7 s", False),
    ],
    ids=["the same", "another loss", "the count itself", "both", "a time"],
)
def test_what_follows_from_a_count_that_begins_again(one, other, follows):
    same = taken(0, 7, 8, 5, 6)  # the restart goes on with the same examples
    whole = run(same, *COUNTED, output=f"epoch 1\n{other}")
    again = restarted(*COUNTED_ANEW, output=f"epoch 1\n{one}")
    assert has_consequence(again, whole, lost_values(again, whole)) is follows


@pytest.mark.parametrize(
    "one, other, follows",
    [
        ("2 steps, loss 0.31", "4 steps, loss 0.25", False),
        ("loss 0.31", "loss 0.25", True),
        ("2 steps, 7 files, loss 0.31", "4 steps, 9 files, loss 0.25", True),
        ("step 3 of 4", "step 5 of 4", False),
        ("2 steps and stopped", "4 steps", True),
        ("2 steps, loss 3.31", "4 steps, loss 5.25", False),
        ("loss 3.31", "loss 5.25", True),
        (
            "line 1: 0.31\nline 2: 0.32",
            "line 1: 0.25\nline 2: 0.26\nline 3: 0.27\nline 4: 0.28",
            False,
        ),
    ],
    ids=[
        "a count",
        "nothing of it",
        "another count",
        "after the last save",
        "other words",
        "a number near the count, beside it",
        "a number near the count",
        "fewer lines",
    ],
)
def test_what_is_printed_where_a_restart_takes_other_examples(one, other, follows):
    whole = run(taken(0, 1, 2, 3, 4), *COUNTED, output=other)
    again = restarted(*COUNTED_ANEW, output=one)
    assert has_consequence(again, whole, lost_values(again, whole)) is follows


@pytest.mark.parametrize(
    "one, other, follows",
    [
        ("mean 0.52", "mean 0.46", False),
        ("mean 0.52, loss 0.91", "mean 0.46, loss 0.85", True),
        ("loss 0.11", "loss 0.15", True),
    ],
    ids=["between two saves", "and another number", "another number"],
)
def test_what_is_printed_of_a_mean_that_begins_again(one, other, follows):
    """Its first value stands for none, and is near no number that is printed."""
    same = taken(0, 7, 8, 5, 6)
    usual = start(0, mean="-1e+09"), state(2, mean="0.5"), start(2), state(4, mean="0.4")
    again = start(2, mean="-1e+09"), state(4, mean="0.6"), state(6, mean="0.5")
    whole = run(same, *usual, output=f"epoch 1\n{other}")
    run_again = restarted(*again, output=f"epoch 1\n{one}")
    lost = [Lost(("/program/train.py", "Job", "mean"), 2, "-1e+09", "0.5", True)]
    assert has_consequence(run_again, whole, lost) is follows


def test_a_value_without_a_limit_explains_no_number():
    same = taken(0, 7, 8, 5, 6)
    states = start(0, best="inf"), state(2, best="0.5"), start(2)
    whole = run(same, *states, output="epoch 4: loss 0.25")
    again = restarted(start(2, best="inf"), state(4, best="inf"), output="epoch 9: loss 0.31")
    assert has_consequence(again, whole, lost_values(again, whole))


def test_a_number_that_no_run_repeats_is_no_consequence():
    same = taken(0, 7, 8, 5, 6)
    whole, repeated = (run(same, *COUNTED, output=f"4 steps, rate {rate}") for rate in (20, 23))
    again = restarted(*COUNTED_ANEW, output="2 steps, rate 31")
    values = lost_values(again, whole)
    assert has_consequence(again, whole, values)
    assert not has_consequence(again, whole, values, [repeated])


def test_more_than_a_count_is_a_consequence_whatever_is_printed():
    again = restarted(start(2, done="0", mean="0.3"), state(4, done="0", mean="0.3"))
    assert has_consequence(again, USUAL, lost_values(again, USUAL))


@pytest.mark.parametrize("begins, kept", [(2, {"done"}), (0, set())])
def test_what_a_restart_has_from_a_file_of_the_program(begins, kept):
    again = restarted(state(4, done="4", mean="0.6", start="2"), begins=begins, whole=USUAL)
    assert {name for _, _, name in kept_values([again])} == kept


@pytest.mark.parametrize(
    "one, other, alike",
    [
        ("() 0.5 0.5", "() 0.5001 0.5001", True),
        ("() 0.5 0.5", "() 0.51 0.51", False),
        ("(2,) 0.5 0.5", "(3,) 0.5 0.5", False),
        ("inf", "inf", True),
        ("nan", "nan", True),
        ("inf", "0.5", False),
        ("best.h5", "last.h5", False),
        ("0", "1e-9", True),
    ],
)
def test_values_that_are_alike(one, other, alike):
    assert are_alike(one, other) is alike


PROGRAM = """\
    STEPS = 0

    class Job:
        waited: int = 0

        def __init__(self):
            self.best, self.done = 1.0, 0

        def run(self, score):
            self.done = self.done + 1
            if score < self.best:
                self.best = score
            if self.done > 10 or self.waited == score:
                return

        left = 9

        def begin(self):
            self.left = 8

    def main():
        number = 0
        number += 1
"""


@pytest.mark.parametrize(
    "holder, name, line",
    [
        ("Job", "best", 7),
        ("Job", "done", 7),
        ("Job", "waited", 4),
        ("Job", "left", 19),
        ("main", "number", 22),
        ("", "STEPS", 1),
        ("Job", "lost", None),
    ],
)
def test_where_a_value_is_made(tmp_path, holder, name, line):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM))
    for each in (name, f"{name} of number 2"):
        made = made_at((str(path), holder, each))
        assert [frame.line for frame in made] == ([line] if line else [])
    lost = Lost((str(path), holder, name), 4, "0.5", "0.4", False)
    assert is_best_value(lost) is (name == "best")
    variable = Lost((str(path), holder, name), 4, "() 0.5 0.5", "() 0.4 0.4", True)
    assert not is_best_value(variable)


def test_the_nodes_around_a_value_are_looked_for_once(tmp_path, monkeypatch):
    """Each name of a program is looked at, and a long program has thousands of nodes."""
    walked = []
    monkeypatch.setattr(
        after_restart, "nodes_under", lambda node: walked.append(node) or ast.walk(node)
    )
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM) + "# another one\n")
    assert after_restart.nodes_of_holder((str(path), "", "STEPS")) == {*nodes_of_file(str(path))}
    assert not walked
    for name in ("best", "done"):
        assert after_restart.nodes_of_holder((str(path), "Job", name)) == {*ast.walk(walked[0])}
    assert [each.name for each in walked] == ["Job"]


@pytest.mark.parametrize(
    "holder, name, expected",
    [("Job", "best", True), ("Job.run", "score", True), ("main", "score", False)],
)
def test_a_name_is_compared_where_it_is_one(tmp_path, holder, name, expected):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM) + "    score = 0.0\n    Job().run(score)\n")
    lost = Lost((str(path), holder, name), 4, "0.5", "0.4", False)
    assert is_best_value(lost) is expected


def test_a_save_that_a_kill_may_cut_off_is_told_as_the_reader_has_its_line():
    save = saved(path="m.keras", kind=SaveKind.MODEL, steps=1)
    whole = run(save)
    raised = ExceptionRaised(LINE, "OSError", "OSError: bad", ())
    killed = {"role": Role.RESTARTED, "moment": Moment.DURING, "outcome": Outcome.RAISED}
    note = failure(run(raised, whole=whole, before=whole, **killed), whole)
    (place,) = [part for part in note.words if isinstance(part, Location)]
    assert place.frames == save.location
    in_cell = note.words.relocated(lambda each: replace(each, cell=2))
    assert str(in_cell).startswith(f"m.keras, saved at cell 2, line {place.line}, is written")
