"""The engine, with rules that are made here: what it asks for, what it keeps, and how it ends."""

import pytest
from recorded import LINE, OTHER, answering, ended, run, updated, variable
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner import engine
from strategy_clinic.examiner.divergence import effect_of
from strategy_clinic.examiner.findings import Evidence, FollowUp, ResetVariable, ShowMeans
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import (
    ModeRules,
    Runs,
    mode_rules,
    observed,
    reclassify,
    rule,
    rule_of_runs,
)
from strategy_clinic.observer.events import ExceptionRaised, Frame, Outcome
from strategy_clinic.triage import known_errors


def trained(value, **fields):
    return run(variable(1), updated(), ended({1: [value]}), **fields)


def asks(change, mode="one"):
    """A rule that finds something if a change has an effect."""

    @rule(mode)
    def check(recording):
        effect = yield from effect_of(FollowUp(recording, change, "with a change"))
        if effect:
            yield observed(mode, recording, LINE, "it has an effect")

    return check


def diagnosed(runs, run_again=None, *rules):
    return engine.diagnose(Runs(runs), run_again, ModeRules(rules, {}, ()))


def test_nothing_is_said_of_nothing():
    assert engine.diagnose(Runs([])).findings == []
    assert engine.diagnose(Runs([run()])).findings == []


def test_equal_follow_ups_are_run_once():
    again = answering(ResetVariable=trained(2.0), same=trained(1.0))
    rules = asks(ResetVariable(1)), asks(ResetVariable(1), "other")
    found = diagnosed([trained(1.0)], again, *rules)
    assert [finding.mode for finding in found.findings] == ["one", "other"]
    assert again.asked == [ResetVariable(1), None]


def test_a_program_that_does_not_repeat_itself_is_asked_no_more():
    again = answering(ResetVariable=trained(2.0), same=trained(3.0))
    rules = asks(ResetVariable(1)), asks(ResetVariable(2))
    found = diagnosed([trained(1.0)], again, *rules)
    assert (found.findings, found.unseen) == ([], [engine.NOT_REPEATED])
    assert again.asked == [ResetVariable(1), None]


@pytest.mark.parametrize(
    "fields, asked",
    [
        ({}, 1),
        ({"role": Role.COMPARED}, 0),
        ({"role": Role.TASK}, 0),
        ({"outcome": Outcome.STOPPED}, 0),
        ({"role": Role.RESTARTED, "outcome": Outcome.STOPPED}, 1),
    ],
    ids=["watched", "compared", "a task", "not finished", "restarted"],
)
def test_which_recordings_can_be_made_again(fields, asked):
    again = answering(ResetVariable=trained(1.0))
    diagnosed([trained(1.0, **fields)], again, asks(ResetVariable(1)))
    assert len(again.asked) == asked


def test_an_error_of_a_rule_loses_nothing_that_others_find():
    @rule("second")
    def finds(recording):
        yield observed("second", recording, OTHER, "it is found, too")

    @rule("third")
    def refuses(recording):
        raise UserError("the disk is full")
        yield

    @rule("first")
    def fails(recording):
        yield observed("first", recording, LINE, "it is found")
        raise IndexError("list index out of range")

    found = diagnosed([run()], None, fails, finds)
    assert [finding.mode for finding in found.findings] == ["first", "second"]
    assert found.unseen == [
        "not everything was looked for (first: IndexError: list index out of range)"
    ]
    with pytest.raises(UserError, match="disk"):
        diagnosed([run()], None, refuses)


def test_ctrl_c_ends_the_runs_and_not_the_rules():
    def interrupted(follow_up):
        asked.append(follow_up.change)
        raise KeyboardInterrupt

    @rule("sure")
    def certain(recording):
        yield observed("sure", recording, LINE, "it is so")

    asked = []
    found = diagnosed([trained(1.0)], interrupted, asks(ShowMeans()), asks(None), certain)
    assert (found.stopped, asked) == (True, [ShowMeans()])
    assert [finding.mode for finding in found.findings] == ["sure"]


def test_of_findings_of_one_mode_on_one_line_the_first_stays():
    @rule("one")
    def check(recording):
        for location, message in ((LINE, "first"), (LINE, "second"), (OTHER, "elsewhere")):
            yield observed("one", recording, location, message)

    assert [str(each.message) for each in diagnosed([run()], None, check).findings] == [
        "first",
        "elsewhere",
    ]


def test_a_rule_of_runs_gets_all_of_them():
    @rule_of_runs("one")
    def check(runs):
        yield observed("one", runs.recordings[1], LINE, f"{len(runs.recordings)} runs")

    (finding,) = diagnosed([run(), run(devices=4)], None, check).findings
    assert (str(finding.message), finding.devices) == ("2 runs", (4,))


# Exceptions

WORDS = "ValueError: No gradients provided for any variable."


def raised(text=WORDS, traced=()):
    return run(ExceptionRaised(LINE, "ValueError", text, traced), outcome=Outcome.RAISED)


def test_an_exception_is_named_by_triage_and_comes_first():
    @rule("one")
    def check(recording):
        yield observed("one", recording, LINE, "something else")

    first, second = diagnosed([raised()], None, check).findings
    assert (first.evidence, first.line, second.mode) == (Evidence.RAISED, 7, "one")
    assert str(first.message) == WORDS
    assert str(first.proof) == "raised in a run without a strategy"


def test_an_exception_that_is_of_no_mode():
    assert diagnosed([raised("ValueError: something else")]).findings == []


@pytest.mark.parametrize("keras, count", [("3.6.0", 1), ("3.15.1", 0)])
def test_an_error_that_the_installed_release_is_known_for_is_a_note(monkeypatch, keras, count):
    monkeypatch.setattr(known_errors, "version_of", {"keras": keras}.get)
    words = "AttributeError: 'ResourceVariable' object has no attribute 'overwrite_with_gradient'"
    found = diagnosed([raised(words), raised(words)])
    assert found.findings == [] and len(found.notes) == count
    assert all("install Keras 3.7.0 or newer" in note for note in found.notes)


def test_what_triage_advises_on_an_error_of_no_mode_is_a_note():
    words = "ValueError: Shapes must be equal rank, but are 1 and 0 for AddN of mse/weighted_loss"
    (note,) = diagnosed([raised(words), raised(words)]).notes
    assert note.startswith("the error looks like a loss that is not reduced: `compiled_loss` adds")
    assert diagnosed([raised()]).notes == []  # it is of a mode


def test_a_rule_corrects_what_triage_names():
    mode = diagnosed([raised()]).findings[0].mode
    for corrected in ("another", None):
        corrects = reclassify(mode)(lambda run, mode, raised, stack: corrected)  # noqa: B023
        found = engine.diagnose(Runs([raised()]), None, ModeRules((), {}, (corrects,))).findings
        assert [finding.mode for finding in found] == ([corrected] if corrected else [])


def test_the_line_to_blame_is_the_rules_choice():
    mode = diagnosed([raised()]).findings[0].mode
    for chosen, line in ((OTHER, 20), ((), 7)):
        rules = ModeRules((), {mode: lambda recording, stack: chosen}, ())  # noqa: B023
        (finding,) = engine.diagnose(Runs([raised()]), None, rules).findings
        assert finding.line == line


@pytest.mark.parametrize("stack", [(), (Frame("/gone/train.py", 7, "main"),)])
def test_an_exception_may_have_no_line_that_can_be_read(stack):
    raised = ExceptionRaised(stack, "ValueError", "ValueError: no", ())
    recording, rules = run(raised), mode_rules()
    for choose in rules.blame.values():
        assert {*choose(recording, stack)} <= {*stack}
    for each in rules.reclassifications:
        for mode in each.modes:
            other = each.mode_of(recording, mode, raised, stack)
            assert other is None or other.startswith("fm")


def test_lines_of_a_traced_function_are_further_in():
    step = Frame("/program/train.py", 31, "step")
    (finding,) = diagnosed([raised(traced=(step, *LINE))]).findings
    assert finding.location.frames == (step, *LINE)


# What is told early, and what is said last


def test_a_last_rule_is_silent_where_a_finding_may_be_the_reason():
    """A number that is printed differs through a fault of the training, and not through a file that is lost."""

    def speaks(mode, explains, last=False):
        check = rule_of_runs(mode, explains_divergence=explains, last=last)
        return check(lambda runs: iter([observed(mode, runs.recordings[0], LINE, mode)]))

    def said(*rules):
        return [finding.mode for finding in diagnosed([run()], None, *rules).findings]

    printed, lost = speaks("printed", True, last=True), speaks("lost", False, last=True)
    assert said(printed, speaks("loss", True)) == ["loss"]
    assert said(printed, speaks("file", False)) == ["file", "printed"]
    assert said(lost, speaks("file", False)) == ["file"]
    assert said(lost, printed) == ["lost", "printed"]
    assert said(printed, lost) == ["printed"]


def test_findings_are_told_when_they_are_known():
    told = []
    check = rule("one")(lambda recording: iter([observed("one", recording, LINE, "it")]))
    rules = ModeRules([check], {}, ())
    found = engine.diagnose(Runs([run()]), rules=rules, tell=told.append).findings
    assert told == found != []


def test_what_is_told_early_needs_no_restart():
    rules = mode_rules()
    early = rules.of_these_runs
    assert early.rules and all(each.explains_divergence and not each.last for each in early.rules)
    assert (early.blame, early.namings) == (rules.blame, rules.namings)


def test_what_waits_for_an_answer_is_not_told_early(monkeypatch):
    """Without the answer a rule may find what it does not find with it."""

    @rule("early")
    def finds(recording):
        yield observed("early", recording, LINE, "it is known")

    @rule("late")
    def asks_first(recording):
        again = yield FollowUp(recording, None, "once more")
        if again is None:
            yield observed("late", recording, LINE, "nobody knows")

    monkeypatch.setattr(engine.rule, "mode_rules", lambda: ModeRules([asks_first, finds], {}, ()))
    assert [each.mode for each in engine.known_so_far(Runs([run()]))] == ["early"]


# The rules of the modes


def test_every_rule_is_of_the_mode_in_whose_folder_it_is():
    from strategy_clinic.examiner.rule import (
        Advice,
        Blame,
        Reclassification,
        Rule,
        modules_of_modes,
    )
    from strategy_clinic.examiner.suspects import Suspect

    kinds = Advice | Rule | Blame | Reclassification | Suspect
    for module in modules_of_modes("rule"):
        mode = module.__name__.split(".")[-2].split("_")[0]
        things = vars(module).values()
        made = [each for each in things if isinstance(each, kinds)]
        assert made, module.__name__
        for each in made:
            assert mode in (each.modes if isinstance(each, Reclassification) else (each.mode,))


def test_the_rules_of_all_modes_are_loaded():
    from strategy_clinic.base.files import PACKAGE

    rules = mode_rules()
    modes = {each.mode for each in [*rules.rules, *rules.suspects]}
    modes |= rules.blame.keys() | rules.advice.keys()
    assert modes == {path.parent.name.split("_")[0] for path in PACKAGE.glob("modes/*/rule.py")}
