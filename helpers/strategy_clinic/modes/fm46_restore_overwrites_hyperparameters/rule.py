"""Checks fm46: a restore replaces a learning rate that was chosen, or the program writes back one that it read before."""

import ast
from collections.abc import Collection, Iterator

from ...examiner.blame import from_maker, nodes_of_file, statement_at, targets_of
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule
from ...observer.events import (
    Frame,
    GradientsApplied,
    LearningRateRead,
    LearningRateRestored,
    LearningRateWritten,
    OptimizerState,
    Saved,
)

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
            message = f"the optimizer was made with the learning rate {restored.before:.4g}, and the file has set it to {rate}"
            location = from_maker(restored.location, updates[0].location)
            yield observed("fm46", recording, location, message, f"the next step used {rate}")


@rule("fm46", explains_divergence=False)
def rate_read_too_early(recording: Recording) -> Iterator[Finding]:
    for restored in recording.of(LearningRateRestored):
        reads = [
            read
            for read in recording.of(LearningRateRead, until=restored)
            if read.number in restored.variables and read.location and is_kept(read.location[0])
        ]
        written = [
            write
            for write in recording.of(LearningRateWritten, after=restored)
            if write.number in restored.variables
        ]
        # A later write may be part of a schedule; the first one takes the place of what was restored.
        early = [read for read in reads[-1:] for write in written[:1] if same(read, write)]
        if early and same_rate(early[0].value, restored.before):
            yield observed(
                "fm46",
                recording,
                early[0].location,
                f"the learning rate is read before the restore, which replaces {restored.before:.4g} by {restored.after:.4g}",
                f"{written[0].value:.4g} was written back at ",
                line_of(written[0].location, "a callback"),
            )


def same(read: LearningRateRead, write: LearningRateWritten) -> bool:
    return read.number == write.number and same_rate(read.value, write.value)


def same_rate(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * abs(one)


def is_kept(frame: Frame) -> bool:
    """Tells whether a line assigns what it reads to a name, and the program uses this name further below."""
    statement = statement_at(frame)
    if not isinstance(statement, ast.Assign):
        return False
    below = [
        node
        for node in nodes_of_file(frame.path)
        if isinstance(node, ast.Name)
        and node.lineno > frame.line
        and isinstance(node.ctx, ast.Load)
    ]
    return any(node.id in targets_of(statement) for node in below)


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
