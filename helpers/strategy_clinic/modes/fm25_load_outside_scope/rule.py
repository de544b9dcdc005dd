"""Checks fm25: what was saved from several devices is loaded onto one and trained there, or replicas call a model on one."""

from ...examiner.blame import from_factory, from_parting
from ...examiner.history import saves_of_file, updates_of
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, line_of, observed, reclassify, rule
from ...observer.events import (
    ExceptionRaised,
    Loaded,
    ModelCalled,
    Owner,
    Stack,
    StrategyMade,
    VariableMade,
    VariableWritten,
)


@rule("fm25", explains_divergence=False, after_end=True)
def loaded_outside(recording: Recording) -> Steps:
    for load in recording.of(Loaded):
        if load.in_scope or load.replicas < 2 or not load.location:
            continue
        single = single_in(recording, load)
        is_fault = not is_meant(recording, load) and is_trained(recording, load)
        if is_fault and was_distributed(recording, load):
            message = (
                f"loaded outside the scope: all of its {len(single)} variables are on one device"
            )
            proof = f"it was saved from {load.replicas} devices, and is trained on one"
            yield observed("fm25", recording, load.location, message, proof)


def was_distributed(recording: Recording, load: Loaded) -> bool:
    """Tells whether the file was saved from several devices: before the load, or by the run that was stopped."""
    saves = saves_of_file(recording, load)
    return any(run.is_distributed(number) for run, save in saves for number in save.variables)


def single_in(recording: Recording, load: Loaded) -> set[int]:
    """Returns what was loaded onto one device alone; replicas share a variable in central storage."""
    return {number for number in load.undistributed if not recording.is_distributed(number)}


def is_meant(recording: Recording, load: Loaded) -> bool:
    """Tells whether the program also loads the same file in the scope: then it knows the difference."""
    return any(each.in_scope and each.path == load.path for each in recording.of(Loaded))


def is_trained(recording: Recording, load: Loaded) -> bool:
    """Tells whether what was loaded is trained from then on. A copy that only answers may well be on one device."""
    return bool(updates_of(recording, single_in(recording, load), after=load))


@rule("fm25", explains_divergence=False)
def made_outside(recording: Recording) -> Steps:
    """Checks whether replicas call a model that is on one device, while they train another that each of them has."""
    if not any(map(recording.is_distributed, recording.trained)):
        return
    for call in recording.of(ModelCalled):
        own = [each for each in call.variables if recording.maker_of(each) is Owner.LAYER]
        single = [each for each in own if not recording.is_distributed(each)]
        if call.replicas > 1 and single and single == own and is_only_read(recording, call):
            yield observed(
                "fm25",
                recording,
                from_own_line(recording, recording.location_of(single[0])),
                f"this model was made outside the scope: all of its {len(single)} variables are on one device",
                f"{call.replicas} replicas read them there at ",
                line_of(call.location, "a step"),
            )
            return


def from_own_line(recording: Recording, stack: Stack) -> Stack:
    """Returns the frames from the one on that made no distributed model: functions that make models make them in a scope, too."""
    made = [each for each in recording.of(VariableMade) if recording.is_distributed(each.number)]
    return from_factory(from_parting(stack, [each.location for each in made]))


def is_only_read(recording: Recording, call: ModelCalled) -> bool:
    """Tells whether replicas write nothing to the variables of a model; fm23 is about those that they write to."""
    written = {write.number for write in recording.of(VariableWritten) if write.replicas > 1}
    return not (written & {*call.variables} or updates_of(recording, call.variables, after=call))


@reclassify("fm03", "fm25")
def scope_mismatch(recording: Recording, mode: str, _: ExceptionRaised, __: Stack) -> str:
    """Tells weights that were loaded outside the scope from others that were made there."""
    return "fm25" if load_of_all_outside(recording) else mode


@blames("fm25")
def line_of_load(recording: Recording, stack: Stack) -> Stack:
    load = load_of_all_outside(recording)
    return load.location if load else stack


def load_of_all_outside(recording: Recording) -> Loaded | None:
    """Returns the load outside the scope that made all weights on one device since there is a strategy."""
    outside = {
        each.number
        for each in recording.of(VariableMade, after=recording.last(StrategyMade))
        if each.maker in (Owner.LAYER, Owner.CHECKPOINT)
        if not each.copies and each.number not in recording.copies
    }
    loads = [each for each in recording.of(Loaded) if not each.in_scope and each.location]
    return next((each for each in loads if outside and outside <= {*each.undistributed}), None)
