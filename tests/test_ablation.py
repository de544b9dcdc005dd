"""What each rule is good for: every rule is left out once, tells when it says something, and comes back in its place."""

import ablation
import pytest
import score_folder
from recorded import LINE, run, strategy, variable
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs, mode_rules
from strategy_clinic.observer.events import Owner, VariableWritten

RULES = mode_rules()
FIRST = [
    next(part for part in ablation.parts_of(RULES) if part[0] == field) for field in ablation.FIELDS
]
# Several replicas write to a variable that no strategy distributes.
OUTSIDE = run(strategy(), variable(1, copies=0), VariableWritten(LINE, 1, Owner.USER, 2))


def state():
    return [list(getattr(RULES, field)) for field in ablation.FIELDS]


def test_every_rule_is_a_part_with_a_name_of_its_own():
    parts = ablation.parts_of(RULES)
    assert len(parts) == sum(len(getattr(RULES, field)) for field in ablation.FIELDS)
    assert all(ablation.name_of(RULES, part).split() for part in parts)


@pytest.mark.parametrize("part", FIRST, ids=lambda part: part[0])
def test_a_rule_is_left_out_and_comes_back_in_its_place(part):
    before, each = state(), getattr(RULES, part[0])[part[1]]
    with ablation.without(RULES, part):
        kept = getattr(RULES, part[0])
        assert each not in (kept.values() if isinstance(kept, dict) else kept)
        assert state() != before
    assert state() == before


def test_a_rule_tells_when_it_says_something():
    before, used = state(), []
    with ablation.told(RULES, used.append):
        findings = diagnose(Runs([OUTSIDE])).findings
    assert [each.mode for each in findings] == ["fm23"]
    assert {RULES.rules[key].mode for _, key in used} == {"fm23"}
    assert state() == before
    with ablation.without(RULES, used[0]):
        assert diagnose(Runs([OUTSIDE])).findings == []


def test_what_a_rule_changes_is_counted(monkeypatch, tmp_path):
    fault = score_folder.Fault("outside", ["fm23"], [], [])
    variant = score_folder.Variant(tmp_path, ("train.py",), False, fault)

    def scored(*_):
        findings = tuple(diagnose(Runs([OUTSIDE])).findings)
        return score_folder.Score(variant, findings, (False,) * len(findings), "finished")

    monkeypatch.setattr(ablation, "score_of", scored)
    found, use = [], (variant, tmp_path)
    with ablation.told(RULES, found.append):
        whole = {use: scored()}
    counts = ablation.ablated(RULES, found[0], [use], whole)
    assert counts == "says something of   1, matters for   1  -1 named"
    monkeypatch.setattr(ablation, "score_of", lambda *_: None)
    assert ablation.ablated(RULES, found[0], [use], whole).endswith("1 ask for other runs")
