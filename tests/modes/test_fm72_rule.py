"""The examiner's rule for fm72: a model that is loaded with other settings than it was saved with."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, modes, run
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    ChangedSetting,
    FileMoved,
    Frame,
    Loaded,
    LoadedOtherwise,
    LoadFailed,
    ModelSettings,
    Outcome,
    Saved,
    SaveKind,
    Setting,
)
from strategy_clinic.observer.model_settings import MOST_MODELS

CLASSES = """\
class Scaled(Model):
    def __init__(self, factor=1.0):
        self.factor = factor
        self.drop = Dropout(rate)


class Described(Model):
    def __init__(self, factor=1.0):
        self.factor = factor

    def get_config(self):
        return {"factor": 1.0}
"""


@pytest.fixture
def settings(tmp_path):
    """Makes the settings of a model: of its class, and of a layer that this makes."""
    path = tmp_path / "model.py"
    path.write_text(CLASSES)

    def settings(factor, rate="0.5", line=2, name="Scaled"):
        constructor = Frame(str(path), line, "__init__")
        return (
            Setting(name, "factor", factor, constructor),
            Setting("Dropout", "rate", rate, constructor),
        )

    return settings


def saved(settings, before=0, path="m.keras"):
    return ModelSettings(LINE, path, False, settings, before)


def loaded(settings, before=1, path="m.keras"):
    return ModelSettings(OTHER, path, True, settings, before)


def test_a_setting_of_a_class_that_is_made_by_a_call(settings):
    """Its constructor may be a function in no class."""
    save, load = (settings(value, line=20, name="Made") for value in ("3.0", "1.0"))
    assert modes(run(saved(save), loaded(load))) == [("fm72", 20)]


@pytest.mark.parametrize("line, name, blamed", [(2, "Scaled", 1), (8, "Described", 12)])
def test_a_setting_of_the_class(settings, line, name, blamed):
    save, load = (settings(value, line=line, name=name) for value in ("3.0", "1.0"))
    (finding,) = found(run(saved(save), loaded(load)))
    assert (finding.mode, finding.line) == ("fm72", blamed)
    assert str(finding.message).endswith(
        "does not describe factor: the model is loaded with 1.0 instead of 3.0"
    )
    assert "line 20 makes a model" in str(finding.proof)


def test_a_setting_of_a_layer_that_the_class_makes(settings):
    (finding,) = found(run(saved(settings("3.0")), loaded(settings("3.0", rate="0.0"))))
    assert finding.line == 1 and "rate of Dropout" in str(finding.message)


def test_a_setting_of_a_loss(settings):
    """The layers are the same; where the program compiles anew, or loads without, no loss is reported."""
    layers, three, one = settings("2.0"), settings("3.0")[:1], settings("1.0")[:1]
    save = replace(saved(layers), compiled=three)
    load = loaded(layers)
    assert modes(run(save, replace(load, compiled=one))) == [("fm72", 1)]
    assert modes(run(save, replace(load, compiled=three))) == modes(run(save, load)) == []


def test_the_last_save_before_the_load_counts(settings):
    three, one = settings("3.0"), settings("1.0")
    assert modes(run(saved(one), saved(three, 1), loaded(three, 2))) == []
    assert modes(run(saved(three), loaded(three), saved(one, 1))) == []
    assert modes(run(saved(three), saved(one, 1), loaded(three, 2))) == [("fm72", 1)]


def test_a_program_that_is_started_again(settings):
    stopped = run(saved(settings("3.0")), role=Role.STOPPED)
    again = run(loaded(settings("1.0"), 0), role=Role.RESTARTED, before=stopped)
    assert modes(again) == [("fm72", 1)]
    kept = run(loaded(settings("3.0"), 0), role=Role.RESTARTED, before=stopped)
    assert modes(kept) == []


def test_a_file_that_was_renamed(settings):
    save = Saved(LINE, SaveKind.MODEL, "tmp.keras", (), (), (), ())
    events = save, saved(settings("3.0"), path="tmp.keras"), FileMoved(LINE, "tmp.keras", "m.keras")
    assert modes(run(*events, loaded(settings("1.0")))) == [("fm72", 1)]


def test_another_file_or_other_layers(settings):
    save, load = saved(settings("3.0")), loaded(settings("1.0"))
    assert modes(run(save, replace(load, path="other.keras"))) == []
    assert modes(run(save, replace(load, settings=load.settings[:1]))) == []
    assert modes(run(load)) == []


def test_saves_that_are_not_reported_may_have_other_settings(settings):
    save, load = saved(settings("3.0")), loaded(settings("1.0"), MOST_MODELS + 1)
    assert modes(run(save, load)) == []
    stopped = run(*[saved(settings("3.0"), n) for n in range(MOST_MODELS)], role=Role.STOPPED)
    again = run(loaded(settings("1.0"), 0), role=Role.RESTARTED, before=stopped)
    assert modes(again) == []


def test_a_run_that_raised_tells_no_load():
    assert modes(run(outcome=Outcome.RAISED)) == []


# What is loaded once more at the end


def otherwise(*settings, now="1.0"):
    changed = tuple(ChangedSetting(each, now) for each in settings)
    return LoadedOtherwise(LINE, "/program/m.keras", changed, True, 3.0, 1.0)


def test_a_file_that_nobody_loads_lacks_an_argument(settings):
    factor, _ = settings("3.0")
    (finding,) = found(run(otherwise(factor)))
    assert (finding.mode, finding.line) == ("fm72", 1)
    assert "the file lacks factor" in str(finding.message)
    assert "answers 1 instead of 3" in str(finding.message)
    assert "saved at line 7, is loaded with 1.0 instead of 3.0" in str(finding.proof)
    assert "return the argument in `get_config`" in finding.fix


def test_it_lacks_what_is_no_argument(settings):
    factor, _ = settings("an array of shape (2,)")
    names = [replace(factor, name=name) for name in ("matrix", "mean", "std")]
    (finding,) = found(run(otherwise(*names, now=factor.value)))
    assert "lacks matrix, mean and std:" in str(finding.message)
    assert "another matrix" in str(finding.proof) and "make it a weight" in finding.fix


def test_settings_that_nobody_has_tried_are_no_proof(settings):
    factor, _ = settings("3.0")
    proofs = [
        str(found(run(replace(otherwise(factor), are_reason=is_reason)))[0].proof)
        for is_reason in (True, False)
    ]
    assert ["answers as the saved model" in each for each in proofs] == [True, False]


def test_a_file_for_whose_answers_no_reason_was_found():
    diagnosis = diagnose(Runs([run(otherwise())]))
    assert not diagnosis.findings
    assert "answers 1 instead of 3" in str(diagnosis.notes[0])


def test_a_file_that_cannot_be_loaded(settings):
    (factor, _), error = settings("3.0"), "TypeError: Scaled.__init__() got a word"
    failed = LoadFailed(LINE, "/program/m.keras", error, factor.constructor)
    (finding,) = found(run(failed))
    assert (finding.mode, finding.line) == ("fm72", 2) and "**kwargs" in finding.fix
    diagnosis = diagnose(Runs([run(replace(failed, constructor=None))]))
    assert not diagnosis.findings and error in str(diagnosis.notes[0])


def test_a_restarted_program_loads_it(settings):
    factor, _ = settings("3.0")
    load = Loaded(OTHER, "load", "/program/m.keras", (), (), False, 1)
    whole = run(otherwise(factor), LoadFailed(LINE, "/program/m.keras", "", None))
    assert modes(whole, run(load, role=Role.RESTARTED)) == []
    assert modes(whole, run(load, role=Role.COMPARED)) == [("fm72", 1)]
    assert modes(whole, run(replace(load, path="/program/o"), role=Role.RESTARTED)) == [("fm72", 1)]
