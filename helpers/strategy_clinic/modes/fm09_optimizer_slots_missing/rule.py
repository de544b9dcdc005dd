"""Checks fm09: a restore left an optimizer's variables as they were, since they did not exist when the file was saved."""

import itertools

from ...examiner.blame import from_maker
from ...examiner.history import COUNT_AND_RATE, optimizers_of
from ...examiner.recording import Recording
from ...examiner.rule import Steps, line_of, observed, rule
from ...examiner.unfilled import save_of
from ...observer.events import (
    CheckpointRestored,
    GradientsApplied,
    Loaded,
    OptimizerState,
    Owner,
    Saved,
    VariableMade,
)

ANEW = "save and load the optimizer with the weights, or make a new one where they are loaded"


@rule("fm09", explains_divergence=False)
def slots_missing(recording: Recording) -> Steps:
    for restored in recording.of(CheckpointRestored):
        save = save_of(recording, restored)
        if not save or not save.location or not restored.unmatched:
            continue
        made = {each.number for each in recording.of(VariableMade, after=save)}
        new = made & {*restored.variables} - {*save.variables}
        slots = sorted(n for n in new if recording.maker_of(n) is Owner.OPTIMIZER)
        stepped = [each for each in restored.optimizers if each.steps and new & {*each.variables}]
        if slots and stepped:
            yield observed(
                "fm09",
                recording,
                from_maker(save.location, recording.location_of(slots[0])),
                f"the optimizer had no slots when this was saved: a restore leaves {len(slots)} as they are",
                "after ",
                line_of(restored.location, "a restore"),
                f" {recording.name_of(slots[0])} kept the value of step {stepped[0].steps}",
            )


@rule("fm09", explains_divergence=False)
def slots_of_the_training_before(recording: Recording) -> Steps:
    """Checks whether weights go back to what they were before all training, and the slots that they have got since stay."""
    updates = recording.of(GradientsApplied)
    saves = recording.of(Saved, until=updates[0]) if updates else []
    for load, save in itertools.product(recording.of(Loaded), saves):
        states = trained_on(recording, load) if load.path == save.path and save.location else []
        if states:
            slot = recording.name_of(states[0].variables[COUNT_AND_RATE])
            yield observed(
                "fm09",
                recording,
                save.made_at or save.location,
                "the weights of the start are loaded again, and the optimizer keeps what it has learnt since then",
                line_of(load.location, "a later line"),
                f" loads them after updates by {states[0].kind}, whose {slot} stays, and it makes more updates",
                fix=ANEW,
            )
            return


def trained_on(recording: Recording, load: Loaded) -> list[OptimizerState]:
    """Returns the optimizers that have trained before a load and train after it, and whose slots nothing has changed."""
    changed = recording.loaded | recording.written_by(Owner.USER)
    # One that the program has dropped since is not there at the end; its first update after the load is.
    later = {each.optimizer.variables[:1] for each in recording.of(GradientsApplied, after=load)}
    steps_at_end = {each.variables[:1]: each.steps for each in optimizers_of(recording)}
    return [
        then
        for then in load.optimizers
        if {*then.trains} & {*load.variables}
        and then.steps
        and (then.variables[:1] in later or then.steps < steps_at_end.get(then.variables[:1], 0))
        and then.variables[COUNT_AND_RATE:]
        and not {*then.variables[COUNT_AND_RATE:]} & changed
    ]
