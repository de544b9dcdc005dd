"""Checks fm14: weights were copied once, or not at all, and the copy is used as if it had those of its source."""

from collections.abc import Iterator
from dataclasses import replace

from ...examiner.blame import called_at, loop_around, spans
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule
from ...observer.events import (
    CopyCalled,
    Frame,
    GradientsApplied,
    Loaded,
    OutdatedCopyUsed,
    Owner,
    Stack,
    VariableWritten,
    WeightsCopied,
)

UPDATES = {"apply_gradients", "apply", "minimize"}


@rule("fm14")
def trained_together(recording: Recording) -> Iterator[Finding]:
    for copied in recording.of(WeightsCopied):
        source, target = set(copied.source), set(copied.target)
        times = [each for each in recording.of(WeightsCopied) if set(each.target) == target]
        is_synchronised = len([each for each in times if each.function == copied.function]) > 1
        together = [
            update
            for update in recording.of(GradientsApplied, after=copied)
            if source & set(update.optimizer.trains) and target & set(update.optimizer.trains)
        ]
        if copied.equal and copied.location and together and not is_synchronised:
            yield observed(
                "fm14",
                recording,
                copied.location,
                f"{copied.function} copies weights that are equal here only: the copy has variables of its own",
                line_of(together[0].location, "an optimizer"),
                " trains both, each with its own gradients",
            )


@rule("fm14")
def outdated_copy(recording: Recording) -> Iterator[Finding]:
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
def clone_without_weights(recording: Recording) -> Iterator[Finding]:
    """Checks whether the clone of a trained model keeps random weights and is used in the training of another."""
    for clone in recording.of(WeightsCopied):
        is_random = (
            clone.function in ("clone_model", "from_config") and not clone.equal and clone.target
        )
        if (
            is_random
            and clone.location
            and has_learnt(recording, clone)
            and not is_filled(recording, clone)
        ):
            for call, update in uses_in_training(recording, clone):
                finding = observed(
                    "fm14",
                    recording,
                    clone.location,
                    f"{clone.function} copies no weights: the clone of a model that has learnt keeps random ones",
                    line_of(call.location, "a later line"),
                    " calls it in the training of another model, at ",
                    line_of(update.location, "an optimizer"),
                    ", and nothing has filled or trained it",
                )
                yield replace(
                    finding,
                    fix="give the clone the weights, `clone.set_weights(model.get_weights())`",
                )
                break


def has_learnt(recording: Recording, clone: WeightsCopied) -> bool:
    """Tells whether the model was trained or loaded before it was cloned."""
    source = set(clone.source)
    by_optimizer = [
        write.number
        for write in recording.of(VariableWritten, until=clone)
        if write.writer is Owner.OPTIMIZER
    ]
    loaded = [each for load in recording.of(Loaded, until=clone) for each in load.variables]
    return bool(source & {*by_optimizer, *loaded}) and not source & set(clone.target)


def is_filled(recording: Recording, clone: WeightsCopied) -> bool:
    """Tells whether the clone gets other values, or shall be trained itself."""
    changed = {write.number for write in recording.of(VariableWritten, after=clone)}
    for load in recording.of(Loaded, after=clone):
        changed |= {*load.variables}
    for update in recording.of(GradientsApplied):
        changed |= {*update.optimizer.trains}
    return bool(changed & set(clone.target))


def uses_in_training(
    recording: Recording, clone: WeightsCopied
) -> Iterator[tuple[CopyCalled, GradientsApplied]]:
    """Returns the calls of the clone, each with the update of the step that it belongs to."""
    for call in recording.of(CopyCalled, after=clone):
        for update in recording.of(GradientsApplied):
            is_same = set(call.target) == set(clone.target)
            if is_same and is_in_step(call.location, update.location):
                yield call, update


def is_in_step(call: Stack, update: Stack) -> bool:
    """Tells whether a call was made from the line of an update, as in `fit`, or from the same step of a program's loop."""
    return bool(update) and any(frame == update[0] or in_loop(frame, update[0]) for frame in call)


def in_loop(frame: Frame, update: Frame) -> bool:
    """Tells whether a line is in the loop, or else in the function, that makes an update by itself."""
    if (frame.path, frame.function) != (update.path, update.function):
        return False
    loop = loop_around(update)
    is_step = spans(loop, frame.line) if loop else update.function != "<module>"
    return is_step and bool(UPDATES & {*called_at(update)})
