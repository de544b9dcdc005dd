"""Checks fm29: loaded weights are trained on by a new optimizer that is otherwise the one before."""

from collections import Counter
from collections.abc import Iterator

from ...examiner.blame import called_at, from_caller, from_contents, from_decision
from ...examiner.findings import Finding, Location, Text
from ...examiner.printed import program_files
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import (
    CheckpointRestored,
    Ended,
    Frame,
    GradientsApplied,
    LearningRateWritten,
    Loaded,
    OptimizerReplaced,
    OptimizerState,
    Owner,
    Saved,
    Stack,
    StepEnded,
    VariablesKept,
    VariableWritten,
    WeightsCopied,
)

FROM_CONFIGURATION = {"from_config", "deserialize"}
COUNT_AND_RATE = 2  # variables of an optimizer that remembers no gradients


@rule("fm29", explains_divergence=False, after_end=True)
def optimizer_lost(recording: Recording) -> Iterator[Finding]:
    reported: set[Frame] = set()
    for update in recording.of(GradientsApplied):
        new = update.optimizer
        before = recording.of(Loaded, until=update)
        loads = before if is_new(recording, update) else []
        sources = {*new.trains, *copied_to(recording, update)}
        loads = [load for load in loads if sources & set(load.variables)]
        for load in loads[-1:]:
            saves = recording.saves(load.path, until=update)
            old = [
                each
                for save in saves
                for each in save.optimizers
                if each.steps and is_like(recording, each, update)
            ]
            is_meant = is_transfer(recording, load) or begins_anew(recording, load, update)
            if is_meant or is_replaced(recording, load, update):
                continue
            made_at = recording.location_of(min(new.variables, default=0)) or update.location
            blamed = saved_at(recording, load, made_at) or from_decision(
                load.location, (load.function,)
            )
            made = recording.variable(min(new.variables, default=0))
            if made and made.location and has_taken_place(recording, load, new):
                is_earlier = recording.is_before(made, load)
                beside = kept_instead(recording, load, made.location) if is_earlier else ()
                blamed = beside or made.location
            if old and load.location and blamed[0] not in reported:
                reported.add(blamed[0])
                message = Text(
                    "the weights were loaded without their optimizer",
                    *((" of ", Location(made_at)) if made_at else ()),
                    f", which was at step {old[-1].steps}",
                )
                begun = f"step {new.steps}, by the program's own count," if new.steps else "step 0"
                proof = f"the next update is {begun} of a new {old[-1].kind}"
                yield observed("fm29", recording, blamed, message, proof)


@rule("fm29", after_end=True)
def optimizer_replaced(recording: Recording) -> Iterator[Finding]:
    for replaced in recording.of(OptimizerReplaced):
        old = replaced.before
        remembers = len(old.variables) > COUNT_AND_RATE
        same = old.kind == replaced.kind and replaced.learning_rate in rates_of(recording, replaced)
        if same and remembers and replaced.continues and replaced.location:
            updates = [
                update
                for update in recording.of(GradientsApplied, after=replaced)
                if not update.optimizer.steps
                and set(update.optimizer.trains) & set(replaced.variables)
            ]
            if updates:
                message = f"compiled again: the optimizer, which was at step {old.steps}, is replaced by a new one"
                proof = f"the next update is step 0 of a new {old.kind}, with the same loss and variables"
                yield observed("fm29", recording, replaced.location, message, proof)


@rule("fm29", explains_divergence=False, after_end=True)
def made_from_configuration(recording: Recording) -> Iterator[Finding]:
    """Checks for a copy of a trained model that a new optimizer trains, made from the configuration of the one before."""
    ended = recording.last(Ended)
    for copy in recording.of(WeightsCopied):
        later = recording.of(GradientsApplied, after=copy)
        updates = [each for each in later if {*copy.target} & {*each.optimizer.trains}]
        trained = (
            [each for each in ended.optimizers if {*copy.source} & {*each.trains}] if ended else []
        )
        for old, update in [(old, update) for old in trained[-1:] for update in updates[:1]]:
            new, made_at = (
                update.optimizer,
                recording.location_of(min(update.optimizer.variables, default=0)),
            )
            is_alike = is_same_kind(old, new) and old.learning_rate == new.learning_rate
            if not (
                copy.equal and is_alike and old.steps and not new.steps and remembers(old, new)
            ):
                continue
            if (
                made_at
                and FROM_CONFIGURATION & {*called_at(made_at[0])}
                and is_left(recording, copy)
            ):
                message = f"a configuration has no moments: a new optimizer replaces the one that was at step {old.steps}"
                proof = f"the next update is step 0 of a new {old.kind}, for a copy of what the one before has trained"
                yield observed("fm29", recording, made_at, message, proof)
                return


def is_left(recording: Recording, copy: WeightsCopied) -> bool:
    """Tells whether no step is seen that trains the source of a copy any more; steps of a loop without a strategy are not."""
    ended, after = recording.last(Ended), recording.of(StepEnded, after=copy)
    looks = [each.values for each in (*after[:1], ended) if each]
    found = [{v.number: v.sample for v in values if v.number in copy.source} for values in looks]
    return all(each == found[0] for each in found)


def has_taken_place(recording: Recording, load: Loaded, new: OptimizerState) -> bool:
    """Tells whether a file filled an optimizer for the weights that the new one trains."""
    filled = [each for each in load.variables if recording.maker_of(each) is Owner.OPTIMIZER]
    trained, of_file = (Counter(recording.shapes_of(each)) for each in (new.trains, filled))
    return bool(trained) and trained <= of_file


def kept_instead(recording: Recording, load: Loaded, used_at: Stack) -> Stack:
    """Returns where the optimizer was made that the file filled, if the program made it beside the one that it uses."""
    filled = [each for each in load.variables if recording.maker_of(each) is Owner.OPTIMIZER]
    made_at = recording.location_of(min(filled, default=0))
    if made_at[:1] == load.location[:1]:
        return ()
    while made_at and used_at and made_at[0] == used_at[0]:
        made_at, used_at = made_at[1:], used_at[1:]
    return made_at


def copied_to(recording: Recording, update: GradientsApplied) -> set[int]:
    """Returns the variables whose values all that is trained here has been given, such as those of a model that was only loaded.

    If only a part of it has been given values, this is another training: that of a new last layer, for example.
    """
    trains = set(update.optimizer.trains)
    copies = recording.of(WeightsCopied, until=update)
    return {number for copy in copies if trains <= {*copy.target} for number in copy.source}


def is_new(recording: Recording, update: GradientsApplied) -> bool:
    """Tells whether this is an optimizer's first update, and it has nothing from a file.

    The program may set the number of its steps itself, or all of its variables from a file of its own kind.
    """
    if not update.optimizer.steps:
        return True
    own = set(update.optimizer.variables)
    used = [each.optimizer.variables for each in recording.of(GradientsApplied, until=update)]
    filled = [load.variables for load in recording.of(Loaded)]
    set_by_hand = own & {each.number for each in recording.of(VariableWritten, until=update)}
    is_counted = 0 < len(set_by_hand) <= COUNT_AND_RATE
    return is_counted and not any(own & {*each} for each in used + filled)


def rates_of(recording: Recording, replaced: OptimizerReplaced) -> set[str]:
    """Returns the learning rate that the optimizer has, and those with which optimizers of its class have begun before.

    A callback may have lowered the rate since.
    """
    old = replaced.before
    begun = [
        update.optimizer
        for update in recording.of(GradientsApplied, until=replaced)
        if update.optimizer.kind == old.kind and not update.optimizer.steps
    ]
    return {old.learning_rate, *(each.learning_rate for each in begun)}


def is_replaced(recording: Recording, load: Loaded, update: GradientsApplied) -> bool:
    """Tells whether the load did bring an optimizer, and a later line replaced it."""
    replaced = recording.of(OptimizerReplaced, after=load, until=update)
    return any(each.before.steps and set(each.variables) & set(load.variables) for each in replaced)


def is_transfer(recording: Recording, load: Loaded) -> bool:
    """Tells whether the weights went into a model with another output, which needs an optimizer of its own."""
    partly = recording.of(VariablesKept, after=load)
    return any(each.skipped and each.other_output and each.path == load.path for each in partly)


def begins_anew(recording: Recording, load: Loaded, update: GradientsApplied) -> bool:
    """Tells whether the run that is never stopped takes a new optimizer on this line after the save, too: for a later phase."""
    whole = recording.whole
    if whole is None:
        return False
    path, new = recording.absolute(load.path), update.optimizer
    saves = [each for each in whole.of(Saved) if whole.absolute(each.path) == path]
    trained = [save for save in saves if any(state.steps for state in save.optimizers)]
    later = [each for save in trained[:1] for each in whole.of(GradientsApplied, after=save)]
    begun = [each for each in later if not each.optimizer.steps]
    return any(
        (each.location, each.optimizer.kind) == (update.location, new.kind) for each in begun
    )


def is_like(recording: Recording, old: OptimizerState, update: GradientsApplied) -> bool:
    """Tells whether an optimizer goes on with the same training; with another number of variables, it is another one.

    After a restart it may begin at the rate at which the whole run began, and which the program has lowered since; or at
    one that the program sets before each step.
    """
    new = update.optimizer
    updates = recording.whole.of(GradientsApplied) if recording.whole else []
    begun = [each.optimizer for each in updates if not each.optimizer.steps]
    rates = {each.learning_rate for each in (old, *begun) if is_same_kind(each, new)}
    is_expected = new.learning_rate in rates or is_rate_set(recording, update)
    return remembers(old, new) and is_same_kind(old, new) and is_expected


def is_rate_set(recording: Recording, update: GradientsApplied) -> bool:
    """Tells whether a line has set the rate of a restarted program before this update that sets it in the whole run, too."""
    own = recording.of(LearningRateWritten, until=update)
    lines = {each.location[:1] for each in own if each.number in update.optimizer.variables}
    whole = recording.whole.of(LearningRateWritten) if recording.whole else []
    return bool(lines & {each.location[:1] for each in whole})


def remembers(old: OptimizerState, new: OptimizerState) -> bool:
    """Tells whether an optimizer has more than its count and its rate, which one of Keras 2 does not list."""
    return len(old.variables) > min(COUNT_AND_RATE, len(new.variables))


def is_same_kind(one: OptimizerState, other: OptimizerState) -> bool:
    return (one.kind, len(one.trains)) == (other.kind, len(other.trains))


def saved_at(recording: Recording, load: Loaded, optimizer_at: Stack) -> Stack:
    """Returns where it was said what a checkpoint holds, if it was saved before a restart, which has loaded all there was.

    A function that also makes the optimizer decides about that; one that only gets its arguments does not.
    """
    makers = {frame.scope for frame in optimizer_at}
    if any(save.path == load.path for save in recording.saves_before_start):
        for restored in reversed(recording.of(CheckpointRestored)):
            if restored.path == load.path or is_beside(restored, load):
                contents = from_contents(restored.made_at, program_files(recording))
                if contents != restored.made_at:
                    return contents
                holders = {frame.scope for frame in restored.made_at[:1]}
                return restored.made_at if holders & makers else from_caller(restored.made_at)
    return ()


def is_beside(restored: CheckpointRestored, load: Loaded) -> bool:
    """Tells whether one function restores a checkpoint and loads the weights, which are in a file of their own."""
    if restored.path is None or not (restored.location and load.location):
        return False
    return restored.location[0].scope == load.location[0].scope
