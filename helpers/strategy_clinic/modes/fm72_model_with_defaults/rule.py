"""Checks fm72: a loaded model has other settings than the one that was saved, since its class does not describe them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ...examiner.blame import function_defined, functions_named, innermost, returns_in
from ...examiner.findings import Finding, Location, Note, Text, listed
from ...examiner.recording import Recording
from ...examiner.rule import Runs, Steps, line_of, observed, rule, rule_of_runs
from ...observer.events import (
    Frame,
    Loaded,
    LoadedOtherwise,
    LoadFailed,
    ModelSettings,
    Setting,
)
from ...observer.model_settings import MOST_MODELS, changed_settings

DESCRIBES = "get_config"
WRITE = 'return the argument in `get_config` of the class, too: `{{**super().get_config(), "{0}": self.{0}}}`'
KEEP = (
    "make it a weight, which the file has: `self.add_weight(shape=…, trainable=False)` in `build`, and `assign`; or let the "
    "constructor take it as an argument, and return it in `get_config`"
)
TAKE = (
    "let the constructor take `**kwargs` and pass them on, `super().__init__(**kwargs)`, and return its own arguments in "
    "`get_config`"
)
CANNOT = "cannot be loaded with the program's own classes: {}"
Kind = TypeVar("Kind", LoadedOtherwise, LoadFailed)


@rule("fm72", explains_divergence=False)
def loaded_with_defaults(recording: Recording) -> Steps:
    for load in recording.of(ModelSettings):
        save = last_save(recording, load) if load.loaded else None
        pairs = [(save.settings, load.settings), (save.compiled, load.compiled)] if save else []
        changed = [each for saved, now in pairs for each in changed_settings(saved, now)]
        for one, other in changed[:1]:
            yield observed(
                "fm72",
                recording,
                (line_to_change(one.constructor), *load.location),
                f"the file does not describe {named(one)}: the model is loaded with {other.value} instead of {one.value}",
                line_of(load.location, "a load"),
                " makes a model with this setting, and it stays so to the end",
                fix=WRITE.format(one.name),
            )


@rule_of_runs("fm72", explains_divergence=False)
def loaded_otherwise(runs: Runs) -> Steps:
    """Checks what the file of a model makes, if no restarted program loads it: that may set again what the file lacks."""
    for run, load in loaded_at_end(runs, LoadedOtherwise):
        if load.settings:
            yield told_otherwise(run, load)
    for run, failed in loaded_at_end(runs, LoadFailed):
        if failed.constructor:
            yield told_failed(run, failed, failed.constructor)


@rule_of_runs("fm72", explains_divergence=False, last=True)
def without_reason(runs: Runs) -> Steps:
    """Tells of files that are loaded otherwise, or not at all, where no finding may be the reason."""
    for _, load in loaded_at_end(runs, LoadedOtherwise):
        if not load.settings:
            yield Note(Text(*saved_at(load), f" is loaded with {answers(load)}; why was not found"))
    for _, failed in loaded_at_end(runs, LoadFailed):
        if not failed.constructor:
            yield Note(Text(*saved_at(failed), f" {CANNOT.format(failed.error)}"))


def loaded_at_end(runs: Runs, kind: type[Kind]) -> Iterator[tuple[Recording, Kind]]:
    """Yields what was loaded when a program had ended, but for files that a restarted program loads."""
    again = [each for each in runs.recordings if each not in runs.whole]
    known = {each.absolute(load.path) for each in again for load in each.of(Loaded)}
    yield from (
        (run, each) for run in runs.whole for each in run.of(kind) if each.path not in known
    )


def told_otherwise(run: Recording, load: LoadedOtherwise) -> Finding:
    first, *_ = load.settings
    constructor, name = first.setting.constructor, first.setting.name
    is_other = first.now != first.setting.value
    now = f"{first.now} instead of {first.setting.value}" if is_other else f"another {name}"
    lacking = listed([named(each.setting) for each in load.settings])
    proof = "; with what was saved, it answers as the saved model" if load.are_reason else ""
    return observed(
        "fm72",
        run,
        (line_to_change(constructor), *load.location),
        f"the file lacks {lacking}: what is loaded from it has {answers(load)}",
        *saved_at(load),
        f" is loaded with {now}{proof}",
        fix=WRITE.format(name) if name in parameters_of(constructor) else KEEP,
    )


def answers(load: LoadedOtherwise) -> str:
    values = f"{load.loaded:.4g} instead of {load.saved:.4g}"
    return f"the same weights, and answers {values} for the same input"


def saved_at(event: LoadedOtherwise | LoadFailed) -> tuple[str | Location, ...]:
    return f"{Path(event.path).name}, saved at ", Location(event.location), ","


def named(setting: Setting) -> str:
    """Returns the name of a setting, with the class of its layer if another class makes this."""
    kind = innermost(setting.constructor, ast.ClassDef)
    is_own = setting.layer == getattr(kind, "name", "")
    return setting.name if is_own else f"{setting.name} of {setting.layer}"


def told_failed(run: Recording, failed: LoadFailed, constructor: Frame) -> Finding:
    return observed(
        "fm72",
        run,
        (constructor, *failed.location),
        f"{Path(failed.path).name} {CANNOT.format(failed.error)}",
        *saved_at(failed),
        " was loaded once more at the end",
        fix=TAKE,
    )


def parameters_of(constructor: Frame) -> set[str]:
    function = function_defined(constructor)
    parameters = [*function.args.args, *function.args.kwonlyargs] if function else []
    return {each.arg for each in parameters}


def last_save(recording: Recording, load: ModelSettings) -> ModelSettings | None:
    """Returns the last save of the loaded file."""
    path, earlier = recording.absolute(load.path), saves_in(recording.before)
    own = [each for each in saves_in(recording) if each.before < load.before]
    if len(own) < load.before or len(earlier) >= MOST_MODELS:
        return None  # a later save may have other settings
    same = [each for each in (*earlier, *own) if recording.absolute(each.path) == path]
    return same[-1] if same else None


def saves_in(run: Recording | None) -> list[ModelSettings]:
    return [each for each in run.of(ModelSettings) if not each.loaded] if run else []


def line_to_change(constructor: Frame) -> Frame:
    """Returns the line that writes out what describes an object of a class, or else that of the method, or of the class."""
    kind = innermost(constructor, ast.ClassDef)
    if kind is None:
        return constructor
    described = functions_named(kind.body, DESCRIBES)
    returned = [each for function in described for each in returns_in(function)]
    written = [each.lineno for each in returned if isinstance(each.value, ast.Dict)]
    lines = [*written, *(each.lineno for each in described), kind.lineno]
    return constructor._replace(line=lines[0])
