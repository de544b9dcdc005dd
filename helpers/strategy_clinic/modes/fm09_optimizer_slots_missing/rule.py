"""Checks fm09: a restore left an optimizer's variables as they were, since they did not exist when the file was saved."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule
from ...observer.events import CheckpointRestored, Owner, Saved


@rule("fm09", explains_divergence=False)
def slots_missing(recording: Recording) -> Iterator[Finding]:
    saves = {save.path: save for save in recording.of(Saved)}
    for restored in recording.of(CheckpointRestored):
        save = saves.get(restored.path) if restored.path else None
        new = set(restored.variables) - set(save.variables) if save else set()
        slots = sorted(n for n in new if recording.maker_of(n) is Owner.OPTIMIZER)
        stepped = [
            each for each in restored.optimizers if each.steps and set(slots) & set(each.variables)
        ]
        if save and save.location and slots and stepped and restored.unmatched:
            yield observed(
                "fm09",
                recording,
                save.location,
                f"the optimizer had no slots when this was saved: a restore leaves {len(slots)} as they are",
                "after ",
                line_of(restored.location, "a restore"),
                f" {recording.name_of(slots[0])} kept the value of step {stepped[0].steps}",
            )
