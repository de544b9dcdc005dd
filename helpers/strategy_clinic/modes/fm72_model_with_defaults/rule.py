"""Checks fm72: a loaded model has other settings than the one that was saved, since its class does not describe them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from ...examiner.blame import functions_named, innermost, nodes_of_file, returns_in
from ...examiner.findings import Finding, Location, Note, Text
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
from ...observer.model_settings import MOST_MODELS

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


@rule("fm72", explains_divergence=False)
def loaded_with_defaults(recording: Recording) -> Steps:
    for load in recording.of(ModelSettings):
        save = last_save(recording, load) if load.loaded else None
        changed = [*changed_settings(save, load)] if save else []
        for one, other in changed[:1]:
            kind = innermost(one.constructor, ast.ClassDef)
            of_class = "" if one.layer == getattr(kind, "name", "") else f" of {one.layer}"
            yield observed(
                "fm72",
                recording,
                (line_to_change(one.constructor), *load.location),
                f"the file does not describe {one.name}{of_class}: the model is loaded with {other.value} instead of {one.value}",
                line_of(load.location, "a load"),
                " makes a model with this setting, and it stays so to the end",
                fix=WRITE.format(one.name),
            )


@rule_of_runs("fm72", explains_divergence=False)
def loaded_otherwise(runs: Runs) -> Steps:
    """Checks what the file of a model makes, if no restarted program loads it: that may set again what the file lacks."""
    loads = {
        each.absolute(load.path)
        for each in runs.recordings
        if each not in runs.whole
        for load in each.of(Loaded)
    }
    for run in runs.whole:
        yield from (
            told_otherwise(run, each) for each in run.of(LoadedOtherwise) if each.path not in loads
        )
        yield from (told_failed(run, each) for each in run.of(LoadFailed) if each.path not in loads)


def told_otherwise(run: Recording, load: LoadedOtherwise) -> Finding | Note:
    answers = f"the same weights, and answers {load.loaded:.4g} instead of {load.saved:.4g} for the same input"
    saved_at = f"{name_of(load)}, saved at ", Location(load.location)
    if not load.settings:
        return Note(Text(*saved_at, f", is loaded with {answers}; why was not found"))
    first, *_ = load.settings
    constructor, name = first.setting.constructor, first.setting.name
    is_other = first.now != first.setting.value
    now = f"{first.now} instead of {first.setting.value}" if is_other else f"another {name}"
    return observed(
        "fm72",
        run,
        (line_to_change(constructor), *load.location),
        f"the file lacks {in_words(load)}: what is loaded from it has {answers}",
        *saved_at,
        f", is loaded with {now}; with what was saved, it answers as the saved model",
        fix=WRITE.format(name) if name in arguments_of(constructor) else KEEP,
    )


def in_words(load: LoadedOtherwise) -> str:
    *others, last = [each.setting.name for each in load.settings]
    return f"{', '.join(others)} and {last}" if others else last


def told_failed(run: Recording, failed: LoadFailed) -> Finding | Note:
    words = f"cannot be loaded with the program's own classes: {failed.error}"
    saved_at = f"{name_of(failed)}, saved at ", Location(failed.location)
    if failed.constructor is None:
        return Note(Text(*saved_at, f", {words}"))
    return observed(
        "fm72",
        run,
        (failed.constructor, *failed.location),
        f"{name_of(failed)} {words}",
        "`load_model` of what is saved at ",
        *saved_at[1:],
        " raises this",
        fix=TAKE,
    )


def name_of(event: LoadedOtherwise | LoadFailed) -> str:
    return Path(event.path).name


def arguments_of(constructor: Frame) -> set[str]:
    functions = nodes_of_file(constructor.path, ast.FunctionDef)
    return {
        argument.arg
        for each in functions
        if constructor.line in (each.lineno, *(one.lineno for one in each.decorator_list))
        for argument in (*each.args.args, *each.args.kwonlyargs)
    }


def changed_settings(save: ModelSettings, load: ModelSettings) -> Iterator[tuple[Setting, Setting]]:
    """Yields what a load has made of settings, if the models have the same layers, or the same losses and metrics."""
    for saved, loaded in ((save.settings, load.settings), (save.compiled, load.compiled)):
        if [*map(place_of, saved)] == [*map(place_of, loaded)]:
            yield from (pair for pair in zip(saved, loaded) if pair[0].value != pair[1].value)


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


def place_of(setting: Setting) -> tuple[str, str, Frame]:
    return setting.layer, setting.name, setting.constructor


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
