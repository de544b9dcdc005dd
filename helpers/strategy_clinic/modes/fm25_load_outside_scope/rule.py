"""Checks fm25: what was saved from several devices is loaded outside the scope, onto one of them, and trained on there."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import GradientsApplied, Loaded, Saved


@rule("fm25", explains_divergence=False)
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
        if saves and single and not is_meant(recording, load) and is_trained(recording, load):
            message = (
                f"loaded outside the scope: all of its {len(single)} variables are on one device"
            )
            proof = f"it was saved from {load.replicas} devices, and is trained on one"
            yield observed("fm25", recording, load.location, message, proof)


def was_distributed(recording: Recording, save: Saved) -> bool:
    return any(map(recording.is_distributed, save.variables))


def single_in(recording: Recording, load: Loaded) -> set[int]:
    """Returns what was loaded onto one device alone; replicas share a variable in central storage."""
    return {number for number in load.undistributed if not recording.is_distributed(number)}


def is_meant(recording: Recording, load: Loaded) -> bool:
    """Tells whether the program also loads the same file in the scope: then it knows the difference."""
    return any(each.in_scope and each.path == load.path for each in recording.of(Loaded))


def is_trained(recording: Recording, load: Loaded) -> bool:
    """Tells whether what was loaded is trained from then on. A copy that only answers may well be on one device."""
    single, updates = single_in(recording, load), recording.of(GradientsApplied, after=load)
    return any(single & set(update.optimizer.trains) for update in updates)
