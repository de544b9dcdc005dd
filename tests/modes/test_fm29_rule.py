"""The examiner's rule for fm29: loaded weights that a new optimizer trains on."""

from dataclasses import replace

import pytest
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
    state,
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    CheckpointRestored,
    Frame,
    GradientsApplied,
    LearningRateWritten,
    OptimizerReplaced,
    Owner,
    StepEnded,
    VariablesKept,
    WeightsCopied,
)


def test_an_optimizer_that_starts_anew_after_loading():
    (finding,) = found(run(saved(optimizers=(state(),)), loaded(), updated(trains=(2,), steps=0)))
    assert (finding.mode, finding.line) == ("fm29", 7)
    assert "which was at step 3" in str(finding.message)


@pytest.mark.parametrize("shape, line", [((3,), 20), ((4,), 7)], ids=["its weights", "others"])
def test_an_optimizer_that_takes_the_place_of_the_loaded_one(shape, line):
    """It is made on line 20, after line 7 has filled one for weights of these shapes."""
    weight, slot = variable(2), variable(5, maker=Owner.OPTIMIZER, shape=shape)
    own = variable(11, maker=Owner.OPTIMIZER, location=OTHER)
    new = updated(trains=(2,), steps=0, variables=(11, 12, 13))
    before = saved(optimizers=(state(),))
    (finding,) = found(run(weight, slot, before, loaded(variables=(2, 5)), own, new))
    assert (finding.mode, finding.line) == ("fm29", line)


@pytest.mark.parametrize(
    "rate, steps, expected",
    [("Cosine", 0, [("fm29", 7)]), ("Cosine", 3, []), ("0.1", 0, []), ("0.1", 3, [])],
)
def test_an_optimizer_without_slots_whose_rate_goes_by_its_count(rate, steps, expected):
    plain = {"learning_rate": rate, "variables": (4, 5)}
    new = updated(trains=(2,), steps=steps, **plain)
    before = saved(optimizers=(state(**plain),))
    assert modes(run(before, loaded(), written(number=4), new)) == expected


def test_weights_that_are_copied_from_a_model_that_was_only_loaded():
    copied = WeightsCopied(OTHER, "set_weights", source=(2,), target=(8,), equal=True)
    before, new = saved(optimizers=(state(),)), updated(trains=(8,), steps=0)
    assert modes(run(before, loaded(), copied, new)) == [("fm29", 7)]
    assert modes(run(before, loaded(), new)) == []
    assert modes(run(before, loaded(), replace(copied, source=(3,)), new)) == []
    assert modes(run(before, loaded(), new, copied)) == []
    with_another_layer = updated(trains=(8, 9), steps=0)
    assert modes(run(before, loaded(), copied, with_another_layer)) == []


def test_an_optimizer_that_a_file_fills_when_the_model_is_compiled():
    """`load_weights` of a checkpoint fills in Keras 2 the optimizer that the model gets later, and nothing reports a write."""
    before, new = saved(optimizers=(state(),)), updated(trains=(2,), steps=3, variables=(11,))
    assert modes(run(before, loaded(), new)) == []


MADE = {
    "from_config": "opt = Adam.from_config(old.get_config())",
    "deserialize": "opt = keras.optimizers.deserialize(kept)",
    "compile": "model.compile(Adam.from_config(old.optimizer.get_config()), 'mse')",
    "Adam": "opt = Adam(0.1)",
}


def copied_on(tmp_path, made, *, equal=True, goes_on=False, later=None, **old):
    """A model that is copied on line 20, and whose copy an optimizer trains that is made on the only line of a file."""
    path = tmp_path / "train.py"
    path.write_text(MADE[made])
    copied = WeightsCopied(OTHER, "set_weights", source=(1,), target=(8,), equal=equal)
    own = variable(11, maker=Owner.OPTIMIZER, location=stack(path, 1))
    new = later or updated(trains=(8,), steps=0, variables=(11, 12))
    step = StepEnded(4, values({1: [0.5]}), (), (), ())
    end = ended({1: [0.25 if goes_on else 0.5]}, optimizers=(state(**old),))
    return modes(run(updated(steps=0), copied, own, new, step, end))


@pytest.mark.parametrize("made", ["from_config", "deserialize", "compile"])
def test_an_optimizer_from_the_configuration_of_the_one_before(tmp_path, made):
    assert copied_on(tmp_path, made) == [("fm29", 1)]


@pytest.mark.parametrize(
    "changes",
    [
        {"made": "Adam"},
        {"equal": False},
        {"goes_on": True},
        {"variables": (4, 5)},
        {"steps": 0},
        {"learning_rate": "0.2"},
        {"later": updated(trains=(9,), steps=0, variables=(11, 12))},
        {"later": updated(trains=(8,), steps=3, variables=(11, 12))},
    ],
    ids=[
        "another optimizer",
        "other weights",
        "the source is trained on",
        "without moments",
        "before any step",
        "another rate",
        "another model",
        "filled by hand",
    ],
)
def test_copies_that_begin_anew(tmp_path, changes):
    assert copied_on(tmp_path, **{"made": "from_config", **changes}) == []


def test_a_new_optimizer_whose_steps_the_program_sets():
    before, new = (
        saved(optimizers=(state(),)),
        updated(trains=(2,), steps=3, variables=(11, 12, 13)),
    )
    assert modes(run(before, loaded(), written(number=11), new)) == [("fm29", 7)]
    used = updated(trains=(2,), steps=1, variables=(11, 12, 13))
    by_hand = [written(number=number) for number in (11, 12, 13)]
    by_load = written(number=11, writer=Owner.OPTIMIZER)  # as Keras 3 does
    for events in (
        [loaded(), by_load, new],
        [used, loaded(), new],
        [loaded(variables=(2, 11)), new],
        [loaded(), *by_hand, new],
    ):
        assert modes(run(before, *events)) == []


@pytest.mark.parametrize(
    "new",
    [
        state(learning_rate="0.01"),
        state(kind="SGD"),
        state(variables=(4, 5)),
        state(trains=(2, 3)),
    ],
    ids=["rate", "kind", "plain", "another number of variables"],
)
def test_another_optimizer_is_another_training(new):
    again = updated(
        kind=new.kind,
        learning_rate=new.learning_rate,
        variables=new.variables,
        trains=new.trains if len(new.trains) > 1 else (2,),
        steps=0,
    )
    kept = state(variables=new.variables)
    assert modes(run(saved(optimizers=(kept,)), loaded(), again)) == []


def notes(*events):
    return [*map(str, diagnose(Runs([run(*events)]), lambda _: None).notes)]


def test_another_rate_is_noted():
    """It may be lowered for the rest of the training, or chosen for another one."""
    kept = saved(optimizers=(state(),)), loaded()
    slower = updated(trains=(2,), steps=0, learning_rate="0.01")
    (loads,) = notes(*kept, slower)
    (compiles,) = notes(replaced(learning_rate="0.01"), NEW_STEPS)
    for note, line in ((loads, 20), (compiles, 7)):
        assert "trains on what Adam has trained to step 3, without its moments" in note
        assert f"(line {line})" in note and note.endswith("the optimizer that there is (fm29)")
    assert not notes(*kept, replace(slower, optimizer=state(kind="SGD", trains=(2,), steps=0)))
    assert not notes(replaced(learning_rate="0.01", continues=False), NEW_STEPS)


def test_weights_that_were_loaded_on_no_line_or_are_not_trained():
    again = updated(trains=(2,), steps=0)
    assert modes(run(saved(optimizers=(state(),)), loaded(location=()), again)) == []
    assert modes(run(saved(optimizers=(state(),)), loaded(variables=(5,)), again)) == []


def test_the_function_that_loads_and_makes_the_optimizer():
    """The program's main function calls both it and the training."""
    main = Frame("/program/train.py", 20, "main")
    load = (Frame("/program/train.py", 7, "resumed"), main)
    made = variable(4, maker=Owner.OPTIMIZER, location=load)
    again = updated((Frame("/program/train.py", 3, "step"), main), trains=(2,), steps=0)
    before = saved(optimizers=(state(),))
    assert modes(run(made, before, loaded(location=load), again)) == [("fm29", 7)]


@pytest.mark.parametrize(
    "given, line",
    [
        ("path", 20),
        ("filepath=path", 20),
        ("*paths", 20),
        ("'weights/' + path", 3),
        ("NAME", 3),
        ("join(path)", 3),
    ],
)
def test_a_function_that_decides_what_it_loads(tmp_path, given, line):
    path = tmp_path / "train.py"
    path.write_text(
        f"def resume(self, path, *paths):\n    if path:\n        model.load_weights({given})\n"
    )
    main = Frame(str(path), 20, "main")
    load = (Frame(str(path), 3, "resume"), main)
    made = variable(4, maker=Owner.OPTIMIZER, location=(main,))
    again = updated((Frame(str(path), 3, "step"), main), trains=(2,), steps=0)
    before = saved(optimizers=(state(),))
    assert modes(run(made, before, loaded(location=load), again)) == [("fm29", line)]


def test_several_updates_are_one_finding():
    again = [updated(trains=(2,), steps=0), updated(LINE, trains=(2,), steps=0)]
    assert modes(run(saved(optimizers=(state(),)), loaded(), *again)) == [("fm29", 7)]


def restarted(steps, path="ck-1", steps_before=3):
    """A second start, which has restored what the first one has saved."""
    before = run(saved(made_at=OTHER, optimizers=(state(steps=steps_before),)), role=Role.STOPPED)
    restored = CheckpointRestored(LINE, path, OTHER, (1, 2), (), "")
    held = (2, *state().variables) if steps else (2,)
    loads = loaded(function="restore", path=path, variables=held), restored
    return run(*loads, updated(trains=(2,), steps=steps), role=Role.RESTARTED, before=before)


def test_an_optimizer_that_starts_anew_after_a_restart():
    assert modes(restarted(0)) == [("fm29", 20)]  # where it was said what the checkpoint holds


BEST = written(number=2, writer=Owner.LAYER, replicas=0)


@pytest.mark.parametrize(
    "end, later, expected",
    [
        (0.5, [], []),
        (0.5000001, [], []),
        (0.501, [], [("fm29", 20)]),
        (None, [], [("fm29", 20)]),
        (0.5, [BEST], [("fm29", 20)]),
        (0.5, [loaded(path="best")], [("fm29", 20)]),
    ],
    ids=["equal", "rounded", "other", "unknown", "the best of memory", "the best of a file"],
)
def test_a_restart_that_trains_to_the_weights_of_the_whole_run_has_lost_nothing(
    end, later, expected
):
    """As with an optimizer of Keras 2 that has no momentum, but variables for it."""

    def ends(recording, value):
        last = [*later, ended({2: [value]})] if value else []
        return replace(recording, events=(variable(2), *recording.events, *last))

    whole = ends(run(updated(trains=(2,), steps=0)), 0.5)
    assert modes(replace(ends(restarted(0), end), whole=whole)) == expected


@pytest.mark.parametrize("began, expected", [("0.1", [("fm29", 20)]), ("0.3", [])])
def test_a_rate_that_the_program_has_lowered_since(began, expected):
    """After a restart, the optimizer begins at the rate of the whole run's beginning."""
    second = restarted(0)
    kept = state(learning_rate="0.05")
    before = run(saved(made_at=OTHER, optimizers=(kept,)), role=Role.STOPPED)
    whole = run(updated(trains=(2,), steps=0, learning_rate=began))
    assert modes(replace(second, before=before, whole=whole)) == expected


@pytest.mark.parametrize(
    "second",
    [restarted(3), restarted(0, "ck-2"), restarted(0, steps_before=0)],
    ids=["goes on", "another file", "no step before"],
)
def test_a_restart_that_loses_nothing(second):
    assert modes(second) == []


@pytest.mark.parametrize(
    "function, path, line",
    [("main", "ck-1", 20), ("main", None, 7), ("other", "ck-1", 7)],
    ids=["beside", "nothing restored", "in another function"],
)
def test_a_checkpoint_without_the_optimizer_beside_a_file_of_weights(function, path, line):
    before = run(saved(path="w.h5", optimizers=(state(),)), role=Role.STOPPED)
    place = (Frame("/program/train.py", 5, function),)
    restored = CheckpointRestored(place, path, OTHER, (1,), (), "")
    loads = restored, loaded(function="load_weights", path="w.h5")
    restarted = run(*loads, updated(trains=(2,), steps=0), role=Role.RESTARTED, before=before)
    assert ("fm29", line) in modes(restarted)


def test_a_function_that_makes_the_optimizer_and_the_checkpoint(tmp_path):
    """Another, which is given all that it puts into the checkpoint, does not decide about that."""
    text = "class Trainer:\n    def __init__(self, model):\n        Checkpoint(model=model)\nTrainer(model)\n"
    (tmp_path / "train.py").write_text(text)
    holds = (Frame(str(tmp_path / "train.py"), 3, "__init__"),)
    main = (Frame(str(tmp_path / "train.py"), 4, "<module>"),)

    def lines(made_at):
        second = restarted(0)
        restored = next(iter(second.of(CheckpointRestored)))
        changed = replace(restored, made_at=(*holds, *main))
        events = [changed if each is restored else each for each in second.events]
        made = variable(4, maker=Owner.OPTIMIZER, location=made_at)
        return modes(replace(second, events=(made, *events)))

    assert lines((*holds, *main)) == [("fm29", 3)]
    assert lines(main) == [("fm29", 4)]


@pytest.mark.parametrize("made, line", [("adam: Optimizer = Adam()", 3), ("other = Adam()", 5)])
def test_a_class_that_is_given_the_optimizer_decides_what_its_checkpoint_holds(
    made, line, tmp_path
):
    text = "class Trainer:\n    def __init__(self, model, optimizer):\n        Checkpoint(model=model)\n"
    (tmp_path / "train.py").write_text(f"{text}{made}\nTrainer(model, adam)\n")
    second = restarted(0)
    restored = next(iter(second.of(CheckpointRestored)))
    holds = stack(tmp_path / "train.py", 3, function="__init__")
    changed = replace(restored, made_at=(*holds, *stack(tmp_path / "train.py", 5)))
    events = [changed if each is restored else each for each in second.events]
    optimizer = variable(4, maker=Owner.OPTIMIZER, location=stack(tmp_path / "train.py", 4))
    assert modes(replace(second, events=(optimizer, *events))) == [("fm29", line)]


@pytest.mark.parametrize(
    "later, expected",
    [
        (updated(trains=(1,), steps=0), []),
        (updated(trains=(1,), steps=3), [("fm29", 20)]),
        (updated(LINE, trains=(1,), steps=0), [("fm29", 20)]),
        (updated(trains=(1,), steps=0, kind="SGD"), [("fm29", 20)]),
    ],
    ids=["a later phase", "goes on", "another line", "another kind"],
)
def test_a_later_phase_has_an_optimizer_of_its_own(later, expected):
    save = saved(optimizers=(state(),))
    assert modes(replace(restarted(0), whole=run(save, later))) == expected
    at_first = saved(optimizers=(state(steps=0),))
    assert modes(replace(restarted(0), whole=run(at_first, later))) == [("fm29", 20)]


def after_end(second):
    """What is found in a program that is started again after a whole run."""
    again = replace(second, role=Role.AGAIN, whole=run())
    return [(each.mode, each.line) for each in diagnose(Runs([run()], again=[again])).findings]


def test_a_program_that_is_started_again_after_its_end():
    assert after_end(restarted(0)) == [("fm29", 20)]
    assert after_end(restarted(3)) == []
    assert after_end(restarted(0, "ck-2")) == []


def test_other_rules_do_not_judge_what_comes_after_the_end():
    """A program may delete its checkpoints at its end."""
    before = run(saved(made_at=OTHER), role=Role.STOPPED)
    nothing = CheckpointRestored(LINE, None, OTHER, (1, 2), (), "")
    assert modes(run(nothing, before=before, role=Role.RESTARTED)) == [("fm08", 7)]
    assert after_end(run(nothing, before=before)) == []


# A model that is compiled again


def replaced(**changes):
    usual = OptimizerReplaced(LINE, state(), "Adam", "0.1", continues=True, variables=(1, 2))
    return replace(usual, **changes)


NEW_STEPS = updated(trains=(1, 2), steps=0)


def test_who_compiles_again_is_who_chose_the_model(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("def ready(net):\n    net.compile(adam())\n\nready(net)\nnet.compile(adam())\n")
    for lines, line in (((2, 4), 4), ((5,), 5)):
        again = replaced(location=stack(path, *lines))
        assert modes(run(again, NEW_STEPS)) == [("fm29", line)]


def test_an_optimizer_that_is_replaced_when_the_model_is_compiled_again():
    for steps, words in (
        ([updated()], "which was at step 3"),
        ([], "which a load has set to step 3"),
    ):
        (finding,) = found(run(*steps, replaced(), NEW_STEPS))
        assert (finding.mode, finding.line) == ("fm29", 7)
        assert f"the optimizer, {words}, is replaced by a new one" in str(finding.message)


def test_a_line_that_compiles_with_other_rates_again_and_again_has_one_note():
    again = [replaced(learning_rate="0.5", before=state(steps=steps)) for steps in (8, 12)]
    assert len(notes(updated(), *again, NEW_STEPS)) == 1


def test_a_learning_rate_that_a_callback_has_lowered_since():
    began = updated(trains=(1, 2), steps=0)
    lowered = replaced(before=state(learning_rate="0.001"))
    assert modes(run(began, lowered, NEW_STEPS)) == [("fm29", 7)]
    other = replaced(before=state(learning_rate="0.001"), learning_rate="0.01")
    assert modes(run(began, other, NEW_STEPS)) == []


@pytest.mark.parametrize("again, expected", [(False, [("fm29", 7)]), (True, [])])
def test_a_rate_that_the_whole_run_has_lowered_since(again, expected):
    """A later phase takes a new optimizer on the same line in the run that was never stopped."""
    lowered = replaced(before=state(learning_rate="0.001"))
    phase = (replaced(continues=False),) if again else ()
    whole = run(updated(trains=(1, 2), steps=0), *phase)
    assert modes(run(lowered, NEW_STEPS, role=Role.RESTARTED, whole=whole)) == expected


@pytest.mark.parametrize(
    "events",
    [
        [replaced()],
        [NEW_STEPS, replaced()],
        [replaced(), updated(trains=(1, 2), steps=3)],
        [replaced(), updated(trains=(8, 9), steps=0)],
        [replaced(continues=False), NEW_STEPS],
        [replaced(learning_rate="0.01"), NEW_STEPS],
        [replaced(kind="SGD"), NEW_STEPS],
        [replaced(before=state(variables=(4, 5))), NEW_STEPS],
        [replaced(location=()), NEW_STEPS],
    ],
    ids=[
        "not trained on",
        "trained before only",
        "the old one goes on",
        "another model is trained",
        "another loss, other variables or values",
        "another rate, as for fine-tuning",
        "another kind",
        "it remembers nothing",
        "on no line",
    ],
)
def test_a_model_that_is_rightly_compiled_again(events):
    assert modes(run(*events)) == []


def test_after_a_load_that_brings_the_optimizer_the_line_that_replaces_it_is_blamed():
    events = saved(optimizers=(state(),)), loaded(), replaced(location=OTHER), NEW_STEPS
    assert modes(run(*events)) == [("fm29", 20)]


def test_transfer_learning_needs_an_optimizer_of_its_own():
    kept = VariablesKept(LINE, "load_weights", "ck-1", (3,), (), 1, other_output=True, skipped=True)
    again = updated(trains=(2,), steps=0)
    events = saved(optimizers=(state(),)), loaded()
    assert modes(run(*events, kept, again)) == []
    assert modes(run(*events, replace(kept, path="ck-2"), again)) == [("fm29", 7)]
    # What an earlier load left out says nothing of a later one of the same file.
    before, load = events
    assert modes(run(before, kept, load, again)) == [("fm29", 7)]


RATE = LearningRateWritten(LINE, 12, 0.4)


@pytest.mark.parametrize(
    "rates, whole, expected",
    [
        ((RATE,), (RATE,), [("fm29", 20)]),
        ((), (RATE,), []),
        ((RATE,), (), []),
        ((replace(RATE, number=9),), (RATE,), []),
        ((RATE,), (replace(RATE, location=OTHER),), []),
    ],
    ids=["before each step", "not again", "not before", "of another optimizer", "another line"],
)
def test_a_rate_that_the_program_sets(rates, whole, expected):
    """The new optimizer has another rate than the one before, since the program has set it after the restart."""
    second = restarted(0)
    (update,) = second.of(GradientsApplied)
    new = replace(update.optimizer, learning_rate="0.4", variables=(11, 12, 13))
    events = [*second.events[:-1], *rates, replace(update, optimizer=new)]
    assert second.events[-1] is update
    again = replace(second, events=tuple(events), whole=run(*whole))
    assert modes(again) == expected


def test_an_optimizer_in_the_checkpoint_that_is_not_the_one_that_trains():
    """A function makes both, and line 9 calls it for the one in the checkpoint."""
    maker = stack("/program/train.py", 3)
    in_file = variable(5, maker=Owner.OPTIMIZER, location=(*maker, *stack("/program/train.py", 9)))
    own = variable(11, maker=Owner.OPTIMIZER, location=(*maker, *stack("/program/train.py", 8)))
    new = updated(trains=(2,), steps=0, variables=(11, 12, 13))
    before, load = saved(optimizers=(state(),)), loaded(variables=(2, 5))
    assert modes(run(variable(2), own, in_file, before, load, new)) == [("fm29", 9)]
    assert modes(run(variable(2), in_file, before, load, own, new)) == [("fm29", 3)]
    of_the_load = replace(in_file, location=load.location)
    assert modes(run(variable(2), own, of_the_load, before, load, new)) == [("fm29", 3)]
