"""The examiner's reports and the lines that it blames. No TensorFlow."""

import json
import os
import textwrap
from pathlib import Path

import pytest
from strategy_clinic.examiner.recording import Examination, Finding, Observation, read_facts
from strategy_clinic.examiner.report import serialize
from strategy_clinic.examiner.rules import blame
from strategy_clinic.examiner.runs import plan


@pytest.fixture
def script(tmp_path):
    text = """
    def make(path):
        return Model(path)


    def build(size):
        model = make(size)
        return model


    def main():
        name = "weights"
        model = build(4)
        model.save_weights(name)
        run(lambda: cond(model, build))


    def around(step):
        def train():
            return strategy.run(step)

        train()


    def taught(choice):
        layers = [choice]
        return Model(layers)


    def chosen():
        way = fast
        settings = {"units": 8}
        taught(way)
        load(lambda: make(**settings))


    def outer():
        def mine():
            loss = 1
            return loss

        around(mine)


    def maker(size):
        def inner():
            return read(size)

        return inner


    def loop(each):
        made = maker(each)
        made()


    def settled():
        part = WHOLE
        loop(part)


    def switched():
        flag = True
        loop(flag)
    """
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def frames(script, *lines):
    """Frames as the observer tells them: the innermost first, by a part of their line."""
    texts = Path(script).read_text().splitlines()
    names = {}
    for number, text in enumerate(texts, 1):
        if text.strip().startswith("def "):
            current = text.strip()[4:].split("(")[0]
        names[number] = current if text else ""
    numbers = [next(n for n, text in enumerate(texts, 1) if line in text) for line in lines]
    return [[script, number, names[number]] for number in numbers]


def code(at):
    return blame.code_at(at[0][0], at[0][1])


def test_a_function_that_only_makes_something_is_looked_through(script):
    at = frames(script, "Model(path)", "make(size)")
    assert code(blame.from_factory(at)) == "model = make(size)"


def test_a_value_is_followed_to_its_assignment(script):
    at = frames(script, "save_weights(name)")
    assert code(blame.from_value(at, ("save_weights",))) == 'name = "weights"'
    assert code(blame.from_value(at, ("restore",))) == "model.save_weights(name)"


def test_a_value_is_followed_to_the_caller(script):
    at = frames(script, "make(size)", "build(4)")
    assert code(blame.from_value(at, ("make",))) == "model = build(4)"
    assert (
        code(blame.from_caller(frames(script, "Model(path)", "make(size)", "build(4)")))
        == "model = build(4)"
    )


def test_the_function_that_put_things_together_decides(script):
    at = frames(script, "Model(path)", "make(size)", "build(4)")
    made = frames(script, 'name = "weights"')
    assert code(blame.deciding(at, made)) == "model = build(4)"
    assert blame.deciding(at, []) == tuple(at)


def test_a_condition_is_blamed_for_what_it_leads_to(script):
    at = frames(script, "make(size)", "run(lambda")
    assert "cond(" in code(blame.from_condition(at))


def test_a_step_is_blamed_for_what_it_returns(script):
    at = frames(script, "strategy.run(step)", "    train()", "around(mine)")
    assert code(blame.returned(at)) == "return loss"


def test_what_a_caller_chose_is_followed_to_its_line(script):
    at = frames(script, "Model(layers)", "taught(way)")
    assert code(blame.from_choice(at)) == "way = fast"
    assert code(blame.from_choice(at[:1])) == "return Model(layers)"


def test_what_was_passed_to_a_function_that_has_returned(script):
    at = frames(script, "read(size)", "    made()", "loop(part)")
    assert code(blame.from_choice(at)) == "part = WHOLE"
    assert code(blame.from_choice(at[:1])) == "return read(size)"
    switched = frames(script, "read(size)", "    made()", "loop(flag)")
    assert code(blame.from_choice(switched)) == "return read(size)"


def test_the_same_words_in_the_same_function(script):
    (one,), (other,) = frames(script, "model = make(size)"), frames(script, "model = build(4)")
    assert blame.same_words(one, one) and not blame.same_words(one, other)
    at = frames(script, "return Model(path)", "return Model(layers)")
    assert not blame.same_words(*at)


def test_what_is_written_down_is_followed_to_its_line(script):
    assert code(blame.from_literal(frames(script, "load(lambda"))) == 'settings = {"units": 8}'
    assert code(blame.from_literal(frames(script, "taught(way)"))) == "taught(way)"


def test_a_file_that_has_gone_has_no_lines():
    at = [["/gone/train.py", 3, "main"]]
    assert blame.from_factory(at) == blame.from_caller(at) == tuple(at)
    assert blame.code_at("/gone/train.py", 3) == ""


# Reports


def found_in(script, **options):
    finding = Finding("fm05", ([script, 12, "main"],), "no checkpoint holds it", "observed", (2,))
    runs = [Observation("watched", 2, keras=3, seconds=1.25)]
    return Examination("train.py", runs, **{"findings": [finding], **options})


def test_json_has_the_promised_shape(script):
    told = json.loads(json.dumps(serialize.as_plain_object(found_in(script))))
    assert list(told) == ["program", "runs", "findings"]
    assert told["runs"] == [{"devices": 2, "keras": 3, "ended": "finished", "seconds": 1.2}]
    names = ["mode", "file", "line", "code", "says", "proof", "devices", "fix", "notebook"]
    assert list(told["findings"][0]) == names
    assert told["findings"][0]["code"] == 'name = "weights"'
    assert told["findings"][0]["notebook"] == "notebooks/fm05_untracked_variable.ipynb"


def test_a_person_reads_line_mode_and_fix_first(script, monkeypatch):
    monkeypatch.chdir(os.path.dirname(script))
    lines = serialize.in_words(found_in(script)).splitlines()
    assert lines[0] == "train.py:12  fm05  no checkpoint holds it"
    assert [line.split()[0] for line in lines[2:]] == ["proof", "fix", "notebook"]


def test_sarif_names_the_rule_the_file_and_the_line(script, tmp_path):
    told = serialize.as_sarif(found_in(script), tmp_path)["runs"][0]
    assert [each["id"] for each in told["tool"]["driver"]["rules"]] == ["fm05"]
    place = told["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "train.py"}, "region": {"startLine": 12}}


def test_a_finding_without_a_line_is_told_all_the_same(script, tmp_path):
    nowhere = found_in(script, findings=[Finding("fm37", (), "too large", "compared")])
    assert serialize.in_words(nowhere).startswith("(no line of the program)  fm37  too large")
    assert serialize.as_sarif(nowhere, tmp_path)["runs"][0]["results"][0]["locations"] == []


def test_exit_status(script):
    assert serialize.exit_status(found_in(script)) == 1
    assert serialize.exit_status(found_in(script, findings=[])) == 0
    assert serialize.exit_status(found_in(script, findings=[], failure="raised")) == 3
    assert serialize.exit_status(found_in(script, findings=[], stopped=True)) == 130
    assert serialize.exit_status(found_in(script, stopped=True)) == 1


def test_a_failure_of_its_own_is_told_with_its_last_line():
    raised = {"fact": "raised", "text": "Traceback\nKeyError: 'x'", "error": "KeyError", "at": []}
    run = Observation("watched", 2, (raised,), status=1, ended="raised")
    told = plan.failure_of(Examination("train.py", [run]))
    assert told == "raised with status 1: KeyError: 'x'"


def test_facts_are_read_up_to_where_they_were_cut_off(tmp_path):
    path = tmp_path / "facts"
    path.write_text('{"fact": "started"}\n{"fact": "end')
    assert read_facts(path) == ({"fact": "started"},)
    assert read_facts(tmp_path / "none") == ()
