"""Checks fm25: what was saved from several devices is loaded outside the scope, onto one of them, and used as before."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import Event, GradientsApplied, Loaded, ModelCalled, Saved


@rule("fm25")
def loaded_outside(recording: Recording) -> Iterator[Finding]:
    for load in recording.of(Loaded):
        if load.in_scope or load.replicas < 2 or not load.location:
            continue
        saves = [
            each
            for each in recording.saves(load.path, until=load)
            if was_distributed(recording, each)
        ]
        single = single_in(recording, load)
        if (
            saves
            and single
            and not is_meant(recording, load)
            and takes_its_place(recording, load, saves[-1])
        ):
            message = (
                f"loaded outside the scope: all of its {len(single)} variables are on one device"
            )
            proof = f"it was saved from {load.replicas} devices, and is used as before"
            yield observed("fm25", recording, load.location, message, proof)


def was_distributed(recording: Recording, save: Saved) -> bool:
    return any(map(recording.is_distributed, save.variables))


def single_in(recording: Recording, load: Loaded) -> set[int]:
    """Returns what was loaded onto one device alone; replicas share a variable in central storage."""
    return {number for number in load.undistributed if not recording.is_distributed(number)}


def is_meant(recording: Recording, load: Loaded) -> bool:
    """Tells whether the program also loads the same file in the scope: then it knows the difference."""
    return any(each.in_scope and each.path == load.path for each in recording.of(Loaded))


def takes_its_place(recording: Recording, load: Loaded, save: Saved) -> bool:
    """Tells whether what was loaded is trained, or is called on a line that has called what was saved."""
    single = single_in(recording, load)
    trained = any(single & set(each.optimizer.trains) for each in recording.of(GradientsApplied))
    before = calling_lines(recording, set(save.variables))
    return trained or bool(before & calling_lines(recording, single, after=load))


def calling_lines(
    recording: Recording, numbers: set[int], after: Event | None = None
) -> set[object]:
    calls = recording.of(ModelCalled, after=after)
    return {call.location[0] for call in calls if call.location and numbers & set(call.variables)}
