"""Checks fm77: training goes on after a restart, and the order of the examples begins again."""

from __future__ import annotations

from ...examiner.after_restart import (
    ENOUGH,
    has_consequence,
    is_count,
    is_generator,
    lost_values,
    made_at,
    other_examples,
    repeats_after,
    trained_on,
)
from ...examiner.blame import from_definer, from_first, from_iterated, loop_around
from ...examiner.divergence import repeats_again
from ...examiner.findings import Answers, FollowUp, OtherLaterSeeds, OtherSeed
from ...examiner.history import steps_at_end, updates_of
from ...examiner.recording import Recording, Role
from ...examiner.restarts import begins_as_made, finding, is_only_order, other_end, resumed
from ...examiner.rule import Runs, Steps, observed, rule, rule_of_runs
from ...observer.events import (
    EpochsLeftOut,
    ExamplesSkipped,
    GradientsApplied,
    Loaded,
    OrderDrawn,
    Owner,
    SeedRepeated,
    Stack,
    VariableWritten,
    WeightsCopied,
)

MODE = "fm77"
FIX = "make the order of each epoch from the number of the epoch, and begin with the saved number"


@rule(MODE, explains_divergence=False, finds_own_program=False)
def order_repeats(run: Recording) -> Steps:
    """Checks whether a program skips what it took before a restart, while the order of the examples begins again."""
    whole, skips = run.whole, run.of(ExamplesSkipped)
    if run.role is not Role.RESTARTED or not run.finished or not whole or not skips:
        return
    is_new = skips[-1].location not in [each.location for each in whole.of(ExamplesSkipped)]
    is_comparable = steps_at_end(run) == steps_at_end(whole) and is_only_order(run, whole)
    if not is_new or not is_comparable or not other_end(run, whole):
        return
    if (yield from repeats_again(whole)):
        message = (
            f"after a restart the first {skips[-1].count} elements are skipped, but the order begins again: they are not those "
            "that were taken before"
        )
        fix = "give each epoch an order of its own that a restart makes again, by the seed of `shuffle`"
        yield finding(run, run.of(OrderDrawn)[-1].location, message, fix, mode=MODE)


@rule_of_runs(MODE, explains_divergence=False)
def order_begins_again(runs: Runs) -> Steps:
    """Checks whether training goes on after a restart with other examples than the whole run has then."""
    others = [each for each in runs.recordings if each.role is Role.COMPARED]
    for run, whole in resumed(runs.recordings):
        other = other_examples(run, whole, others)
        if not other or run.of(EpochsLeftOut):  # which takes the examples with it, and is fm69
            continue
        if begins_as_made(run, whole):
            continue  # only the count of the updates was loaded: no training goes on
        values = [each for each in lost_values(run, whole) if each.is_reset]
        generators = [each.held for each in values if is_generator(each.held)]
        counters = [each for each in values if each.held not in generators]
        begins = "training"
        drawn = made_at(generators[0]) if generators else order_chosen(run, other.location)
        if counters and has_consequence(run, whole, counters, others):
            lost = counters[0]
            if other.taken is None or not is_count(lost.value):
                continue  # the examples may follow from it in another way
            drawn = made_at(lost.held)
            begins = f"{lost.held[2]} begins again with {lost.value} and not with {lost.right}, so that training"
        if not (yield from chooses_order(run)):
            continue
        which = "other examples than in the run that was never stopped"
        if other.taken is not None:
            which = f"the examples that were taken after {other.taken}: their order begins again"
        message = f"{begins} goes on after {other.updates} updates with {which}"
        yield finding(run, drawn, message, FIX, mode=MODE)
        return


@rule_of_runs(MODE, explains_divergence=False)
def order_drawn_again(runs: Runs) -> Steps:
    """Checks whether one training takes its examples in the same order again, since the same seed is given again."""
    for run in runs.whole[:1]:
        updates, repeated = repeats_after(run), run.of(SeedRepeated)
        if not updates or not repeated or not goes_on_after(run, updates):
            continue
        again = yield FollowUp(run, OtherLaterSeeds(), "with another seed each time")
        if again and draws_others(again, run, updates):
            seed = f"{repeated[0].function} is given the seed {repeated[0].seed} again"
            message = (
                f"{seed}: the examples of the first {updates} updates follow in the same order"
            )
            proof = "with another seed each time, other examples follow"
            yield observed(MODE, run, repeated[0].location, message, proof, fix=FIX)


def goes_on_after(run: Recording, updates: int) -> bool:
    """Tells whether one training goes on after these updates: what was saved then is loaded, or nothing else sets its weights."""
    for load in run.of(Loaded):
        states = [each for save in run.saves(load.path, until=load) for each in save.optimizers]
        goes_on = updates_of(run, load.variables, after=load)
        if goes_on and any(state.steps == updates for state in states):
            return True
    first = run.first(GradientsApplied)
    writes = run.of(VariableWritten, after=first) if first else []
    written = {each.number for each in writes if each.writer is not Owner.OPTIMIZER}
    copied = {number for each in run.of(WeightsCopied) for number in each.target}
    is_one = len({each.optimizer.variables for each in run.of(GradientsApplied)}) == 1
    return is_one and not run.trained & (written | copied | run.loaded)


def draws_others(again: Recording, run: Recording, updates: int) -> bool:
    """Tells whether a run has the first examples of another one, and no order that repeats."""
    mine, theirs = map(trained_on, (again, run))
    first = [each.checksums[:updates] for each in (*mine[:1], *theirs[:1])]
    return len({*first}) == 1 and repeats_after(again) != updates


def chooses_order(run: Recording) -> Answers[bool]:
    """Tells whether the program has a seed for the order: without one, each start of the program draws another order."""
    words = "with other random numbers where it chooses no seed"
    again = yield FollowUp(run, OtherSeed(), words)
    return again is not None and orders_in(again) == orders_in(run)


def orders_in(run: Recording) -> list[tuple[object, ...]]:
    """Returns the first batches of what was trained on; how many more a dataset reads ahead is by chance."""
    return [(each.location, each.begins, each.checksums[:ENOUGH]) for each in trained_on(run)]


def order_chosen(run: Recording, step: Stack) -> Stack:
    """Returns the line that trains an epoch in a loop, or else the one that shuffles, or that makes what the step takes."""
    if epochs := from_first(step[1:], loop_around):
        return epochs
    drawn = run.last(OrderDrawn)
    return from_definer(drawn.location) if drawn else from_iterated(step)
