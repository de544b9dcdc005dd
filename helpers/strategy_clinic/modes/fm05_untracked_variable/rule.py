"""Checks fm05: a variable that was changed before a save, that no checkpoint holds, and that a restart misses."""

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath

from ...examiner.after_restart import Key, kept_values
from ...examiner.blame import calls_at, from_contents, names_given, same_statement, statement_at
from ...examiner.divergence import Divergence, distance, effect_of, tolerance
from ...examiner.findings import (
    Answers,
    BeginWith,
    FollowUp,
    GiveValue,
    Location,
    ResetVariable,
    Text,
)
from ...examiner.hash_order import answers_otherwise
from ...examiner.history import loads_of, optimizers_of, saves_to, steps_at_end
from ...examiner.printed import NUMBER, is_comparable, program_files
from ...examiner.recording import Recording
from ...examiner.restarts import (
    Holder,
    begins_as_made,
    first_epoch,
    last_saved,
    loads_at_start,
    lost,
    rates_of,
    resumed,
    states_saved,
    steps_loaded,
)
from ...examiner.restarts import finding as finding_of_restart
from ...examiner.rule import Runs, Steps, line_of, observed, rule, rule_of_runs
from ...examiner.unfilled import layers_left_out, loads_with_kept, save_of
from ...observer.events import (
    Frame,
    GradientComputed,
    GradientsApplied,
    LearningRateWritten,
    Loaded,
    ModelAnswered,
    NothingTrained,
    OldValueSaved,
    OmittedVariable,
    Owner,
    Sample,
    Saved,
    SavedAgain,
    SaveKind,
    Stack,
    StepEnded,
    VariableMade,
    VariableRead,
    VariablesKept,
    VariableWritten,
)

Made = tuple[Stack, str, tuple[int | None, ...]]  # where a variable is made, its name and its shape
NUMBERED = (
    "give each word its number in an order that every process has, such as `sorted(set(words))`, or save the numbers beside the "
    "weights"
)
SAVE_ARRAY = "save its value in the same file, and assign it where the others are assigned"
MOST_TRIED = 3  # variables of a recording, with which it is run again


@rule_of_runs("fm05", explains_divergence=False)
def untracked_variable(runs: Runs) -> Steps:
    names, variables = kept_values(runs.recordings), kept_variables(runs.recordings)
    for recording in runs.recordings:
        yield from untracked_in(recording, names, variables)


def untracked_in(
    recording: Recording, names: Collection[Key], variables: Collection[Made]
) -> Steps:
    tried = 0
    for omitted, save in omitted_from_all(recording):
        variable = recording.variables[omitted.number]
        if made_in(variable) in variables or is_kept(variable.location[0], names):
            continue
        if omitted.number in layers_left_out(recording, save):
            continue  # the checkpoint was given its model
        beside = is_beside_model(save, omitted)
        reason = (
            Text("it is trained together with what is")
            if not beside
            and (omitted.of_saved or is_of_training(recording, save))
            and is_part_of_saved_training(recording, omitted)
            else None
        )
        if reason is None and tried < MOST_TRIED and may_be_missed(recording, omitted):
            tried += 1
            if not beside:
                reason = yield from reason_from_follow_ups(recording, omitted.number)
            else:
                effect = yield from effect_on_successor(recording, omitted.number)
                reason = reason_after_loading(effect) if isinstance(effect, ModelAnswered) else None
        if reason:
            made = recording.location_of(omitted.number)
            name = recording.name_of(omitted.number)
            # A checkpoint is given the program's variables, and finds those of layers by itself.
            is_given = recording.maker_of(omitted.number) is Owner.USER
            holder = contents_of(recording, save.made_at) if is_given else ()
            of_line = Text(" of ", Location(made)) if holder else Text()
            # A file of Keras lacks a variable that a layer keeps beside those that it knows.
            in_layer = (
                save.kind is SaveKind.MODEL and omitted.of_saved and recording.keras_used != 2
            )
            yield observed(
                "fm66" if in_layer else "fm05",
                recording,
                holder or made,
                Text(name, *of_line, f" is in no {kind_of(save)}, and ", *reason),
                line_of(save.location, "a callback"),
                f" saved {len(save.variables)} variables without it",
            )


def contents_of(recording: Recording, made_at: Stack) -> Stack:
    """Returns the line that decides what a checkpoint holds."""
    return from_contents(made_at, program_files(recording))


def kept_variables(runs: Sequence[Recording]) -> set[Made]:
    """Returns the variables that end a restarted run as they end the whole one, if no other has their place and name."""
    kept: set[Made] = set()
    for run, whole in resumed(runs):
        # A restart may have no need of an optimizer that trained before the save.
        if {*steps_at_end(run)} <= {*steps_at_end(whole)}:
            mine, theirs = ends_of(run), ends_of(whole)
            alike = [
                key
                for key in mine.keys() & theirs.keys()
                if distance(mine[key], theirs[key]) <= tolerance(run)
            ]
            kept.update(alike)
    return kept


def ends_of(run: Recording) -> dict[Made, Sample]:
    """Returns the last values of what was written after it was made, by place and name."""
    values = {value.number: value.sample for value in run.ended.values}
    found: dict[Made, list[Sample]] = {}
    for number in values.keys() & run.variables.keys() - run.copies:
        found.setdefault(made_in(run.variables[number]), []).append(values[number])
    return {key: samples[0] for key, samples in found.items() if len(samples) == 1}


def made_in(made: VariableMade) -> Made:
    return made.location[:1], made.name, made.shape


def is_kept(made: Frame, kept: Collection[Key]) -> bool:
    """Tells whether a restart has the value of a variable that this line makes, though no checkpoint holds it."""
    names = names_given(statement_at(made))
    return any(path == made.path and name in names for path, _, name in kept)


LOST = lost("fm05", Holder.PYTHON)


@rule_of_runs("fm05", explains_divergence=False)
def weights_left_out(runs: Runs) -> Steps:
    """Checks whether a restart goes on from a checkpoint of other things with the weights as they were made."""
    for run, whole in resumed(runs.recordings):
        load = loads_at_start(run)[0]
        stopped, save, holder = last_saved(run)
        is_without = save.kind is SaveKind.CHECKPOINT and not stopped.trained & {*save.variables}
        goes_on = begins_as_made(run, whole) and run.is_before(load, run.of(StepEnded)[0])
        if is_without and goes_on and not layers_left_out(stopped, save):
            message = f"the checkpoint has none of the trained weights: started again, it goes on from {load.path} "
            message += "with these as they were made"
            yield finding_of_restart(run, holder, message, mode="fm05")


@rule("fm05", explains_divergence=False)
def nothing_trained(recording: Recording) -> Steps:
    for fitted in recording.of(NothingTrained):
        number = fitted.attributes[0]
        message = f"{recording.name_of(number)} is an attribute that Keras does not track: fit trains nothing"
        yield observed(
            "fm05",
            recording,
            recording.location_of(number) or fitted.location,
            message,
            line_of(fitted.location, "fit"),
            " was given a model without trainable variables",
        )


@rule("fm05", explains_divergence=False)
def attribute_replaced(recording: Recording) -> Steps:
    for old in recording.of(OldValueSaved):
        if old.location:
            yield observed(
                "fm05",
                recording,
                old.location,
                f"the checkpoint's {old.name} was a variable, and is set to a number that no checkpoint holds",
                f"{old.path} has the variable's {old.saved:g} and not {old.now:g}",
                fix=f"write to the variable with `{old.name}.assign`",
            )


@rule("fm05", explains_divergence=False)
def model_left_out(recording: Recording) -> Steps:
    """Checks whether a checkpoint has only the optimizer of a model, and the model that it should fill is used as it was made."""
    for kept in loads_with_kept(recording):
        save = save_of(recording, kept)
        is_empty = kept.function == "restore" and not (kept.filled or kept.fitting)
        if not save or not save.made_at or not is_empty:
            continue
        trained = [recording.shapes_of(state.trains) for state in save.optimizers]
        is_like_trained = recording.shapes_of(kept.kept) in trained
        if not is_like_trained or not is_used_as_made(recording, kept):
            continue
        if not layers_left_out(recording, save):
            yield observed(
                "fm05",
                recording,
                save.made_at,
                Text(
                    "the checkpoint does not hold the model: ",
                    line_of(kept.location, "restore"),
                    f" gives none of {len(kept.kept)} variables a value, and they are used as they were made",
                ),
                f"{kept.path} has no values in their places",
            )


def is_used_as_made(recording: Recording, kept: VariablesKept) -> bool:
    """Tells whether variables that a restore has left as they were are read after it, and never written, trained or loaded."""
    numbers = {*kept.kept}
    read = {event.number for event in recording.of(VariableRead, after=kept)}
    loads = loads_of(recording, numbers)
    return bool(numbers & read) and not numbers & recording.written and len(loads) == 1


WITH_EPOCH = "save the number of the epoch, too, and begin with it: `initial_epoch=` of `fit`"


@rule_of_runs("fm05", explains_divergence=False)
def counted_anew(runs: Runs) -> Steps:
    """Checks whether a program that goes on counts from the beginning, and so replaces a numbered file by a later state.

    Files beside the one that it loads: a manager of the best state, say, may count those of its own run.
    """
    for run, whole in resumed(runs.recordings):
        loaded = loads_at_start(run)[-1].path
        done = steps_saved(last_saved(run)[0], loaded)
        beside = [each for each in run.of(Saved) if is_beside(each.path, loaded)]
        for save in [each for each in beside if is_numbered_anew(run, whole, each)]:
            usual, steps = steps_saved(whole, save.path), steps_in(save)
            if done and usual and steps == usual + done and save.location:
                message = f"it goes on after {done} steps and counts from the beginning again: {save.path}"
                message += f" was saved after {usual} steps, and is replaced after {steps}"
                yield finding_of_restart(run, save.location, message, WITH_EPOCH, mode="fm05")
                break


@rule_of_runs("fm05", explains_divergence=False)
def scheduled_anew(runs: Runs) -> Steps:
    """Checks whether `fit` sets the learning rates of the first epochs again, after a restart that goes on after them."""
    for run, whole in resumed(runs.recordings):
        rates, usual, other = scheduled(run), scheduled(whole), first_other_rate(run, whole)
        if rates and rates == usual[: len(rates)] and other and not first_epoch(run):
            message = f"it goes on after {steps_loaded(run)[0]} updates, and sets the learning rates of the first epochs "
            message += f"again: {other}"
            line = run.of(LearningRateWritten)[0].location
            yield finding_of_restart(run, line, message, WITH_EPOCH, mode="fm05")


def first_other_rate(run: Recording, whole: Recording) -> str:
    """Returns in words the first rate that differs after as many updates; nothing if none is known to.

    A schedule may keep a rate for several epochs, so that its rates count no epochs.
    """
    loaded, updates = steps_loaded(run), run.of(GradientsApplied)
    begun = updates[0].optimizer.steps if updates else 0
    if len(loaded) != 1 or begun not in (0, *loaded):
        return ""
    before = loaded[0] - begun  # all of them, if the optimizer was not loaded and counts anew
    known = rates_of([*states_saved(whole), *optimizers_of(whole)])
    for (kind, steps), mine in rates_of([*states_saved(run), *optimizers_of(run)]).items():
        right = known.get((kind, before + steps), mine)
        if steps > begun and not mine & right:
            return f"{min(mine):.4g} after {before + steps} updates, and {min(right):.4g} in the run that was never stopped"
    return ""


def scheduled(run: Recording) -> list[float]:
    """Returns the learning rates that `fit` itself sets, if it sets one before the first update."""
    written, updates = run.of(LearningRateWritten), run.of(GradientsApplied)
    is_first = bool(written and updates) and run.is_before(written[0], updates[0])
    by_fit = all(calls_at(each.location, "fit") for each in written)
    return [each.value for each in written] if is_first and by_fit else []


def is_beside(path: str, other: str) -> bool:
    return PurePath(path).parent == PurePath(other).parent


def steps_saved(recording: Recording, path: str) -> int:
    """Returns after how many steps of the optimizer a file was saved; 0 if it was not saved exactly once."""
    path = recording.absolute(path)
    saves = saves_to(recording, path)
    again = [save for save in recording.of(SavedAgain) if recording.absolute(save.path) == path]
    return steps_in(saves[0]) if len(saves) == 1 and not again else 0


def steps_in(save: Saved) -> int:
    """Returns the steps of the only optimizer; 0 if there are none or several."""
    return save.optimizers[0].steps if len(save.optimizers) == 1 else 0


def is_numbered_anew(run: Recording, whole: Recording, save: Saved) -> bool:
    """Tells whether a restart begins with the first of the numbers that the whole run gives to several files."""
    names = numbered_like(whole, save)
    return len(names) > 1 and numbered_like(run, save)[0] == names[0]


def numbered_like(recording: Recording, save: Saved) -> list[str]:
    """Returns the paths of what a program saves under names that differ from that of this save in a number at most."""
    pattern = re.sub(r"\d+", "#", save.path)
    paths = [other.path for other in recording.of(Saved)]
    return [path for path in dict.fromkeys(paths) if re.sub(r"\d+", "#", path) == pattern]


@rule("fm05", explains_divergence=False, after_end=True)
def numbered_by_hashes(run: Recording) -> Steps:
    """Checks whether what is loaded gets other numbers for the same words than those that it was trained with."""
    line = yield from answers_otherwise(run)
    if line:
        message = "it depends on the hashes of strings, which differ in each process: what is loaded answers otherwise there"
        proof = "with other hashes, the same file and the same inputs give other answers"
        yield observed("fm05", run, line, message, proof, fix=NUMBERED)


@rule_of_runs("fm05", explains_divergence=False)
def network_left_out(runs: Runs) -> Steps:
    """Checks whether training goes on after a restart with first values of what the program itself had changed.

    So do the networks that follow the trained one, and averages of weights, if no checkpoint has them; and what is trained
    together with the arrays of a file.
    """
    for run, whole in resumed(runs.recordings):
        for omitted, save in omitted_from_all(last_saved(run)[0], arrays=True):
            if goes_on_without(run, whole, omitted, save):
                message = Text(
                    run.name_of(omitted.number),
                    " of ",
                    Location(run.location_of(omitted.number)),
                    f" is in no {kind_of(save)}, and after a restart training goes on with its first value",
                )
                holder = contents_of(run, save.made_at) or save.location
                fix = SAVE_ARRAY if save.kind is SaveKind.ARRAYS else ""
                yield finding_of_restart(run, holder, message, fix, mode="fm05")
                break


def goes_on_without(
    run: Recording, whole: Recording, omitted: OmittedVariable, save: Saved
) -> bool:
    stopped, number, load = last_saved(run)[0], omitted.number, loads_at_start(run)[-1]
    if omitted.trained:
        is_state = save.kind is SaveKind.ARRAYS and is_part_of_saved_training(stopped, omitted)
    else:
        is_layer = stopped.maker_of(number) is Owner.LAYER
        is_own = omitted.read and is_updated_from_itself(run, number, load)
        is_state = (is_layer or is_own) and is_written_by_program(stopped, number)
    return (
        is_state
        and omitted.changed
        and made_alike(run, number) == made_alike(stopped, number)
        and begins_anew(run, whole, number)
    )


def made_alike(run: Recording, number: int) -> tuple[object, ...]:
    """Returns what the same variable of another run has, too."""
    return run.location_of(number), run.name_of(number), run.shapes_of([number])


def is_updated_from_itself(run: Recording, number: int, load: Loaded) -> bool:
    """Tells whether numbers of the program go on from what they were: one line writes to them, which has read them.

    Sums of a part of the training are set to 0 by another line.
    """
    made = run.variable(number)
    writes = [each for each in run.of(VariableWritten, after=load) if each.number == number]
    is_own = made is not None and made.maker is Owner.USER and "float" in made.dtype
    is_one_line = len({write.location for write in writes}) == 1
    return is_own and is_one_line and is_read_first(run, number, load)


def is_written_by_program(run: Recording, number: int) -> bool:
    """Tells whether the program itself writes to a variable after it has begun to train."""
    return any(
        write.number == number and write.writer is Owner.USER
        for update in run.of(GradientsApplied)[:1]
        for write in run.of(VariableWritten, after=update)
    )


def begins_anew(run: Recording, whole: Recording, number: int) -> bool:
    """Tells whether training goes on after a load before which it has the values of a run from the beginning."""
    loads = loads_at_start(run)
    updates, usual = run.of(GradientsApplied, after=loads[-1]), whole.of(GradientsApplied)
    if not updates or not usual or loads_of(run, [number]):
        return False
    known = {
        write.location
        for write in whole.of(VariableWritten, until=usual[0])
        if write.number == number
    }
    writes = [each for each in run.of(VariableWritten, until=updates[0]) if each.number == number]
    return not any(run.is_before(loads[0], e) or e.location not in known for e in writes)


KINDS = {
    SaveKind.CHECKPOINT: "checkpoint",
    SaveKind.MODEL: "file that Keras saved",
    SaveKind.ARRAYS: "file of arrays",
}


def kind_of(save: Saved) -> str:
    return KINDS[save.kind]


def omitted_from_all(
    recording: Recording, *, arrays: bool = False
) -> list[tuple[OmittedVariable, Saved]]:
    """Returns the variables that were changed before a save and that no checkpoint holds, each with its last save.

    That is a save of a model only for what no checkpoint has left out: a model holds no counters of the program. A file of
    arrays may hold anything: it counts only if asked for.
    """
    files = [save for save in recording.of(Saved) if save.kind is not SaveKind.MODEL]
    held = {number for save in files for number in save.variables}
    left_out = [
        (each, save)
        for save in recording.of(Saved)
        for each in save.omitted
        if arrays or save.kind is not SaveKind.ARRAYS
        if not is_beside_model(save, each) or recording.maker_of(each.number) is Owner.USER
    ]
    left_out.sort(key=lambda pair: not is_beside_model(pair[1], pair[0]))
    omitted = {each.number: (each, save) for each, save in left_out}
    return [
        omitted[number] for number in sorted(omitted.keys() - held) if recording.location_of(number)
    ]


def is_beside_model(save: Saved, omitted: OmittedVariable) -> bool:
    """Tells whether the variable is of another object than the model of Keras that was saved."""
    return save.kind is SaveKind.MODEL and not omitted.of_saved


def is_of_training(recording: Recording, save: Saved) -> bool:
    """Tells whether a training may go on from a save: it has an optimizer, or is made again, or steps follow.

    A part of a model is saved after the training where only this part is used later, such as an encoder.
    """
    has_optimizer = any({*each.variables} & {*save.variables} for each in save.optimizers)
    again = [each for each in recording.of(SavedAgain) if each.path == save.path]
    others = [each for each in recording.of(Saved) if each.location == save.location]
    return bool(has_optimizer or again or len(others) > 1 or recording.steps > save.steps)


def is_part_of_saved_training(recording: Recording, omitted: OmittedVariable) -> bool:
    """Tells whether it is trained, by an optimizer or by hand, together with variables of a save that lacks it."""
    saves = [save for save in recording.of(Saved) if omitted.number not in save.variables]
    held = {number for save in saves for number in save.variables}
    if is_in_files_of_keras(recording, omitted.number):
        return False
    together = [
        *(set(update.optimizer.trains) for update in recording.of(GradientsApplied)),
        *(set(computed.connected) for computed in recording.of(GradientComputed)),
    ]
    return any(omitted.number in trained and trained & held for trained in together)


def is_in_files_of_keras(recording: Recording, number: int) -> bool:
    """Tells whether Keras has loaded it, or saves it as often as there are checkpoints without it: a restart needs both files."""
    files = [each for each in recording.of(Saved) if number in each.variables]
    without = [
        each for each in recording.checkpoints if number in {left.number for left in each.omitted}
    ]
    return number in recording.loaded or len(files) >= max(2, len(without))


def may_be_missed(recording: Recording, omitted: OmittedVariable) -> bool:
    """Tells whether only another run can show that a restart misses it."""
    if recording.before:
        return value_at_stop(recording, omitted.number) is not None
    made = recording.variables[omitted.number]
    is_state = "float" in made.dtype or is_count(made)
    return made.maker is Owner.USER and is_state and omitted.read and omitted.changed


def is_count(made: VariableMade) -> bool:
    """Tells whether it counts; integers of other shapes are states of random generators and indices."""
    return "int" in made.dtype and not made.shape


def reason_from_follow_ups(recording: Recording, number: int) -> Answers[Text | None]:
    """Returns what shows that the program goes on otherwise without the variable, None if nothing does."""
    name, value = recording.name_of(number), value_at_stop(recording, number)
    if value is not None:
        again = FollowUp(
            recording, BeginWith(number, value), f"again with {name} as it was, {value:g}"
        )
        effect = yield from effect_of(again, on_answers=False)
        if effect is None and (yield from counts_on(again, number)):
            return Text("started again, the program prints it from its first value on")
        return reason("started again with the value that it had", effect)
    reset = FollowUp(
        recording, ResetVariable(number), f"with {name} as it was at first, from the first save on"
    )
    effect = yield from effect_of(reset)
    if effect:
        return reason("with its first value from there on", effect)
    effect = yield from effect_on_successor(recording, number)
    return reason_after_loading(effect)


def counts_on(again: FollowUp, number: int) -> Answers[bool]:
    """Tells whether a program prints with the value that a count had what the whole run prints, and without it does not."""
    run = again.recording
    if not is_count(run.variables[number]) or run.whole is None:
        return False
    other = yield again
    if other is None:
        return False
    lines, whole = lines_of_counts(run.output), lines_of_counts(run.whole.output)
    return bool((lines_of_counts(other.output) - lines) & whole)


def lines_of_counts(output: str) -> set[str]:
    """Returns the lines that can be compared, without numbers that are not whole."""
    return {NUMBER.sub("#", line) for line in filter(is_comparable, output.split("\n"))}


def effect_on_successor(
    recording: Recording, number: int
) -> Answers[Divergence | ModelAnswered | None]:
    """Returns what differs if the variable that takes the place of another after loading gets its value."""
    successor = made_again(recording, number)
    if successor is None:
        return None
    words = f"with {recording.name_of(number)} after loading as it was when it was not saved"
    effect = yield from effect_of(FollowUp(recording, GiveValue(number, successor), words))
    return effect


def reason_after_loading(effect: Divergence | ModelAnswered | None) -> Text | None:
    return reason("where what takes its place after loading gets its value", effect)


def reason(when: str, effect: Divergence | ModelAnswered | None) -> Text | None:
    if isinstance(effect, ModelAnswered):
        place = (" at ", Location(effect.location)) if effect.location else ()
        return Text(f"{when}, the predictions differ", *place)
    return Text(f"{when}, the training differs") if effect else None


def value_at_stop(recording: Recording, number: int) -> float | None:
    """Returns the value that a number had when the program was stopped, if the program makes it again at the same place."""
    stopped = recording.before
    save = stopped.last(Saved) if stopped else None
    if stopped is None or save is None:
        return None
    is_own = stopped.maker_of(number) is Owner.USER
    is_same = is_own and stopped.location_of(number) == recording.location_of(number)
    omitted = [each for each in save.omitted if each.number == number]
    values = [each.scalar for each in omitted if each.read and each.changed]
    return values[0] if values and is_same else None


def made_again(recording: Recording, number: int) -> int | None:
    """Returns the variable that takes the place of another after loading: the same code made it, and it is read first.

    The program may make it before it loads, but not before it saves.
    """
    old, loads = recording.variables[number], recording.of(Loaded)
    if not loads:
        return None
    saves = recording.of(Saved, until=loads[0])
    for made in recording.of(VariableMade, after=saves[-1] if saves else loads[0]):
        is_whole = made.number not in recording.copies | recording.loaded
        if is_whole and is_like(made, old) and is_read_first(recording, made.number, loads[0]):
            return made.number
    return None


def is_like(made: VariableMade, old: VariableMade) -> bool:
    alike = (made.shape, made.dtype, made.maker) == (old.shape, old.dtype, old.maker)
    return alike and any(map(same_statement, made.location[:1], old.location))


def is_read_first(recording: Recording, number: int, load: Loaded) -> bool:
    # What a load makes may be read in it, when the loaded model is put together.
    made = recording.variable(number)
    since = made if made and {*load.location[:1]} & {*made.location} else load
    reads = [event for event in recording.of(VariableRead, after=since) if event.number == number]
    writes = [
        event for event in recording.of(VariableWritten, after=load) if event.number == number
    ]
    return bool(reads) and not any(recording.is_before(write, reads[0]) for write in writes)
