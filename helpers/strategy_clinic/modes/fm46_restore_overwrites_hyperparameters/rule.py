"""Checks fm46: an optimizer trains on at the learning rate of a file, and not at the one that it was made with."""

from collections.abc import Collection, Iterator

from ...examiner.blame import from_maker
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import GradientsApplied, LearningRateRestored, OptimizerState, Saved

SAME = 1e-6  # relative


@rule("fm46", explains_divergence=False)
def rate_replaced(recording: Recording) -> Iterator[Finding]:
    for restored in recording.of(LearningRateRestored):
        updates = [
            update
            for update in recording.of(GradientsApplied, after=restored)
            if is_same(update.optimizer, restored.variables)
        ]
        was_chosen = restored.location and was_constant(recording, restored)
        if was_chosen and updates and has_rate(updates[0].optimizer, restored.after):
            rate = f"{restored.after:.4g}"
            message = f"the optimizer was made with the learning rate {restored.before:.4g}, and the file has brought {rate}"
            location = from_maker(restored.location, updates[0].location)
            yield observed("fm46", recording, location, message, f"the next step used {rate}")


def was_constant(recording: Recording, restored: LearningRateRestored) -> bool:
    """Tells whether another optimizer began at the rate that was saved: one that was lowered in training is meant to stay."""
    saved = [state for save in recording.of(Saved, until=restored) for state in save.optimizers]
    first = [update.optimizer for update in recording.of(GradientsApplied, until=restored)]
    return any(
        has_rate(state, restored.after)
        and any(
            is_same(state, other.variables) and has_rate(other, restored.after) for other in saved
        )
        for state in first
        if not state.steps and not is_same(state, restored.variables)
    )


def is_same(state: OptimizerState, variables: Collection[int]) -> bool:
    """Tells whether an optimizer is the one with these variables; it may have got slots in between."""
    return bool(set(state.variables) & set(variables))


def has_rate(state: OptimizerState, rate: float) -> bool:
    try:
        return abs(float(state.learning_rate) - rate) <= SAME * abs(rate)
    except ValueError:  # the name of a schedule
        return False
