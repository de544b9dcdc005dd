"""Runs side by side, on facts alone: where they part, and what is made of it."""

import pytest
from examine_facts import ended, fact, run, state, strategy, updated, variable
from strategy_clinic.examiner.recording import Examination
from strategy_clinic.examiner.rules import divergence, findings
from strategy_clinic.examiner.runs import plan


def steps(update, devices=2, batch=8, **options):
    before, after = [0.0, 1.0, 1.0, 1.0], [0.0, *(1.0 - update * each for each in (1, 2, 3))]
    step = {"fact": "step", "number": 1, "values": {"1": after}, "before": {"1": before}}
    sizes = fact("batch", sizes=[batch // devices] * devices)
    gradient, end = fact("gradient", missing=0, of=1), ended(values={"1": after})
    trained = updated(state=state())
    facts = [strategy(devices), variable(1), sizes, gradient, trained, step, end]
    return run(*facts, devices=devices, **options)


def judged(one, other):
    parting = divergence.parting(one, other)
    return [each.mode for each in findings.findings_of([other, one], [parting] if parting else [])]


def test_an_update_that_grows_with_the_devices():
    assert judged(steps(0.1, 1), steps(0.2, 2)) == ["fm37"]
    assert judged(steps(0.1, 1), steps(0.4, 4)) == ["fm37"]


def bent(update, devices, straight=8):
    """Most of a model lies before statistics of parts of a batch, and its gradients have other directions."""
    made = steps(update, devices)
    step, end = made.of("step")[0], made.last("ended")
    late = [update * each for each in range(1, straight + 1)]
    early = [update * each for each in ([9, -9, 9] if devices == 1 else [9, 9, -9])]
    before = {"1": [0.0] * 4, "2": [0.0] * (straight + 1)}
    values = {"1": [0.0, *early], "2": [0.0, *late]}
    changed = {
        "step": step | {"values": values, "before": before},
        "ended": end | {"values": values},
    }
    trained = updated(state=state(trains=[1, 2]))
    facts = [changed.get(each["fact"], each) for each in made.facts]
    return run(variable(2, shape=[straight]), trained, *facts, devices=devices)


def test_an_update_that_grows_only_after_the_last_normalization():
    one, other = bent(0.1, 1), bent(0.2, 2)
    assert divergence.update_ratio(one, other) is None
    assert divergence.straight_ratio(one, other) == pytest.approx(2)
    assert judged(one, other) == ["fm37"]
    assert judged(one, bent(0.1, 2)) == judged(one, bent(0.14, 2)) == []


def test_a_few_entries_have_one_direction_by_chance():
    assert judged(bent(0.1, 1, straight=2), bent(0.2, 2, straight=2)) == []


def kept(gradient, devices, batch=8):
    """A step of an optimizer whose update is the same whatever the factor, and what it keeps of the gradient."""
    made = steps(0.1, devices, batch)
    slot = variable(5, maker="optimizer")
    slots = {"5": [1.0, *(gradient * each for each in (1.0, -2.0, 3.0))]}
    return run(
        slot,
        *(f | {"slots": slots} if f["fact"] == "step" else f for f in made.facts),
        devices=devices,
    )


def test_gradients_that_an_optimizer_keeps_and_no_update_shows():
    assert judged(kept(0.1, 1), kept(0.2, 2)) == judged(kept(0.1, 1), kept(0.4, 4)) == ["fm37"]
    assert judged(kept(0.1, 1), kept(0.1, 2)) == judged(kept(0.1, 1), kept(0.13, 2)) == []
    assert judged(kept(0.1, 1), kept(0.2, 2, batch=16)) == judged(kept(0.1, 1), kept(-0.2, 2)) == []


def test_the_same_update_or_one_that_grows_with_the_batch():
    assert judged(steps(0.1, 1), steps(0.1000001, 2)) == []
    assert judged(steps(0.1, 1, batch=8), steps(0.2, 2, batch=16)) == []
    assert judged(steps(0.1, 1), steps(0.13, 2)) == []
    assert judged(steps(0.1, 1), steps(0.17, 2)) == judged(steps(0.1, 1), steps(0.2, 4)) == []
    assert judged(steps(0.1, 1), steps(0.19, 2)) == ["fm37"]  # bent by statistics of parts


def test_where_two_runs_part():
    found = divergence.parting(steps(0.1, 1), steps(0.2, 2))
    assert (found.step, found.variable["name"]) == (1, "v1")
    assert divergence.update_ratio(steps(0.1, 1), steps(0.2, 2)) == pytest.approx(2)
    assert divergence.parting(steps(0.1, 1), steps(0.1, 2)) is None
    assert divergence.repeats(steps(0.1), steps(0.1)) and not divergence.repeats(
        steps(0.1), steps(0.2)
    )


def test_of_several_variables_the_first_that_was_made_is_told():
    """Not whichever a set names first, which would be another one in each process."""

    def several(update):
        values = {str(n): [0.0, 1.0 - update] for n in range(1, 41)}
        made = [variable(n, at=[["/program/train.py", n, "main"]]) for n in range(1, 41)]
        return run(*made, {"fact": "step", "number": 1, "values": values}, ended(values=values))

    assert divergence.parting(several(0.1), several(0.2)).variable["name"] == "v1"


def test_sixteen_bits_agree_to_less():
    half = variable(9, dtype="bfloat16")
    one, other = steps(0.10, 1), steps(0.11, 2)
    assert divergence.parting(one, other)
    assert not divergence.parting(run(half, *one.facts), run(half, *other.facts))


def test_a_program_that_refuses_fewer_devices_has_not_failed():
    refuses = run(
        fact("raised", text="AssertionError: 2 GPUs"), devices=1, ended="raised", status=1
    )
    found = Examination("train.py", [run(), refuses.but(role="compared")])
    assert plan.failure_of(found) == ""
    assert plan.uncompared(found) == [
        "on 1 device it raised with status 1: AssertionError: 2 GPUs, so it was not compared there"
    ]
    found.runs[1] = refuses
    assert plan.failure_of(found) == "raised with status 1: AssertionError: 2 GPUs"
    assert plan.uncompared(found) == []
