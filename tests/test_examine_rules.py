"""Rules of the examiner, on facts alone: what each must say, and what it must not say."""

import pytest

from helpers.examine import compare, rules
from helpers.examine.facts import Observation

LINE = [["/program/train.py", 7, "main"]]
OTHER = [["/program/train.py", 20, "main"]]


def variable(number, **changes):
    usual = {"name": f"v{number}", "shape": [3], "dtype": "float32", "maker": "layer"}
    usual |= {"copies": 0, "parts": [], "at": LINE, "number": number}
    return {"fact": "variable"} | usual | changes


def fact(kind, **facts):
    return {"fact": kind, "at": LINE} | facts


def run(*facts, devices=2, **options):
    return Observation("watched", devices, tuple(facts), **options)


def modes(*runs):
    return [(each.mode, each.line) for each in rules.findings_of(list(runs))]


def lost(**changes):
    return {"number": 1, "trained": False, "read": True, "changed": True} | changes


def saved(held=(2,), left=(), **changes):
    usual = {"what": "checkpoint", "path": "ck-1", "held": list(held), "left": list(left)}
    return fact("saved", **usual | {"optimizers": [], "at": OTHER} | changes)


def strategy(replicas=2):
    return fact("strategy", name="MirroredStrategy", replicas=replicas)


def test_nothing_is_said_of_nothing():
    assert modes(run()) == modes() == []


# fm05


MINE = variable(1, maker="user")


def test_a_variable_that_no_checkpoint_holds():
    assert modes(run(MINE, saved(left=[lost()]))) == [("fm05", 7)]


@pytest.mark.parametrize(
    "facts",
    [
        [MINE, saved(left=[lost(read=False)])],
        [MINE, saved(left=[lost(changed=False)])],
        [MINE, saved(left=[lost()]), saved(held=[1, 2])],
        [MINE, saved(left=[lost()], what="model")],
        [variable(1, maker="user", shape=[]), saved(left=[lost()])],
        [variable(1, maker="user", dtype="int64"), saved(left=[lost()])],
        [variable(1, maker="layer"), saved(left=[lost()])],
    ],
    ids=[
        "unread",
        "unchanged",
        "held-elsewhere",
        "exported",
        "a-number",
        "a-count",
        "of-a-frozen-layer",
    ],
)
def test_what_is_rightly_not_saved(facts):
    assert modes(run(*facts)) == []


def test_a_trained_number_that_no_checkpoint_holds():
    scale = variable(1, maker="user", shape=[])
    assert modes(run(scale, saved(left=[lost(trained=True)]))) == [("fm05", 7)]


# fm08, fm09, fm29, fm35


def restored(path="ck-1", **changes):
    usual = {"path": path, "unmatched": "", "holds": [1, 2], "optimizers": [], "at": LINE}
    return fact("restored", **usual | changes)


def test_a_first_start_has_nothing_to_restore():
    assert modes(run(restored(None), saved())) == []


def test_a_restore_without_a_path_after_a_save():
    assert modes(run(saved(), restored(None))) == [("fm08", 7)]


def test_a_restart_that_does_not_find_what_was_saved():
    assert modes(run(saved(fact="saved before"), restored(None))) == [("fm08", 7)]


def state(**changes):
    usual = {"kind": "Adam", "trains": [1], "steps": 3, "variables": [4, 5, 6], "at": "0.1"}
    return usual | changes


SLOTS = [variable(1), variable(4, maker="optimizer"), variable(5, maker="optimizer")]


def test_slots_that_were_not_there_when_the_file_was_saved():
    late = restored(unmatched="Found 2 objects", holds=[1, 4, 5], optimizers=[state()])
    assert modes(run(*SLOTS, saved(held=[1]), late)) == [("fm09", 20)]


def test_slots_that_no_step_has_changed():
    early = restored(unmatched="Found 2 objects", holds=[1, 4, 5], optimizers=[state(steps=0)])
    assert modes(run(*SLOTS, saved(held=[1]), early)) == []


def loaded(**changes):
    usual = {"how": "load", "path": "ck-1", "numbers": [2], "single": [2], "scope": True}
    return fact("loaded", **usual | {"replicas": 2} | changes)


def updated(**changes):
    return fact("updated", gradients=2, missing=0, at=OTHER) | changes


def test_an_optimizer_that_starts_anew_after_loading():
    again = updated(state=state(trains=[2], steps=0))
    assert modes(run(saved(optimizers=[state()]), loaded(), again)) == [("fm29", 7)]


@pytest.mark.parametrize("new", [state(at="0.01"), state(kind="SGD"), state(variables=[4, 5])])
def test_another_optimizer_is_another_training(new):
    again = updated(state=new | {"trains": [2], "steps": 0})
    kept = state(variables=new["variables"])
    assert modes(run(saved(optimizers=[kept]), loaded(), again)) == []


def ended(**changes):
    return {"fact": "ended", "how": "finished", "values": {}, "apart": [], "late": []} | changes


def test_what_was_made_after_a_restore():
    late = [{"at": LINE, "path": "ck-1", "numbers": [1], "says": "Found 1 object"}]
    assert modes(run(variable(1), ended(late=late))) == [("fm35", 7)]
    assert modes(run(variable(1), ended(late=[late[0] | {"numbers": []}]))) == []


# fm11, fm19, fm21, fm23, fm25, fm26, fm38


def test_no_gradients_for_an_unbuilt_model():
    early = fact("unbuilt", name="model", made=LINE)
    nothing = updated(gradients=0, state=state())
    assert modes(run(early, nothing)) == [("fm11", 7)]
    assert modes(run(early, updated(state=state()))) == []


def test_a_mean_of_means():
    assert modes(run(fact("reduced", sizes=[3, 1], values=[1.0, 5.0]))) == [("fm19", 7)]
    assert modes(run(fact("reduced", sizes=[3, 1], values=[2.0, 2.0]))) == []
    assert modes(run(fact("reduced", sizes=[4, 0], values=[2.0, float("nan")]))) == [("fm19", 7)]


def batches(replicas, each, *more):
    sizes = fact("batch", sizes=[each] * replicas)
    return run(strategy(replicas), fact("by_function"), sizes, *more, devices=replicas)


def test_a_whole_batch_for_each_replica():
    batched = fact("batched", size=8, at=OTHER)
    assert modes(batches(1, 8), batches(2, 8, batched)) == [("fm21", 20)]
    assert modes(batches(1, 8), batches(2, 4, batched)) == []


def test_a_program_that_asks_how_many_replicas_there_are_means_it():
    asked = fact("asked")
    assert modes(batches(1, 8, asked), batches(2, 8, asked)) == []


def written(**changes):
    return fact("written", **{"number": 1, "by": "user", "replicas": 2, "at": OTHER} | changes)


def test_replicas_that_write_to_a_variable_outside_the_scope():
    assert modes(run(MINE, written())) == [("fm23", 7)]
    assert modes(run(variable(1, maker="user", copies=2), written())) == []
    assert modes(run(variable(1, maker="metric"), written(by="metric"))) == []
    assert modes(run(MINE, written(replicas=0))) == []


MIRRORED = variable(1, copies=2, parts=[10, 11])
USED = fact("used", number=2)


def test_a_model_loaded_outside_the_scope():
    outside = [MIRRORED, variable(2), saved(held=[1], what="model"), loaded(scope=False)]
    assert modes(run(*outside, USED)) == [("fm25", 7)]
    assert modes(run(*outside)) == []


def test_a_model_loaded_where_it_belongs():
    inside = [MIRRORED, variable(2), saved(held=[1], what="model"), loaded(), USED]
    assert modes(run(*inside)) == []
    single = [variable(1), variable(2), saved(held=[1]), loaded(scope=False), USED]
    assert modes(run(*single)) == []


def called(size, replicas, number):
    return fact("called", size=size, replicas=replicas, numbers=[number], at=OTHER)


def goes_on(size, trains=2):
    trained = updated(state=state(trains=[trains], steps=9))
    return run(called(8, 1, 1), saved(held=[1]), loaded(), called(size, 2, 2), trained)


def test_a_training_that_goes_on_with_larger_steps():
    assert modes(goes_on(8)) == [("fm26", 20)]
    assert modes(goes_on(4)) == modes(goes_on(8, trains=5)) == []


def test_replicas_that_differ_at_the_end():
    assert modes(run(MIRRORED, ended(apart=[{"number": 1, "apart": 0.2}]))) == [("fm38", 7)]
    assert modes(run(MIRRORED, ended(apart=[{"number": 1, "apart": 1e-7}]))) == []


# Comparing


def steps(update, devices=2, batch=8, **options):
    before, after = [0.0, 1.0, 1.0, 1.0], [0.0, *(1.0 - update * each for each in (1, 2, 3))]
    step = {"fact": "step", "number": 1, "values": {"1": after}, "before": {"1": before}}
    sizes = fact("batch", sizes=[batch // devices] * devices)
    gradient, end = fact("gradient", missing=0, of=1), ended(values={"1": after})
    trained = updated(state=state())
    facts = [strategy(devices), variable(1), sizes, gradient, trained, step, end]
    return run(*facts, devices=devices, **options)


def judged(one, other):
    parting = compare.parting(one, other)
    return [each.mode for each in rules.findings_of([other, one], [parting] if parting else [])]


def test_an_update_that_grows_with_the_devices():
    assert judged(steps(0.1, 1), steps(0.2, 2)) == ["fm37"]
    assert judged(steps(0.1, 1), steps(0.4, 4)) == ["fm37"]


def test_the_same_update_or_one_that_grows_with_the_batch():
    assert judged(steps(0.1, 1), steps(0.1000001, 2)) == []
    assert judged(steps(0.1, 1, batch=8), steps(0.2, 2, batch=16)) == []
    assert judged(steps(0.1, 1), steps(0.13, 2)) == []


def test_where_two_runs_part():
    found = compare.parting(steps(0.1, 1), steps(0.2, 2))
    assert (found.step, found.variable["name"]) == (1, "v1")
    assert found.ratio == pytest.approx(2)
    assert compare.parting(steps(0.1, 1), steps(0.1, 2)) is None
    assert compare.repeats(steps(0.1), steps(0.1)) and not compare.repeats(steps(0.1), steps(0.2))


def test_sixteen_bits_agree_to_less():
    half = variable(9, dtype="bfloat16")
    one, other = steps(0.10, 1), steps(0.11, 2)
    assert compare.parting(one, other)
    assert not compare.parting(run(half, *one.facts), run(half, *other.facts))


# Loud modes


def raised(text, **changes):
    usual = {"error": "ValueError", "text": f"ValueError: {text}", "at": LINE, "inside": []}
    return fact("raised", **usual | changes)


def test_an_exception_is_named_by_triage():
    words = "No gradients provided for any variable."
    assert modes(run(raised(words), ended="raised")) == [("fm34", 7)]
    assert modes(run(raised("something else"), ended="raised")) == []


def test_what_a_traced_function_says_is_further_in():
    inside = [["/program/train.py", 31, "step"]]
    words = "The filename must end in `.weights.h5`. Received: filepath=my"
    assert modes(run(raised(words, inside=inside))) == [("fm04", 31)]


def test_every_rule_is_of_a_mode_that_exists():
    from helpers.examine import loud
    from helpers.triage import known

    assert {*rules.RULES, *loud.BLAMED} <= set(known.declared_modes())
