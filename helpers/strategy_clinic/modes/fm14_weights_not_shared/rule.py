"""Checks fm14: weights were copied once, or not at all, and the copy is used as if it had those of its source."""

import ast
import itertools
from collections import Counter
from collections.abc import Iterator

from ...examiner.blame import (
    UPDATES,
    calls_at,
    calls_in,
    from_parting,
    given_in,
    is_in_loop_of,
    loop_around,
    nodes_of_file,
    statement_at,
)
from ...examiner.findings import Location, Note, Text
from ...examiner.history import loads_of, updates_of
from ...examiner.recording import Recording
from ...examiner.restarts import begins_as_made
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import (
    CalledAlike,
    CalledApart,
    CalledInTurn,
    CheckpointRestored,
    CopiedToItself,
    CopyCalled,
    CopyMoved,
    Event,
    Frame,
    GradientComputed,
    GradientsApplied,
    Loaded,
    ModelCalled,
    ModelUsed,
    OutdatedCopyUsed,
    Owner,
    Saved,
    SavedAgain,
    Stack,
    VariableWritten,
    WeightsCopied,
)

FROM_CONFIG = "from_config"
CLONES = "clone_model", FROM_CONFIG  # which copy no weights
GIVE_WEIGHTS = "give the clone the weights, `clone.set_weights(model.get_weights())`"
MOST_MOVED = 0.98  # of the way in a step, so that a copy has not simply got the values


@rule("fm14")
def trained_together(recording: Recording) -> Steps:
    for copied in recording.of(WeightsCopied):
        source, target = set(copied.source), set(copied.target)
        times = [each for each in recording.of(WeightsCopied) if set(each.target) == target]
        is_synchronised = len([each for each in times if each.function == copied.function]) > 1
        updates = updates_of(recording, source, after=copied)
        together = [update for update in updates if target & {*update.optimizer.trains}]
        is_meant = is_synchronised or is_another_layer(recording, copied)
        if not copied.location or not together or is_meant:
            continue
        # It may be meant: two towers of one form, or one for two inputs
        if copied.function == FROM_CONFIG:
            yield Note(
                Text(
                    Location(copied.location),
                    " makes a layer from the configuration of another one: an optimizer trains both, each with weights of its "
                    "own; if they are to share them, call the first one twice (fm14)",
                )
            )
        elif copied.equal:
            yield observed(
                "fm14",
                recording,
                copied.location,
                f"{copied.function} copies weights that are equal here only: the copy has variables of its own",
                line_of(together[0].location, "an optimizer"),
                " trains both, each with its own gradients",
            )


def is_another_layer(recording: Recording, copied: WeightsCopied) -> bool:
    """Tells whether a layer made from a configuration is the next one, or one of several; its seeds give equal weights."""
    copies = {each.target for each in recording.of(WeightsCopied) if each.source == copied.source}
    apart = {each.target for each in recording.of(CalledApart)}
    apart -= {each.target for each in recording.of(CalledInTurn)}
    return copied.function == FROM_CONFIG and (len(copies) > 1 or copied.target not in apart)


@rule("fm14")
def outdated_copy(recording: Recording) -> Steps:
    for used in recording.of(OutdatedCopyUsed):
        if used.copied_at:
            yield observed(
                "fm14",
                recording,
                used.copied_at,
                "the weights are copied here, and the training of the original does not reach the copy",
                line_of(used.location, "a later line"),
                " uses the copy after that training, with the values from before",
            )


@rule("fm14")
def clone_without_weights(recording: Recording) -> Steps:
    """Checks whether a clone that has random weights is used as if it had those of its source."""
    for clone in recording.of(WeightsCopied):
        is_random = clone.function in CLONES and not clone.equal
        if not (is_random and clone.target and clone.location):
            continue
        for kept, fix, proof in (*used_in_training(recording, clone), *moved(recording, clone)):
            message = f"{clone.function} copies no weights: {kept}"
            yield observed("fm14", recording, clone.location, message, *proof, fix=fix)
            break


# What a clone has instead of weights, what to do, and what shows it.
Shown = tuple[str, str, tuple[str | Location, ...]]


def used_in_training(recording: Recording, clone: WeightsCopied) -> Iterator[Shown]:
    """Yields that a clone which nothing fills is called in a training: of another model, or of its own source.

    A network that is random on purpose is frozen, or gets what the other one gets, which learns to answer alike.
    """
    alike = [each.target for each in recording.of(CalledAlike)]
    for call, update in calls_in_steps(recording, clone):
        place, at = line_of(call.location, "a later line"), line_of(update.location, "an update")
        learns = {*clone.source} & {*update.optimizer.trains}
        if has_learnt(recording, clone):
            yield (
                "the clone of a model that has learnt keeps random ones",
                GIVE_WEIGHTS,
                (
                    place,
                    " calls it in the training of another model, at ",
                    at,
                    ", and nothing has filled or trained it",
                ),
            )
        elif learns and call.trainable and call.taped and clone.target not in alike:
            yield (
                "the clone keeps random ones, while the original is trained",
                f"call the original itself, train the clone, too, or {GIVE_WEIGHTS}",
                (place, " calls it for the loss, and no optimizer trains it, at ", at),
            )


def moved(recording: Recording, clone: WeightsCopied) -> Iterator[Shown]:
    """Yields that a clone is to follow a model, as a moving average of it does, and begins with random weights."""
    shares = [each.share for each in recording.of(CopyMoved) if each.target == clone.target]
    if shares and shares[0] <= MOST_MOVED and not loaded(recording) & {*clone.target}:
        writes = recording.of(VariableWritten, after=clone)
        lines = (each.location for each in writes if each.number in clone.target)
        place = line_of(next(lines, ()), "a later line")
        follows = f" lets it follow the original by {shares[0]:.0%} in a step"
        yield "the clone begins with random ones", GIVE_WEIGHTS, (place, follows)


@rule("fm14")
def clone_in_place_of_its_source(recording: Recording) -> Steps:
    """Checks whether an optimizer is given the variables of a clone, which no loss contains, and nobody those of the original."""
    computed = recording.of(GradientComputed)
    connected = {number for each in computed for number in each.connected}
    asked = connected | {number for each in computed for number in each.disconnected}
    for clone in recording.of(WeightsCopied):
        pairs = zip(clone.source, clone.target)
        meant = {own: original for original, own in pairs if own in asked - connected}
        by_program = recording.written_by(Owner.USER, after=clone) & {*clone.target}
        is_mistaken = not {*meant.values()} & asked and not by_program
        is_used = updates_of(recording, meant, after=clone) and not calls_of(recording, clone)
        if is_mistaken and clone.location and is_used:
            first = next(each for each in computed if {*meant} & {*each.disconnected})
            yield observed(
                "fm14",
                recording,
                first.location or clone.location,
                f"{len(meant)} of the variables given here are those of a copy, and the loss is computed from the original",
                line_of(clone.location, clone.function),
                " makes the copy, which nothing calls; their gradients are None, and those of the original are not asked for",
                fix="give the variables of the model that the step calls",
            )


@rule("fm14")
def one_object_under_two_names(recording: Recording) -> Steps:
    """Checks whether a program copies weights between two names of one model, as from a network to its target network."""
    for copied in recording.of(CopiedToItself):
        frame = copied.location[0]
        names = copied_names(frame)
        if names:
            target, source = names
            yield observed(
                "fm14",
                recording,
                (line_that_shares(frame, target, source), *copied.location[1:]),
                f"`{target}` and `{source}` are one model, so the copy never has other weights than its source",
                line_of(copied.location, "a later line"),
                " copies the weights of one to the other, and changes nothing",
                fix=f"make `{target}` a model of its own, as by `tf.keras.models.clone_model`",
            )


def copied_names(frame: Frame) -> tuple[str, str] | None:
    """Returns the names in `x.set_weights(y.get_weights())` on a line, if they differ."""
    for call in calls_in(statement_at(frame)):
        match call:
            case ast.Call(
                func=ast.Attribute(value=target, attr="set_weights"),
                args=[ast.Call(func=ast.Attribute(value=source, attr="get_weights"))],
            ) if ast.unparse(target) != ast.unparse(source):
                return ast.unparse(target), ast.unparse(source)
    return None


def line_that_shares(frame: Frame, one: str, other: str) -> Frame:
    """Returns the line that gives one of these names to the other; the line that copies if there is none."""
    for node in nodes_of_file(frame.path):
        parts = [part for pair in given_in(node) for part in pair]
        if {one, other} <= {*map(ast.unparse, parts)}:
            return frame._replace(line=parts[0].lineno)
    return frame


@rule("fm14", after_end=True)
def parted_by_loads(recording: Recording) -> Steps:
    """Checks whether a model and a part of it are loaded from two files, each with variables of its own, and used as one.

    An optimizer trains the part in the loaded model, and a line that used the trained part before uses the one of the other file.
    """
    for before in filter(None, (recording, recording.before)):
        for part, whole_load, part_load in loads_of_parts(recording, before):
            ends = whole_load if before is recording else None
            uses = before.of(ModelUsed, until=ends)
            lines = [each.location[:1] for each in uses if is_within(each, part)]
            for used in recording.of(ModelUsed, after=part_load):
                is_part = is_within(used, part_load) and used.location[:1] in lines
                update = trains_other(recording, used, whole_load) if is_part else None
                if update and not is_changed(recording, used.trainable, part_load):
                    yield observed(
                        "fm14",
                        recording,
                        whole_load.location,
                        f"{whole_load.path} and {part_load.path} were saved from models that share variables, and each is loaded "
                        "with variables of its own",
                        line_of(update.location, "an optimizer"),
                        f" trains those of {whole_load.path}, and ",
                        line_of(used.location, "a later line"),
                        f" uses those of {part_load.path}, which nothing trains",
                        fix="load the parts and make the whole model of them, or take the part from the loaded model",
                    )
                    break


def loads_of_parts(
    recording: Recording, before: Recording
) -> Iterator[tuple[Saved, Loaded, Loaded]]:
    """Yields the save of a trained part of a model, the load of the model, and that of the part, if these share nothing."""
    for whole, part in itertools.permutations(before.of(Saved), 2):
        is_part = {*part.variables} < {*whole.variables} and updates_of(before, part.variables)
        if is_part and saved_last_at(before, whole) == saved_last_at(before, part):
            loads = (loads_from(recording, each, before) for each in (whole, part))
            for one, other in itertools.product(*loads):
                if not {*one.variables} & {*other.variables}:
                    yield part, one, other


def saved_last_at(recording: Recording, save: Saved) -> int:
    """Returns after how many steps a file was saved last."""
    again = [each.steps for each in recording.of(SavedAgain) if each.path == save.path]
    return [save.steps, *again][-1]


def loads_from(recording: Recording, save: Saved, before: Recording) -> list[Loaded]:
    """Returns the loads of what was saved earlier: in this run, or in the one before that."""
    path = recording.absolute(save.path)
    loads = recording.of(Loaded, after=save if before is recording else None)
    return [each for each in loads if recording.absolute(each.path) == path]


def is_within(used: ModelUsed, file: Saved | Loaded) -> bool:
    return bool(used.trainable) and {*used.trainable} <= {*file.variables}


def trains_other(recording: Recording, used: ModelUsed, whole: Loaded) -> GradientsApplied | None:
    """Returns the update, before a use of a part, that trains the one of the same shapes in the whole model.

    A program that uses both parts compares them.
    """
    wanted, shapes = (
        Counter(recording.shapes_of(numbers)) for numbers in (used.trainable, used.variables)
    )
    for update in updates_of(recording, whole.variables, after=whole):
        trained = {*update.optimizer.trains} & {*whole.variables}
        is_before = recording.is_before(update, used) or is_in_loop(used.location, update.location)
        later = recording.of(ModelUsed, after=update)
        both = [each for each in later if {*each.trainable} & {*whole.variables}]
        both = [each for each in both if Counter(recording.shapes_of(each.variables)) == shapes]
        if is_before and wanted <= Counter(recording.shapes_of(trained)) and not both:
            return update
    return None


def is_in_loop(use: Stack, update: Stack) -> bool:
    """Tells whether a loop of the program makes an update and then comes to a line again."""
    return any(itertools.starmap(is_in_loop_of, itertools.product(use, update)))


@rule("fm14", after_end=True)
def copied_before_load(recording: Recording) -> Steps:
    """Checks whether training uses a copy of a model's first weights after a file has filled the model, and until the next copy.

    One that moves towards its source has values of its own to save. One that keeps old weights on purpose, as a teacher does, is
    made once, or of a model that has learnt.
    """
    is_as_made = recording.whole is not None and begins_as_made(recording, recording.whole)
    for copied in () if is_as_made else recording.of(WeightsCopied):
        filled = {each.number for each in recording.of(VariableWritten, until=copied)}
        is_first = (
            copied.equal and not {*copied.source} & filled and not has_learnt(recording, copied)
        )
        if not is_first or not copied.location or updates_of(recording, copied.target):
            continue
        for load in loads_of(recording, copied.source, after=copied)[:1]:
            for call, update in calls_in_training(recording, copied, load):
                again = [
                    each.location
                    for each in recording.of(WeightsCopied, after=call)
                    if (each.source, each.target) == (copied.source, copied.target)
                ]
                is_filled = {*copied.target} & {*load.variables}
                if again and not is_filled and not is_changed(recording, copied.target, load, call):
                    yield observed(
                        "fm14",
                        recording,
                        from_parting(copied.location, again),
                        "the copy gets the weights that the model was made with, and not those that are loaded after that",
                        line_of(load.location, "a later line"),
                        " loads the model, and ",
                        line_of(call.location, "a later line"),
                        " uses the copy in the training at ",
                        line_of(update.location, "a later line"),
                        " before it gets the weights of the model again",
                        fix="copy the weights after the load",
                    )
                    break


def calls_in_training(
    recording: Recording, copied: WeightsCopied, load: Loaded
) -> Iterator[tuple[CopyCalled, GradientsApplied]]:
    """Yields the calls of a copy after a load of its source that a loop repeats, each with an update of the source there."""
    for call in calls_of(recording, copied, after=load):
        for update in updates_of(recording, copied.source, after=load)[:1]:
            if is_in_loop(call.location, update.location):
                yield call, update


def is_changed(
    recording: Recording, numbers: tuple[int, ...], load: Loaded, until: Event | None = None
) -> bool:
    """Tells whether something but this load has given one of these variables another value since."""
    since = {"after": load, "until": until}
    writes = {each.number for each in recording.of(VariableWritten, **since)}
    copies = {n for each in recording.of(WeightsCopied, **since) for n in each.target}
    loads = loads_of(recording, numbers, **since)
    others = loads[1:] if {*numbers} & {*load.variables} else loads
    return bool((writes | copies) & {*numbers} or others)


@rule("fm14")
def random_model_used(recording: Recording) -> Steps:
    """Checks whether a model with the random weights of its start is used instead of one like it that was trained.

    As a moving average of weights that nothing updates. A program that uses another one like it, too, compares them, and one
    that raised may have meant to load them later.
    """
    calls, uses, of_files = recording.of(ModelCalled), recording.of(ModelUsed), loaded(recording)
    used_at_all = {number for each in uses for number in each.variables}
    for used in uses if recording.finished else ():
        alike = [each for each in calls if is_alike(recording, each.variables, used.variables)]
        trained = recording.written_by(Owner.OPTIMIZER, until=used)
        others = [each for each in alike if trained & {*each.variables}]
        is_random = used.trainable and not {*used.trainable} & (recording.written | of_files)
        made_at = [each.made_at for each in others[:1] if each.made_at != used.made_at]
        is_apart = bool(used.made_at and made_at)
        if is_apart and is_random and not any(used_at_all & {*each.variables} for each in alike):
            yield observed(
                "fm14",
                recording,
                from_parting(used.made_at, made_at),
                "this model keeps the random weights that it was made with: nothing trains, loads or copies them",
                line_of(used.location, "a later line"),
                " uses it, while another model of the same shapes was trained and is not used",
                fix="give it the weights of the model that was trained",
            )
            return


def is_alike(recording: Recording, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Tells whether two models have variables of the same shapes, and none in common."""
    shapes = [Counter(recording.shapes_of(numbers)) for numbers in (one, other)]
    return shapes[0] == shapes[1] and not {*one} & {*other}


def loaded(recording: Recording) -> set[int]:
    """Returns the variables that get values from files."""
    restores = recording.of(CheckpointRestored)
    return {*recording.loaded, *(number for each in restores for number in each.variables)}


def has_learnt(recording: Recording, clone: WeightsCopied) -> bool:
    """Tells whether the model was trained or loaded before it was cloned."""
    trained = recording.written_by(Owner.OPTIMIZER, until=clone) & {*clone.source}
    return bool(trained or loads_of(recording, clone.source, until=clone))


def is_filled(recording: Recording, clone: WeightsCopied) -> bool:
    """Tells whether the clone gets other values, or shall be trained itself."""
    filled = (recording.loaded | recording.written) & {*clone.target}
    return bool(filled or updates_of(recording, clone.target))


def calls_of(
    recording: Recording, copy: WeightsCopied, after: Event | None = None
) -> list[CopyCalled]:
    calls = recording.of(CopyCalled, after=after)
    return [each for each in calls if {*each.target} == {*copy.target}]


def calls_in_steps(
    recording: Recording, clone: WeightsCopied
) -> Iterator[tuple[CopyCalled, GradientsApplied]]:
    """Yields the calls of a clone that nothing fills, each with the update of the step that it belongs to."""
    for call in () if is_filled(recording, clone) else calls_of(recording, clone, after=clone):
        for update in recording.of(GradientsApplied):
            if is_in_step(call.location, update.location):
                yield call, update


def is_in_step(call: Stack, update: Stack) -> bool:
    """Tells whether a call was made from the line of an update, as in `fit`, or from the same step of a program's loop."""
    return any(
        frame == updating or is_of_update(frame, updating)
        for updating in update[:1]
        for frame in call
    )


def is_of_update(frame: Frame, update: Frame) -> bool:
    """Tells whether a line is in the loop, or else in the function, that makes an update by itself."""
    is_function = update.function != "<module>" and not loop_around(update)
    is_step = is_in_loop_of(frame, update) or (is_function and frame.scope == update.scope)
    return is_step and calls_at((update,), *UPDATES)
