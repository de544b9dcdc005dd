"""Checks fm46: a restore replaces a learning rate that was chosen, or the program writes back one that it read before."""

import ast
from collections.abc import Collection, Iterator

from ...examiner.blame import (
    called_name,
    calls_in,
    from_maker,
    in_one_loop,
    nodes_of_file,
    statement_at,
    targets_of,
)
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.restarts import finding, other_rates
from ...examiner.rule import Runs, line_of, observed, rule, rule_of_runs
from ...observer.events import (
    CheckpointRestored,
    Frame,
    GradientsApplied,
    LearningRateRead,
    LearningRateRestored,
    LearningRateWritten,
    Loaded,
    OptimizerState,
    Owner,
    Saved,
    VariableMade,
    VariableWritten,
)

SAME = 1e-6  # relative
RATE_WORDS = {"learning_rate", "lr"}


@rule("fm46", explains_divergence=False)
def rate_replaced(recording: Recording) -> Iterator[Finding]:
    for restored in recording.of(LearningRateRestored):
        updates = [
            update
            for update in recording.of(GradientsApplied, after=restored)
            if is_same(update.optimizer, restored.variables)
        ]
        was_chosen = was_constant(recording, restored) or is_chosen_anew(recording, restored)
        if (
            was_chosen
            and restored.location
            and updates
            and has_rate(updates[0].optimizer, restored.after)
        ):
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


@rule("fm46", explains_divergence=False)
def rate_set_too_early(recording: Recording) -> Iterator[Finding]:
    """Checks whether a function sets a rate and then restores what the program has saved, and with it another rate."""
    for restored in recording.of(LearningRateRestored):
        place = restored.location[:1]
        written = [
            write
            for write in recording.of(LearningRateWritten)
            if write.number in restored.variables and write.location[1:] == restored.location[1:]
            if write.location and place and write.location[0] != place[0]
            if write.location[0].scope == place[0].scope
        ]
        early = [write for write in written if recording.is_before(write, restored)]
        is_set_again = any(write.location[0].line > place[0].line for write in written)
        saves = saves_at(recording, restored)
        if early and saves and not is_set_again and same_rate(early[-1].value, restored.before):
            yield observed(
                "fm46",
                recording,
                early[-1].location,
                f"the learning rate is set to {restored.before:.4g} before the restore, which sets it to {restored.after:.4g}",
                f"{saves[-1].path} was saved with {restored.after:.4g}, and is restored at ",
                line_of(restored.location, "a callback"),
            )
            return


@rule_of_runs("fm46", explains_divergence=False, last=True)
def rate_set_after_save(runs: Runs) -> Iterator[Finding]:
    """Checks whether a loop saves and then sets a rate, with which a restart does not go on."""
    for other in other_rates(runs.recordings):
        for save in other.whole.of(Saved):
            for write in other.whole.of(LearningRateWritten, after=save):
                is_set = same_rate(write.value, other.right) and not other.models_agree
                is_below = in_one_loop(write.location, save.location)
                if is_set and is_below and write.location[0].line > save.location[0].line:
                    message = f"the learning rate is set after the checkpoint is saved: {other}"
                    yield finding(other.run, write.location, message, mode="fm46")
                    return


def saves_at(recording: Recording, restored: LearningRateRestored) -> list[Saved]:
    """Returns what this run itself has saved before, of what is restored on this line."""
    paths = {
        recording.absolute(load.path)
        for load in recording.of(Loaded, until=restored)
        if load.location == restored.location
    }
    saves = recording.of(Saved, until=restored)
    return [save for save in saves if recording.absolute(save.path) in paths]


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
        for node in nodes_of_file(frame.path, ast.Name)
        if node.lineno > frame.line and isinstance(node.ctx, ast.Load)
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


def is_chosen_anew(recording: Recording, restored: LearningRateRestored) -> bool:
    """Tells whether a program that is started again gives its optimizer another rate than the first start did.

    A rate that is set later, as schedules of Keras do, says nothing about the one that an optimizer is made with.
    """
    stopped = recording.before
    if not stopped or is_rate_set(recording) or is_rate_set(stopped):
        return False
    before = [
        state
        for save in saves_in(recording, stopped, restored)
        for state in save.optimizers
        if has_rate(state, restored.after)
    ]
    began = any(
        is_same(update.optimizer, state.variables)
        and not update.optimizer.steps
        and has_rate(update.optimizer, restored.after)
        for state in before
        for update in stopped.of(GradientsApplied)
    )
    return began and is_given_rate(recording, restored)


def saves_in(
    recording: Recording, stopped: Recording, restored: LearningRateRestored
) -> list[Saved]:
    """Returns what the stopped run saved to the file that a restore has read."""
    loads = [
        each
        for each in recording.of(CheckpointRestored)
        if each.path is not None
        and each.location == restored.location
        and {*each.variables} & {*restored.variables}
    ]
    paths = {recording.absolute(each.path) for each in loads if each.path is not None}
    return [save for save in stopped.of(Saved) if stopped.absolute(save.path) in paths]


def is_rate_set(recording: Recording) -> bool:
    """Tells whether the program or a callback sets a learning rate; optimizers of Keras 2 do not list theirs."""
    own = Owner.OPTIMIZER, Owner.CHECKPOINT
    written = [each.number for each in recording.of(VariableWritten) if each.writer not in own]
    restores = [each.location for each in recording.of(LearningRateRestored)]  # which write, too
    sets = [each for each in recording.of(LearningRateWritten) if each.location not in restores]
    return bool(sets) or any(is_rate(recording.variable(number)) for number in written)


def is_rate(made: VariableMade | None) -> bool:
    """Tells whether a variable is a number of an optimizer with a fraction; the count of steps has none."""
    if made is None or made.maker is not Owner.OPTIMIZER:
        return False
    return made.shape == () and "float" in made.dtype


def is_given_rate(recording: Recording, restored: LearningRateRestored) -> bool:
    """Tells whether the line that makes an optimizer gives it a rate. Without one, it waits for that in the file."""
    updates = recording.of(GradientsApplied, after=restored)
    kinds = {each.optimizer.kind for each in updates if is_same(each.optimizer, restored.variables)}
    made_at = recording.location_of(min(restored.variables))
    calls = calls_in(statement_at(made_at[0])) if made_at else []
    return any(
        called_name(call) in kinds
        and (call.args or RATE_WORDS & {str(word.arg) for word in call.keywords})
        for call in calls
    )


def is_same(state: OptimizerState, variables: Collection[int]) -> bool:
    """Tells whether an optimizer is the one with these variables; it may have got slots in between."""
    return bool(set(state.variables) & set(variables))


def has_rate(state: OptimizerState, rate: float) -> bool:
    try:
        return abs(float(state.learning_rate) - rate) <= SAME * abs(rate)
    except ValueError:  # the name of a schedule
        return False
