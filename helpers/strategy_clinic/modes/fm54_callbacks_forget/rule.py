"""Checks fm54: training continues from a backup, and a callback has forgotten its best value and takes a worse one."""

from __future__ import annotations

import itertools
import math
import os

from ...examiner.blame import calls_at
from ...examiner.findings import Note, Text
from ...examiner.history import saves_to, steps_at_end
from ...examiner.recording import Recording, Role
from ...examiner.restarts import (
    Holder,
    begins_from_zero,
    finding,
    lost,
    other_end,
)
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import (
    CallbackState,
    FileMoved,
    GradientsApplied,
    Loaded,
    Owner,
    Saved,
    SavedAgain,
    VariableMade,
    WeightsCopied,
)

MODE = "fm54"
KEEP = "let a subclass keep {} in a file, and read it in `on_train_begin`"
FIXES = {
    "ModelCheckpoint": "give it the saved best value as `initial_value_threshold`",
    "EarlyStopping": KEEP.format("`best` and `wait`"),
    "ReduceLROnPlateau": KEEP.format("`best`, `wait` and `cooldown_counter`"),
}
Key = tuple[str, str, str]  # a callback: its class, what it monitors, and the path that it saves to
States = list[CallbackState]


@rule(MODE, explains_divergence=False, after_end=True)
def forgotten_after_restart(run: Recording) -> Steps:
    """Checks the last `fit` of a program that was started again against that of the one that was killed or had ended."""
    stopped, whole = run.before, run.whole
    is_restart = run.role in (Role.RESTARTED, Role.AGAIN)
    if not is_restart or not stopped or not whole or not run.finished:
        return
    if begins_from_zero(run, whole):
        return
    before, usual = ({key: f[-1] for key, f in fits_of(each).items()} for each in (stopped, whole))
    for key, fits in fits_of(run).items():
        if key not in before:
            continue
        message = forgotten(before[key], fits[-1], run)
        if not message and (steps_at_end(run) != steps_at_end(whole) or other_end(run, whole)):
            message = waits_anew(before[key], fits[-1], usual.get(key, []))
        if message:
            fix = FIXES.get(fits[-1][0].callback, "")
            yield finding(run, fits[-1][0].location, message, fix, mode=MODE)


@rule(MODE, explains_divergence=False)
def forgotten_in_next_fit(run: Recording) -> Steps:
    """Checks each `fit` that continues from a backup of the one before, in the same process."""
    for fits in fits_of(run).values():
        for before, after in itertools.pairwise(fits):
            message = forgotten(before, after, run) if continues(run, before, after) else ""
            if message:
                proof = "`fit` continued from a backup in the same process"
                fix = FIXES.get(after[0].callback, "")
                yield observed(MODE, run, after[0].location, message, proof, fix=fix)


@rule(MODE, explains_divergence=False, finds_own_program=False)
def nothing_saved(run: Recording) -> Steps:
    """Notes a callback that was to save the best model and has seen no value to compare, so that no file was written."""
    for (callback, monitor, path), fits in fits_of(run).items():
        epochs = [state for state in fits[-1] if not state.begins]
        is_unseen = epochs and not any(map(is_known, fits[-1]))
        is_saver = callback == "ModelCheckpoint" and monitor and path
        if is_saver and is_unseen and not has_saved(run, path):
            yield Note(
                f"ModelCheckpoint has saved nothing in {len(epochs)} epochs: it never had a `{monitor}`, which Keras computes at "
                'the end of an epoch (`save_freq="epoch"`); or, without `save_best_only`, `save_freq` is more than all batches'
            )


@rule(MODE, explains_divergence=False, finds_own_program=False)
def new_in_next_fit(run: Recording) -> Steps:
    """Notes a file of the best model that a new callback has replaced by a worse one, while the same model trained on.

    It is no finding: what a later `fit` validates with may be harder.
    """
    for (callback, _, path), fits in fits_of(run).items():
        for before, after in itertools.pairwise(fits):
            held, begins, best = before[-1], after[0], after[-1]
            is_new = is_known(held) and is_known(best) and not is_known(begins)
            if callback != "ModelCheckpoint" or not is_new or not is_worse(best, held):
                continue
            if replaces_file(run, best) and trains_on(run, before, after):
                yield Note(
                    Text(
                        f"{path} has a model with {held.monitor} {best.best:.4g} in place of one with {held.best:.4g}: the "
                        "ModelCheckpoint of ",
                        line_of(begins.location, "a later `fit`"),
                        " is new, and begins without the best value; give the same one to each `fit`, or the best value as "
                        "`initial_value_threshold`",
                    )
                )


BEST_LOST = lost(MODE, Holder.BEST)
RATE_LOST = lost(MODE, Holder.SCHEDULE)


def fits_of(run: Recording) -> dict[Key, list[States]]:
    """Returns by callback its states in each `fit` that it was used in."""
    found: dict[Key, list[States]] = {}
    for state in run.of(CallbackState):
        fits = found.setdefault((state.callback, state.monitor, state.path), [])
        if state.begins or not fits:
            fits.append([])
        fits[-1].append(state)
    return found


def continues(run: Recording, before: States, after: States) -> bool:
    """Tells whether `fit` itself has loaded weights since, as BackupAndRestore does, and has not begun with epoch 0."""
    loads = run.of(Loaded, after=before[-1], until=after[-1])
    by_fit = any(calls_at(load.location, "fit") for load in loads)
    return by_fit and any(state.epoch > 0 for state in after[1:2])


def trains_on(run: Recording, before: States, after: States) -> bool:
    """Tells whether a `fit` trains on what the one before has trained, or has saved as the best, and nothing keeps that file.

    Not if a model was made, filled or saved under another name in between: that is another training, or nothing is lost.
    """
    between = {"after": before[-1], "until": after[0]}
    best = run.absolute(before[-1].path)
    loads = run.of(Loaded, **between)
    of_best = {number for load in loads for number in load.variables}
    made = [each for each in run.of(VariableMade, **between) if each.maker is Owner.LAYER]
    new = [each for each in made if each.number not in of_best]
    paths = [each.path for each in loads]
    paths += [each.path for each in run.of(Saved, **between)]
    paths += [each.path for each in run.of(SavedAgain, **between)]
    others = [path for path in paths if run.absolute(path) != best]
    copied = [*run.of(WeightsCopied, **between), *run.of(FileMoved, **between)]
    if new or run.written_by(Owner.USER, **between) or others or copied:
        return False
    known = {n for each in run.of(GradientsApplied, until=after[0]) for n in each.optimizer.trains}
    updates = run.of(GradientsApplied, after=after[0], until=after[-1])  # none: it is no new step
    return not updates or any((known | of_best) & {*each.optimizer.trains} for each in updates)


def forgotten(before: States, after: States, run: Recording) -> str:
    """Returns how a callback has forgotten its best value and taken a worse one; nothing if neither has changed a thing."""
    held, begins = before[-1], after[0]
    taken = next((state for state in after[1:] if is_known(state)), None)
    if not taken or not is_known(held) or is_known(begins):
        return ""
    replaces = held.callback != "ModelCheckpoint" or replaces_file(run, taken)
    return in_words(held, taken) if is_worse(taken, held) and replaces else ""


def waits_anew(before: States, after: States, usual: States) -> str:
    """Returns how a callback counts the epochs without a better value from the beginning again; nothing if it does not."""
    held, begins = before[-1], after[0]
    if not is_known(held) or is_known(begins):
        return ""
    waited = {state.epoch: state.wait for state in usual}
    for state in after[1:]:
        if waited.get(state.epoch, state.wait) > state.wait:
            return (
                f"{held.callback} loses its best {held.monitor} {held.best:.4g}: after epoch {state.epoch} it has waited "
                f"{state.wait} epochs, and {waited[state.epoch]} in the run that was never stopped"
            )
    return ""


def in_words(held: CallbackState, taken: CallbackState) -> str:
    value = f"{held.monitor} {held.best:.4g}"
    waited = f", and that {held.wait} epochs have passed without a better one" if held.wait else ""
    forgotten = f"{held.callback} loses its best {value}{waited}"
    if held.callback == "ModelCheckpoint":
        return (
            f"{forgotten}: after a restart it replaces {held.path} by a model with {taken.best:.4g}"
        )
    return f"{forgotten}: after a restart it takes {taken.best:.4g} for the best"


def has_saved(run: Recording, path: str) -> bool:
    """Tells whether something was saved to a path of a callback, or under its name in a folder below.

    Keras 2 gives all workers but the first a folder of their own there, and deletes it.
    """
    folder, name = os.path.split(run.absolute(path.partition("{")[0] + "{"))
    start = name.removesuffix("{")
    saved = [os.path.split(run.absolute(each.path)) for each in run.of(Saved)]
    return any(
        f"{place}{os.sep}".startswith(f"{folder}{os.sep}") and base.startswith(start)
        for place, base in saved
    )


def is_known(state: CallbackState) -> bool:
    return state.best is not None and math.isfinite(state.best)


def is_worse(taken: CallbackState, held: CallbackState) -> bool:
    one, other = taken.best or 0.0, held.best or 0.0
    return one > other if held.smaller else one < other


def replaces_file(run: Recording, state: CallbackState) -> bool:
    return bool(saves_to(run, run.absolute(state.path)))
