"""Checks fm35: what was made after a restore did not get the values that the file has for it."""

from ...examiner.blame import from_maker
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, line_of, observed, reclassify, rule
from ...examiner.unfilled import of_layers, save_of
from ...observer.events import (
    CheckpointRestored,
    ExceptionRaised,
    GradientsApplied,
    Loaded,
    ModelCalled,
    ModelCompiled,
    ModelUsed,
    Owner,
    RestoredBeforeBuild,
    Stack,
    UnbuiltModelRead,
    VariableMade,
    WeightsCopied,
)

SAME_MODEL = (
    "make the model with the layers of the one that was saved, and call it on a batch before `restore`; "
    "`restore(...).assert_consumed()` raises if a value of the file goes nowhere"
)
BUILD_LAYERS = (
    "make the layers in `__init__`, and leave out the `build` of the model or let it build each of them: `load_model` calls "
    "`build` and not `call`"
)


@rule("fm35", explains_divergence=False)
def restored_too_early(recording: Recording) -> Steps:
    for early in restored_early(recording):
        message = f"restored before it was built: {len(early.numbers)} variables were made later and kept their first values"
        proof = f"{recording.name_of(early.numbers[0])} is in {early.path}"
        yield observed("fm35", recording, line_of_order(recording, early), message, proof)


@rule("fm35", explains_divergence=False)
def restored_into_nothing(recording: Recording) -> Steps:
    """Checks for a restore that fills nothing, while a model that is asked for its variables later has none."""
    for restored in restored_empty(recording):
        empty = [e for e in recording.of(UnbuiltModelRead, after=restored) if not e.variables]
        made = {each.maker for each in recording.of(VariableMade, after=restored)}
        if empty and not {Owner.LAYER, Owner.USER} & made:
            message = f"{empty[0].name} has no variables: nothing is restored, and nothing is said"
            proof = "it has none at ", line_of(empty[0].location, "the end")
            yield observed("fm35", recording, restored.location, message, *proof, fix=SAME_MODEL)
            return


@rule("fm35", explains_divergence=False)
def loaded_unbuilt(recording: Recording) -> Steps:
    """Checks for a model that a load makes, and that gets all of its weights only when it is called, from nowhere."""
    for load in recording.of(Loaded):
        save = save_of(recording, load)
        if save and not save.variables:
            continue  # the file has none, either
        weights = of_layers(recording, variables_of_made(recording, load))
        made_later = {each.number for each in recording.of(VariableMade, after=load)}
        if weights and weights <= made_later - given_after(recording, load):
            made_at = recording.location_of(min(weights))
            message = "the file gives this model no weights: they are made when it is first called"
            proof = (
                f"{recording.name_of(min(weights))}, one of {len(weights)}, is made at ",
                line_of(made_at, "a later line"),
            )
            yield observed("fm35", recording, load.location, message, *proof, fix=BUILD_LAYERS)
            return


def restored_empty(recording: Recording) -> list[CheckpointRestored]:
    """Returns the restores of objects that have no variables then, but for the counter of a checkpoint."""
    return [
        each
        for each in recording.of(CheckpointRestored)
        if each.path and each.location
        if {*map(recording.maker_of, each.variables)} <= {Owner.CHECKPOINT}
    ]


def variables_of_made(recording: Recording, load: Loaded) -> set[int]:
    """Returns the variables of the models that a load makes, as far as they are used or trained."""
    used: list[ModelUsed | ModelCalled] = [
        *recording.of(ModelUsed, after=load),
        *recording.of(ModelCalled, after=load),
    ]
    found = [each.variables for each in used if {*load.location[:1]} & {*each.made_at}]
    for compiled in recording.of(ModelCompiled, after=load):
        if {*load.location[:1]} & {*compiled.made_outside}:
            updates = recording.of(GradientsApplied, after=compiled)
            found += [each.optimizer.trains for each in updates[:1]]
    return {number for numbers in found for number in numbers}


def given_after(recording: Recording, load: Loaded) -> set[int]:
    """Returns the variables that get values from a file, from another model or by the program after a load."""
    loads, copies = recording.of(Loaded, after=load), recording.of(WeightsCopied, after=load)
    numbers = {number for each in loads for number in each.variables}
    numbers |= {number for each in copies for number in each.target}
    return numbers | recording.written_by(Owner.USER, after=load)


def restored_early(recording: Recording) -> list[RestoredBeforeBuild]:
    found = recording.ended.restored_before_build
    return [early for early in found if early.numbers and early.location]


@reclassify("fm06", "fm35")
def where_variables_are_made(
    recording: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str:
    """Tells a value that goes to a variable of another shape long after its restore from a model of another shape."""
    early = restored_early(recording)
    return "fm35" if early and early[0].location[0] not in stack else mode


@blames("fm35")
def restore_of_it(recording: Recording, stack: Stack) -> Stack:
    lines = [line_of_order(recording, early) for early in restored_early(recording)]
    lines = lines or [each.location for each in restored_empty(recording)[-1:]]
    return (*lines[0][:1], *stack) if lines else stack


def line_of_order(recording: Recording, early: RestoredBeforeBuild) -> Stack:
    return order_of(early.location, recording.location_of(early.numbers[0]))


def order_of(restored_at: Stack, made_at: Stack) -> Stack:
    """Returns the line of a function that first restores and then makes the variables; a constructor cannot come later."""
    decided = from_maker(restored_at, made_at)
    passed = restored_at[: len(restored_at) - len(decided)]
    return restored_at if any(frame.function == "__init__" for frame in passed) else decided
