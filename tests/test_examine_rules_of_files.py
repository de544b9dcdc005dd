"""Rules of the examiner on what is saved, loaded and restored, on facts alone."""

import pytest
from examine_facts import (
    LINE,
    MINE,
    OTHER,
    ended,
    fact,
    loaded,
    lost,
    modes,
    run,
    saved,
    state,
    updated,
    variable,
    written,
)
from strategy_clinic.examiner.rules import silent
from strategy_clinic.examiner.runs import followups

# fm05


TOGETHER = {
    "fact": "updated",
    "gradients": 2,
    "missing": 0,
    "at": OTHER,
    "state": {"trains": [1, 2], "steps": 1},
}
MISSED = {
    "fact": "missed",
    "numbers": [1],
    "why": "with its first value, the training goes elsewhere",
}


def test_a_trained_variable_that_no_checkpoint_holds():
    trained = saved(left=[lost(trained=True)])
    assert modes(run(MINE, TOGETHER, trained)) == [("fm05", 7)]
    assert modes(run(MINE, TOGETHER, trained, saved(held=[1, 2]))) == []
    assert modes(run(MINE, TOGETHER, saved(left=[lost(trained=True)], what="model"))) == []
    assert modes(run(MINE, trained)) == []  # by itself, as a model that is another matter


def test_a_variable_that_another_run_has_missed():
    assert modes(run(MINE, saved(left=[lost()]), MISSED)) == [("fm05", 7)]
    assert modes(run(MINE, saved(left=[lost()]))) == []


AGAIN, READ = variable(3, maker="user"), fact("used", number=3)


def test_what_takes_the_place_of_a_variable_after_loading():
    facts = [MINE, saved(left=[lost()]), loaded()]
    assert silent.remade(run(*facts, AGAIN, READ), 1) == 3
    assert silent.remade(run(*facts, AGAIN, written(number=3, replicas=0), READ), 1) is None
    assert silent.remade(run(*facts, AGAIN | {"at": OTHER}, READ), 1) is None
    assert silent.remade(run(*facts, AGAIN), 1) is silent.remade(run(MINE, AGAIN, READ), 1) is None
    assert silent.remade(run(*facts, AGAIN, loaded(numbers=[3]), READ), 1) is None
    assert modes(run(*facts, AGAIN, READ)) == []  # only another run can tell whether it matters


def answered(*values):
    return fact("answered", values=[0.0, *values])


def test_a_difference_that_another_run_makes():
    facts = [MINE, saved(left=[lost()]), loaded(), AGAIN, READ]
    first = run(*facts, answered(1.0))
    asked = [each for each in followups.questions_of(first) if "--give" in each.options]
    (question,) = asked
    assert question.options == ("--give", "1:3")
    assert question.answer(first, run(*facts, answered(1.0))) == []
    (missed,) = question.answer(first, run(*facts, answered(1.5)))
    assert modes(first.also(missed)) == [("fm05", 7)]


def test_a_mean_of_means_in_a_graph_is_asked_for():
    unseen, seen = (
        fact("reduced", sizes=[], values=[]),
        fact("reduced", sizes=[3, 1], values=[1.0, 5.0]),
    )
    first = run(unseen, fact("batch", sizes=[4, 4]), fact("batch", sizes=[3, 1]))
    (question,) = followups.questions_of(first)
    assert question.options == ("--tell",) and modes(first) == []
    assert modes(first.also(*question.answer(first, run(seen)))) == [("fm19", 7)]
    assert followups.questions_of(run(unseen, fact("batch", sizes=[4, 4]))) == []


@pytest.mark.parametrize(
    "variable, left, asked",
    [
        (MINE, lost(), [1]),
        (MINE, lost(read=False), []),
        (MINE, lost(changed=False), []),
        (MINE | {"dtype": "int64"}, lost(), []),
        (MINE | {"maker": "layer"}, lost(), []),
    ],
    ids=["state", "unread", "unchanged", "count", "of-a-layer"],
)
def test_what_another_run_is_asked_for(variable, left, asked):
    assert silent.in_question(run(variable, saved(left=[left]))) == asked


# fm08, fm09, fm29, fm35


def restored(path="ck-1", **changes):
    usual = {"path": path, "unmatched": "", "holds": [1, 2], "optimizers": [], "at": LINE}
    return fact("restored", **usual | {"made": OTHER} | changes)


BEFORE = saved(fact="saved before", made=OTHER)


def test_a_restart_that_does_not_find_what_was_saved():
    assert modes(run(restored(None), BEFORE)) == [("fm08", 7)]


@pytest.mark.parametrize(
    "facts",
    [
        [restored(None), saved(made=OTHER)],
        [restored(), restored(None), BEFORE],
        [restored(None), BEFORE | {"made": LINE}],
        [BEFORE],
    ],
    ids=["first start", "found at first", "another object", "no restore"],
)
def test_a_restore_that_has_nothing_to_find(facts):
    assert modes(run(*facts)) == []


SLOTS = [variable(1), variable(4, maker="optimizer"), variable(5, maker="optimizer")]


def test_slots_that_were_not_there_when_the_file_was_saved():
    late = restored(unmatched="Found 2 objects", holds=[1, 4, 5], optimizers=[state()])
    assert modes(run(*SLOTS, saved(held=[1]), late)) == [("fm09", 20)]


def test_slots_that_no_step_has_changed():
    early = restored(unmatched="Found 2 objects", holds=[1, 4, 5], optimizers=[state(steps=0)])
    assert modes(run(*SLOTS, saved(held=[1]), early)) == []


def test_an_optimizer_that_starts_anew_after_loading():
    again = updated(state=state(trains=[2], steps=0))
    assert modes(run(saved(optimizers=[state()]), loaded(), again)) == [("fm29", 7)]


def restarted(steps, path="ck-1", steps_before=3):
    """A second start, which has restored what the first one has saved."""
    before = BEFORE | {"optimizers": [state(steps=steps_before)]}
    loads = loaded(how="restore", path=path), restored(path)
    return run(before, *loads, updated(state=state(trains=[2], steps=steps)))


def test_an_optimizer_that_starts_anew_after_a_restart():
    assert modes(restarted(0)) == [("fm29", 20)]  # where it was said what the checkpoint holds
    assert modes(restarted(3)) == modes(restarted(0, "ck-2")) == []
    assert modes(restarted(0, steps_before=0)) == []


@pytest.mark.parametrize("new", [state(at="0.01"), state(kind="SGD"), state(variables=[4, 5])])
def test_another_optimizer_is_another_training(new):
    again = updated(state=new | {"trains": [2], "steps": 0})
    kept = state(variables=new["variables"])
    assert modes(run(saved(optimizers=[kept]), loaded(), again)) == []


def test_what_was_made_after_a_restore():
    late = [{"at": LINE, "path": "ck-1", "numbers": [1], "says": "Found 1 object"}]
    assert modes(run(variable(1), ended(late=late))) == [("fm35", 7)]
    assert modes(run(variable(1), ended(late=[late[0] | {"numbers": []}]))) == []
