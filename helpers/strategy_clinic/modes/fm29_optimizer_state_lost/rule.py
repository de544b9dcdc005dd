"""Checks fm29: loaded weights are trained on by a new optimizer that is otherwise the one before."""

from collections import Counter

from ...examiner.blame import (
    calls_at,
    from_caller,
    from_contents,
    from_decision,
    from_owner,
    from_parting,
    name_of,
    names_given,
    nodes_under,
    statement_at,
)
from ...examiner.findings import Location, Note, Text
from ...examiner.history import (
    COUNT_AND_RATE,
    first_updates,
    loads_of,
    saves_to,
    updates_by,
    updates_of,
)
from ...examiner.printed import program_files
from ...examiner.recording import Recording
from ...examiner.restarts import ends_as_whole, rate_of
from ...examiner.rule import Steps, observed, rule
from ...observer.events import (
    CheckpointRestored,
    Ended,
    GradientsApplied,
    LearningRateWritten,
    Loaded,
    OptimizerReplaced,
    OptimizerState,
    Owner,
    Stack,
    StepEnded,
    VariablesKept,
    WeightsCopied,
)

FROM_CONFIGURATION = "from_config", "deserialize"
IN_CHECKPOINT = "give the checkpoint the optimizer, too: `tf.train.Checkpoint(model=model, optimizer=optimizer)`"
IN_FILE = (
    "save and load both: the whole model, compiled with this optimizer, as a `.keras` file; or a `tf.train.Checkpoint` of the "
    "model and the optimizer"
)
NOT_AGAIN = (
    "do not compile again: set another rate with `model.optimizer.learning_rate.assign(rate)`"
)


@rule("fm29", explains_divergence=False, after_end=True)
def optimizer_lost(recording: Recording) -> Steps:
    """Checks for the first update of what was loaded. With another rate it may be a training of its own: that is a note.

    An optimizer without momentum has variables for it in Keras 2, too: nothing is lost if a restart comes to the same weights.
    """
    if ends_as_whole(recording):
        return
    for update in recording.of(GradientsApplied):
        new = update.optimizer
        if not is_new(recording, update):
            continue
        sources = {*new.trains, *copied_to(recording, update)}
        for load in loads_of(recording, sources, until=update)[-1:]:
            old = [
                each
                for save in recording.saves(load.path, until=update)
                for each in save.optimizers
                if each.steps and is_same_kind(each, update.optimizer)
            ]
            if not old or not load.location or is_meant(recording, load, update):
                continue
            made_at = recording.location_of(min(new.variables, default=0)) or update.location
            alike = [each for each in old if has_expected_rate(recording, each, update)]
            if not alike:
                yield note_of(old[-1], made_at)
                continue
            blamed = line_to_blame(recording, load, new, made_at)
            is_told = bool(made_at) and made_at[:1] != blamed[:1]
            message = Text(
                "the weights were loaded without their optimizer",
                *((" of ", Location(made_at)) if is_told else ()),
                f", which was at step {alike[-1].steps}",
            )
            proof = first_update(alike[-1].kind, new.steps)
            is_checkpoint = load.function in ("restore", "read")
            fix = IN_CHECKPOINT if is_checkpoint else IN_FILE
            yield observed("fm29", recording, blamed, message, proof, fix=fix)


@rule("fm29", after_end=True)
def optimizer_replaced(recording: Recording) -> Steps:
    noted = set[Stack]()
    for replaced in recording.of(OptimizerReplaced):
        old = replaced.before
        rates = {old.learning_rate, *rates_begun(recording, old.kind, replaced)}
        if not replaced_there(recording.whole, replaced):
            rates |= rates_begun(recording.whole, old.kind)  # which the program has lowered since
        remembers = old.kind == replaced.kind and len(old.variables) > COUNT_AND_RATE
        updates = updates_of(recording, replaced.variables, after=replaced)
        begins = any(not update.optimizer.steps for update in updates)
        if not (remembers and replaced.continues and replaced.location and begins):
            continue
        if replaced.learning_rate not in rates:
            if replaced.location not in noted:
                yield note_of(old, replaced.location)
            noted.add(replaced.location)
            continue
        made = updates_by(recording, old.variables)
        is_loaded = not any(recording.is_before(update, replaced) for update in made)
        reached = "which a load has set to" if is_loaded else "which was at"
        message = (
            f"compiled again: the optimizer, {reached} step {old.steps}, is replaced by a new one"
        )
        proof = f"{first_update(old.kind)}, with the same loss and variables"
        location = from_owner(replaced.location, "compile")
        yield observed("fm29", recording, location, message, proof, fix=NOT_AGAIN)


@rule("fm29", explains_divergence=False, after_end=True)
def made_from_configuration(recording: Recording) -> Steps:
    """Checks for a copy of a trained model that a new optimizer trains, made from the configuration of the one before."""
    for copy in recording.of(WeightsCopied):
        updates = updates_of(recording, copy.target, after=copy)
        trained = [e for e in recording.ended.optimizers if {*copy.source} & {*e.trains}]
        if not (updates and trained and copy.equal and is_left(recording, copy)):
            continue
        old, new = trained[-1], updates[0].optimizer
        made_at = recording.location_of(min(new.variables, default=0))
        is_made = calls_at(made_at, *FROM_CONFIGURATION)
        is_alike = is_same_kind(old, new) and old.learning_rate == new.learning_rate
        if is_made and old.steps and not new.steps and is_alike:
            message = f"a configuration has no moments: a new optimizer replaces the one that was at step {old.steps}"
            proof = f"{first_update(old.kind)}, for a copy of what the one before has trained"
            yield observed("fm29", recording, made_at, message, proof)
            return


def first_update(kind: str, counted: int = 0) -> str:
    """Returns words for the update that comes next; some files have the number of the steps, and no more of the optimizer."""
    number = f", whose number of steps is {counted} already" if counted else ""
    return f"the next update is the first one of a new {kind}{number}"


def is_left(recording: Recording, copy: WeightsCopied) -> bool:
    """Tells whether no step is seen that trains the source of a copy any more; steps of a loop without a strategy are not."""
    ended, after = recording.last(Ended), recording.of(StepEnded, after=copy)
    looks = [each.values for each in (*after[:1], ended) if each]
    found = [{v.number: v.sample for v in values if v.number in copy.source} for values in looks]
    return all(each == found[0] for each in found)


def is_new(recording: Recording, update: GradientsApplied) -> bool:
    """Tells whether this is an optimizer's first update, and it has nothing from a file.

    The program may set the number of its steps itself, or all of its variables from a file of its own kind. What the optimizer
    itself writes is from a file: `load_weights` of Keras 3 lets it fill its variables.
    """
    if not update.optimizer.steps:
        return True
    own = set(update.optimizer.variables)
    used = [each.optimizer.variables for each in recording.of(GradientsApplied, until=update)]
    set_by_hand = own & recording.written_by(Owner.USER, until=update)
    is_counted = 0 < len(set_by_hand) <= COUNT_AND_RATE
    return is_counted and not loads_of(recording, own) and not any(own & {*each} for each in used)


def copied_to(recording: Recording, update: GradientsApplied) -> set[int]:
    """Returns the variables from which all trained variables were copied, such as those of a model that was only loaded.

    If only a part of it has been given values, this is another training: that of a new last layer, for example.
    """
    trains = set(update.optimizer.trains)
    copies = recording.of(WeightsCopied, until=update)
    return {number for copy in copies if trains <= {*copy.target} for number in copy.source}


# Whether it is the same training


def note_of(old: OptimizerState, made_at: Stack) -> Note:
    return Note(
        Text(
            "a new optimizer with another learning rate (",
            Location(made_at),
            f") trains on what {old.kind} has trained to step {old.steps}, without its moments, as for fine-tuning; to go on "
            "with that training, set the rate of the optimizer that there is (fm29)",
        )
    )


def has_expected_rate(recording: Recording, old: OptimizerState, update: GradientsApplied) -> bool:
    """Tells whether an optimizer begins at the rate of the one before.

    After a restart it may begin at the rate at which the whole run began, and which the program has lowered since; or at
    one that the program sets before each step.
    """
    new = update.optimizer
    rates = {old.learning_rate, *rates_begun(recording.whole, old.kind)}
    return new.learning_rate in rates or is_rate_set(recording, update)


def is_same_kind(old: OptimizerState, new: OptimizerState) -> bool:
    """Tells whether an optimizer is followed by one of its class that trains as many variables.

    What has no more than its count and its rate, which an optimizer of Keras 2 does not list, remembers nothing; but a schedule
    goes by the count, which the new one may have.
    """
    has_slots = len(old.variables) > min(COUNT_AND_RATE, len(new.variables))
    remembers = has_slots or (rate_of(old) is None and not new.steps)
    return remembers and (old.kind, len(old.trains)) == (new.kind, len(new.trains))


def rates_begun(
    recording: Recording | None, kind: str, until: OptimizerReplaced | None = None
) -> set[str]:
    """Returns the rates with which optimizers of a class begin: a callback may have lowered the rate since."""
    begun = [each.optimizer for each in first_updates(recording, until=until)]
    return {each.learning_rate for each in begun if each.kind == kind}


def replaced_there(recording: Recording | None, replaced: OptimizerReplaced) -> bool:
    """Tells whether a run takes a new optimizer on this line, too: for a later phase."""
    lines = [each.location[:1] for each in recording.of(OptimizerReplaced)] if recording else []
    return replaced.location[:1] in lines


def is_rate_set(recording: Recording, update: GradientsApplied) -> bool:
    """Tells whether a line has set the rate of a restarted program before this update that sets it in the whole run, too."""
    own = recording.of(LearningRateWritten, until=update)
    lines = {each.location[:1] for each in own if each.number in update.optimizer.variables}
    whole = recording.whole.of(LearningRateWritten) if recording.whole else []
    return bool(lines & {each.location[:1] for each in whole})


def is_meant(recording: Recording, load: Loaded, update: GradientsApplied) -> bool:
    """Tells whether a new optimizer is right, or its lost state was not the load's: a later line replaced what that brought.

    It is right for weights in a model with another output, and where the run that is never stopped takes a new one on
    this line after the save, too: for a later phase.
    """
    partly = recording.of(VariablesKept, after=load)
    is_transfer = any(e.skipped and e.other_output and e.path == load.path for e in partly)
    replaced = recording.of(OptimizerReplaced, after=load, until=update)
    is_replaced = any(e.before.steps and {*e.variables} & {*load.variables} for e in replaced)
    return is_transfer or is_replaced or begins_anew(recording, load, update)


def begins_anew(recording: Recording, load: Loaded, update: GradientsApplied) -> bool:
    whole = recording.whole
    saves = saves_to(whole, recording.absolute(load.path)) if whole else []
    trained = [save for save in saves if any(state.steps for state in save.optimizers)]
    return any(
        (each.location, each.optimizer.kind) == (update.location, update.optimizer.kind)
        for save in trained[:1]
        for each in first_updates(whole, after=save)
    )


# The line


def line_to_blame(recording: Recording, load: Loaded, new: OptimizerState, made_at: Stack) -> Stack:
    """Returns where an optimizer was made in place of one that the file fills, or who decides what is saved or loaded."""
    filled = [each for each in load.variables if recording.maker_of(each) is Owner.OPTIMIZER]
    trained, of_file = (Counter(recording.shapes_of(each)) for each in (new.trains, filled))
    made = recording.variable(min(new.variables, default=0))
    if made and made.location and trained and trained <= of_file:
        filled_at = recording.location_of(min(filled, default=0))
        # The program has made the optimizer that the file filled beside the one that it uses.
        is_beside = recording.is_before(made, load) and filled_at[:1] != load.location[:1]
        return (from_parting(filled_at, [made.location]) if is_beside else ()) or made.location
    return saved_at(recording, load, made_at) or from_decision(load.location, (load.function,))


def is_given(made_at: Stack, callers: Stack) -> bool:
    """Tells whether a caller gives the name of what is made on a line: whom it calls decides what becomes of it."""
    made = {name for frame in made_at[:1] for name in names_given(statement_at(frame))}
    given = [node for frame in callers[:1] for node in nodes_under(statement_at(frame))]
    return not made.isdisjoint(map(name_of, given))


def saved_at(recording: Recording, load: Loaded, optimizer_at: Stack) -> Stack:
    """Returns the line that decides what a checkpoint holds, if one function restores it and loads the weights.

    A function that also makes the optimizer decides about that; one that only gets its arguments does not.
    """
    makers = {frame.scope for frame in optimizer_at}
    for restored in reversed(recording.of(CheckpointRestored)):
        scopes = [frame.scope for stack in (restored, load) for frame in stack.location[:1]]
        if restored.path is None or len({*scopes}) != 1:
            continue
        contents = from_contents(restored.made_at, program_files(recording))
        holders = {frame.scope for frame in restored.made_at[:1]}
        if contents != restored.made_at or holders & makers or is_given(optimizer_at, contents[1:]):
            return contents
        return from_caller(restored.made_at)
    return ()
