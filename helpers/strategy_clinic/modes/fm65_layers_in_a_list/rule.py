"""Checks fm65: a checkpoint of a Keras 3 model without layers of it, which are used after a restore as they were made."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...examiner.unfilled import (
    filled_weights,
    is_filled_later,
    is_used_as_made,
    kept_weights,
    save_without,
)
from ...observer.events import SaveKind, VariablesKept


@rule("fm65", explains_divergence=False, finds_own_program=False)
def layers_left_out(run: Recording) -> Iterator[Finding]:
    for load in run.of(VariablesKept):
        save = save_without(run, load)
        if not save or save.kind is not SaveKind.CHECKPOINT or run.keras != 3:
            continue
        if not filled_weights(run, load):
            continue  # a checkpoint without any weights of the model
        if is_used_as_made(run, load) and not is_filled_later(run, load):
            weights = kept_weights(run, load)
            first = run.name_of(min(weights))
            message = (
                f"the checkpoint lacks {len(weights)} weights of the model, which is called after a restore with these as they "
                "were made: a checkpoint does not follow layers of Keras 3 in a list or a dictionary"
            )
            yield observed("fm65", run, save.made_at or save.location, message, f"{first} is one")
            return
