"""Checks fm65: a checkpoint, or a file of Keras 3, without layers of its model, which a program has no other file of."""

from collections.abc import Collection

from ...examiner.findings import Location, counted
from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...examiner.unfilled import (
    filled_weights,
    is_filled_later,
    is_used_as_made,
    kept_weights,
    layers_left_out,
    loads_with_kept,
    of_layers,
    save_of,
    save_without,
)
from ...observer.events import CheckpointRestored, Saved, SaveKind, VariableRead, VariablesKept

REASON = "a checkpoint does not follow layers of Keras 3 in a list or a dictionary"
OTHER_NAME = (
    "give the attribute that has these layers another name: Keras saves none of a layer under a name of its own, such as "
    "`_layers`"
)


@rule("fm65", explains_divergence=False)
def used_as_made(run: Recording) -> Steps:
    """Checks what a restore leaves as it was made, and nothing fills later."""
    for load in loads_with_kept(run):
        save = lacking(run, load)
        if save and is_used_as_made(run, load) and not is_filled_later(run, load):
            weights = kept_weights(run, load)
            message = (
                f"the checkpoint lacks {len(weights)} weights of the model, which is called after a restore with these as they "
                f"were made: {REASON}"
            )
            holder = save.made_at or save.location
            yield observed("fm65", run, holder, message, *first_of(run, weights), " is one")
            return


def lacking(run: Recording, load: VariablesKept) -> Saved | None:
    """Returns the checkpoint that was loaded, if it was given a model with what the load leaves as it was."""
    save = save_without(run, load) if filled_weights(run, load) else None
    return save if save and save.kind is SaveKind.CHECKPOINT and run.keras_used != 2 else None


@rule("fm65", explains_divergence=False)
def model_file_lacks(run: Recording) -> Steps:
    """Checks what `load_model` leaves as it was made, though the saved model had it, too."""
    for load in loads_with_kept(run):
        save = save_without(run, load) if load.function == "load_model" else None
        if save and not is_filled_later(run, load):
            weights = kept_weights(run, load)
            message = (
                f"the file lacks {len(weights)} weights of the model, and `load_model` leaves them as they were made: Keras "
                "does not save the attribute that they are in"
            )
            proof = *first_of(run, weights), f" is one, and {load.path} has no such values"
            yield observed("fm65", run, load.location, message, *proof, fix=OTHER_NAME)
            return


@rule("fm65", explains_divergence=False)
def restored_from_nothing(run: Recording) -> Steps:
    """Checks a restore of a model from a checkpoint that was given one, too, and has no weights at all."""
    for restore in run.of(CheckpointRestored):
        save = save_of(run, restore)
        weights = of_layers(run, restore.variables) - run.trained - run.written
        read = {each.number for each in run.of(VariableRead, after=restore)}
        if not save or not weights & read or of_layers(run, save.variables):
            continue
        if layers_left_out(run, save):
            message = (
                f"the checkpoint has none of the {len(weights)} weights of the model: {REASON}"
            )
            proof = *first_of(run, weights), " is read after the restore, as it was made"
            yield observed("fm65", run, save.made_at or save.location, message, *proof)
            return


@rule("fm65", explains_divergence=False)
def changed_and_left_out(run: Recording) -> Steps:
    """Checks for weights that have changed and that no file has, though the checkpoint was given their model.

    A layer that is built a second time has weights of the first time, which nothing reads.
    """
    saves = run.of(Saved)
    held = {number for save in saves for number in save.variables}
    for save in saves:
        used = {each.number for each in save.omitted if each.trained or each.changed and each.read}
        if weights := layers_left_out(run, save) & used - held:
            kind = "trained weight" if weights <= run.trained else "weight"
            message = f"the checkpoint lacks {counted(len(weights), kind)} of the model: {REASON}"
            holder = save.made_at or save.location
            yield observed("fm65", run, holder, message, *first_of(run, weights), " is one")
            return


def first_of(run: Recording, weights: Collection[int]) -> list[str | Location]:
    """Returns the name of the first of these weights, and the line that makes it."""
    first = min(weights)
    made = run.location_of(first)
    return [run.name_of(first), *((" of ", Location(made)) if made else ())]
