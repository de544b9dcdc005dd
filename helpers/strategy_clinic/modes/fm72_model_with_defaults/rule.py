"""Checks fm72: a loaded model has other settings than the one that was saved, since its class does not describe them."""

import ast
from collections.abc import Iterator

from ...examiner.blame import functions_named, innermost, returns_in
from ...examiner.recording import Recording
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import Frame, ModelSettings, Setting
from ...observer.model_settings import MOST_MODELS

DESCRIBES = "get_config"
WRITE = 'return the argument in `get_config` of the class, too: `{{**super().get_config(), "{0}": self.{0}}}`'


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
