"""Checks fm46: a restore replaces a learning rate that was chosen, or the program writes back one that it read before."""

import ast
import itertools
import re

from ...examiner.blame import called_name, calls_in, from_maker, statement_at
from ...examiner.history import first_updates, optimizers_of, saves_to, updates_by
from ...examiner.recording import Recording
from ...examiner.restarts import Holder, lost, same_rate
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import (
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

RATE_WORDS = {"learning_rate", "lr"}
INITIAL = re.compile(r"'initial_learning_rate': ([-+.\de]+)")  # in the configuration of a schedule


@rule("fm46", explains_divergence=False)
def rate_replaced(recording: Recording) -> Steps:
    for restored in recording.of(LearningRateRestored):
        updates = updates_by(recording, restored.variables, after=restored)
        is_used = bool(updates) and has_rate(updates[0].optimizer, restored.after)
        was_chosen = was_constant(recording, restored) or is_chosen_anew(recording, restored)
        if was_chosen and restored.location and is_used:
            rate = f"{restored.after:.4g}"
            message = f"the optimizer was made with the learning rate {restored.before:.4g}, and the file has set it to {rate}"
            location = from_maker(restored.location, updates[0].location)
            yield observed("fm46", recording, location, message, f"the next step used {rate}")


@rule("fm46", explains_divergence=False)
def rate_before_restore(recording: Recording) -> Steps:
    """Checks whether a rate that was read is written back, or one that a function sets is replaced by what it restores then."""
    for restored in recording.of(LearningRateRestored):
        words = f"before the restore, which replaces {restored.before:.4g} by {restored.after:.4g}"
        written = [
            write
            for write in recording.of(LearningRateWritten)
            if write.number in restored.variables
        ]
        later = [write for write in written if recording.is_before(restored, write)]
        reads = [
            read
            for read in recording.of(LearningRateRead, until=restored)
            if read.number in restored.variables and is_assigned(read)
        ]
        # A later write may be part of a schedule; the first one takes the place of what was restored.
        is_written_back = reads and later and same_rate(reads[-1].value, later[0].value)
        if is_written_back and same_rate(reads[-1].value, restored.before):
            message = f"the learning rate is read {words}"
            proof = f"{later[0].value:.4g} was written back at "
            place = line_of(later[0].location, "a callback")
            yield observed("fm46", recording, reads[-1].location, message, proof, place)
        beside = [write for write in written if is_beside(write, restored)]
        early = [write for write in beside if recording.is_before(write, restored)]
        is_set_again = any(w.location[0].line > restored.location[0].line for w in beside)
        saves = saves_restored(recording, recording, restored)
        if saves and ends_as_saved(recording, restored, saves[-1]):
            continue
        if early and saves and not is_set_again and same_rate(early[-1].value, restored.before):
            message = f"the learning rate is set {words}"
            proof = f"{saves[-1].path} was saved with {restored.after:.4g}, and is restored at "
            place = line_of(restored.location, "a callback")
            yield observed("fm46", recording, early[-1].location, message, proof, place)


@rule("fm46", explains_divergence=False)
def rate_before_copy(recording: Recording) -> Steps:
    """Checks whether a line gives an optimizer all that another one has, and so replaces a rate that no update has used."""
    for update in recording.of(GradientsApplied):
        variables = update.optimizer.variables
        if updates_by(recording, variables)[:1] != [update]:
            continue
        writes = recording.of(LearningRateWritten, until=update)
        unused = [each for each in writes if each.number in variables and each.location]
        for early, late in itertools.combinations(unused, 2):
            is_replaced = early.number == late.number and not same_rate(early.value, late.value)
            is_one_line = (
                early.location == late.location
            )  # such as a `fit`, in which callbacks set it
            if not is_replaced or is_one_line or not is_copied(recording, late, update):
                continue
            message = "the learning rate is set before the optimizer gets all values of another one"
            message += f", which replace {early.value:.4g}"
            place = line_of(late.location, "a callback")
            proof = f"{late.value:.4g} was written with all other values at "
            yield observed("fm46", recording, early.location, message, proof, place)
            return


def is_copied(recording: Recording, write: LearningRateWritten, update: GradientsApplied) -> bool:
    """Tells whether a line writes all variables of an optimizer before its first update, and is no restore."""
    there = [
        each.number
        for each in recording.of(VariableWritten, until=update)
        if each.location == write.location and each.writer is not Owner.CHECKPOINT
    ]
    return len(there) > 1 and {*update.optimizer.variables} <= {*there}


@rule("fm46", explains_divergence=False)
def schedule_begins_late(recording: Recording) -> Steps:
    """Checks whether a new schedule goes on from the count of steps that a file has set, and not from its beginning."""
    for load in recording.of(Loaded):
        saves = recording.saves(load.path, until=load)
        old = [each for save in saves[-1:] for each in save.optimizers if each.steps]
        for new in (
            each.optimizer for each in updates_by(recording, load.variables, after=load)[:1]
        ):
            rates = [*filter(None, (initial_rate(each) for each in old if each.kind == new.kind))]
            begins = initial_rate(new)
            if begins and rates and begins not in rates and new.steps == old[-1].steps:
                message = f"the new schedule, which begins at the rate {begins}, goes on from step {new.steps} of the file"
                proof = f"the optimizer that was saved has a schedule from {' or '.join(rates)}"
                yield observed("fm46", recording, load.location, message, proof)


def initial_rate(state: OptimizerState) -> str:
    """Returns the rate at which a schedule of an optimizer begins; nothing if it has a number, or a schedule without one."""
    found = INITIAL.search(state.learning_rate)
    return found[1] if found else ""


RATE_LOST = lost("fm46", Holder.RATE)


def is_assigned(read: LearningRateRead) -> bool:
    return bool(read.location) and isinstance(
        statement_at(read.location[0]), ast.Assign | ast.AnnAssign
    )


def is_beside(write: LearningRateWritten, restored: LearningRateRestored) -> bool:
    """Tells whether another line of one call of a function sets a rate."""
    one, other = write.location, restored.location
    if not one or not other or one[0] == other[0]:
        return False
    return (one[0].scope, one[1:]) == (other[0].scope, other[1:])


def saves_restored(
    saver: Recording, recording: Recording, restored: LearningRateRestored
) -> list[Saved]:
    """Returns what a run has saved of what this line restores."""
    loads = [each for each in recording.of(Loaded) if each.location == restored.location]
    until = restored if saver is recording else None
    return saves_to(saver, *(recording.absolute(load.path) for load in loads), until=until)


def ends_as_saved(recording: Recording, restored: LearningRateRestored, save: Saved) -> bool:
    """Tells whether an optimizer ends with as many steps as the file has: nothing is trained with the rate of the file."""
    steps = {each.steps for each in save.optimizers}
    ended = [each for each in optimizers_of(recording) if {*each.variables} & {*restored.variables}]
    return bool(ended) and all(each.steps in steps for each in ended)


def was_constant(recording: Recording, restored: LearningRateRestored) -> bool:
    """Tells whether another optimizer began at the rate that was saved: one that was lowered in training is meant to stay."""
    return any(
        has_rate(each.optimizer, restored.after)
        and not {*each.optimizer.variables} & {*restored.variables}
        for each in first_updates(recording, until=restored)
    )


def is_chosen_anew(recording: Recording, restored: LearningRateRestored) -> bool:
    """Tells whether a program that is started again gives its optimizer another rate than the first start did.

    A rate that is set later, as schedules of Keras do, says nothing about the one that an optimizer is made with.
    """
    stopped = recording.before
    if not stopped or is_rate_set(recording) or is_rate_set(stopped):
        return False
    began = any(has_rate(each.optimizer, restored.after) for each in first_updates(stopped))
    is_saved = bool(saves_restored(stopped, recording, restored))
    return began and is_saved and is_given_rate(recording, restored)


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
    updates = updates_by(recording, restored.variables, after=restored)
    kinds = {each.optimizer.kind for each in updates}
    made_at = recording.location_of(min(restored.variables))
    calls = calls_in(statement_at(made_at[0])) if made_at else []
    return any(
        called_name(call) in kinds
        and (call.args or RATE_WORDS & {str(word.arg) for word in call.keywords})
        for call in calls
    )


def has_rate(state: OptimizerState, rate: float) -> bool:
    try:
        return same_rate(rate, float(state.learning_rate))
    except ValueError:  # the name of a schedule
        return False
