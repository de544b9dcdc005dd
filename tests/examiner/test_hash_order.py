"""Whether a program that loads a model answers otherwise where strings have other hashes."""

import pytest
from edited_programs import examined
from recorded import LINE, answering, loaded, run, saved, updated
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import FollowUp, OtherHashes
from strategy_clinic.examiner.hash_order import lines_of_hashes
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    Frame,
    Metric,
    MetricsReported,
    ModelAnswered,
    Outcome,
    Sample,
)

HASHED = """\
import model
names = list(set(open("names.txt")))
"""


def answered(norm, line=LINE):
    return ModelAnswered(line, Sample(norm, (norm,)))


def evaluated(loss):
    return MetricsReported(LINE, (Metric("loss", loss),), LINE)


def restarted(*events, output="a 1.25\nb 2.5", **fields):
    killed = run(saved(path="m.keras"), outcome=Outcome.KILLED)
    role = {"role": Role.RESTARTED, "moment": Moment.AFTER, "before": killed}
    return run(loaded(path="m.keras"), *events, output=output, **role, **fields)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Returns a line of a program whose file has the text."""

    def written(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return (Frame(str(path), 2, "<module>"),)

    return written


@pytest.mark.parametrize(
    "mine, theirs, is_found",
    [
        ({"events": [answered(2.0)]}, {"events": [answered(3.0)]}, True),
        ({"events": [evaluated(0.5)]}, {"events": [evaluated(0.75)]}, True),
        ({"output": "it is a cat"}, {"output": "it is a dog"}, True),
        ({"output": "cat 0.5"}, {"output": "cat 0.75"}, True),
        # In another order, and with other last digits.
        ({"output": "cat 0.5\ndog 0.75"}, {"output": "dog 0.75001\ncat 0.5"}, False),
        (
            {"events": [answered(2.0), answered(3.0)]},
            {"events": [answered(3.0), answered(2.0)]},
            False,
        ),
        # There may be more answers than are known, in another order.
        ({"events": [answered(2.0)] * 4}, {"events": [answered(3.0)] * 4}, False),
        ({"output": "took 2.5 s"}, {"output": "took 3.5 s"}, False),
        (
            {"output": "a"},
            {"output": "WARNING: All log messages before absl::InitializeLog() are\na"},
            False,
        ),
    ],
)
def test_what_counts_as_another_answer(program, mine, theirs, is_found):
    line = program(HASHED)

    def made(events=(), **fields):
        return restarted(answered(1.0, line), *events, **fields)

    before = made(**mine)
    diagnosis = diagnose(Runs([before]), answering(OtherHashes=made(**theirs), same=before))
    found = [each for each in diagnosis.findings if each.mode == "fm05"]
    assert [each.line for each in found] == ([2] if is_found else [])


def test_what_does_not_repeat_itself_is_no_finding(program):
    line = program(HASHED)
    runs = [restarted(answered(norm, line)) for norm in (1.0, 2.0, 3.0)]
    assert diagnose(Runs(runs[:1]), answering(OtherHashes=runs[1], same=runs[2])).findings == []


@pytest.mark.parametrize("change", ["trains", "is the only process", "failed"])
def test_no_run_is_made_where_nothing_could_be_said(program, change):
    line = program(HASHED)
    one = restarted(answered(1.0, line), *([updated()] if change == "trains" else []))
    if change == "is the only process":
        one = run(answered(1.0, line))
    if change == "failed":
        one = restarted(answered(1.0, line), outcome=Outcome.RAISED)
    asked = []

    def run_again(follow_up: FollowUp):
        asked.append(follow_up.change)
        return one

    diagnose(Runs([one]), run_again)
    assert OtherHashes() not in asked


@pytest.mark.parametrize(
    "code, is_one",
    [
        ("index = {w: i for i, w in enumerate(set(words))}", True),
        ("index = {w: i for i, w in enumerate({w.lower() for w in words})}", True),
        ("names = {'cat', 'dog'}", True),
        ("bucket = hash(word) % 50", True),
        ("names = sorted(set(words))", False),
        ("count = len({*words})", False),
        ("known = word in {'cat', 'dog'}", False),
    ],
)
def test_which_lines_depend_on_hashes(program, code, is_one):
    line = program(f"\n{code}\n")
    assert [each.line for each in lines_of_hashes(run(answered(1.0, line)))] == [2] * is_one


CHARACTERS = """\
import os
import numpy as np
import tensorflow as tf

text = "the cat sat on the mat"
index = {each: i for i, each in enumerate(set(text))}
x = np.array([[index[each]] for each in text])
if os.path.exists("model.keras"):
    model = tf.keras.models.load_model("model.keras")
else:
    model = tf.keras.Sequential([tf.keras.layers.Embedding(len(index), 4), tf.keras.layers.Flatten()])
    model.compile("sgd", "mse")
    model.fit(x, np.ones((22, 4)), verbose=0)
    model.save("model.keras")
print(model.predict(x[:1], verbose=0))
"""


@pytest.mark.replayed
@pytest.mark.parametrize("order, lines", [("set(text)", [6]), ("sorted(set(text))", [])])
def test_a_program_that_numbers_characters(tmp_path, order, lines):
    program = CHARACTERS.replace("set(text)", order)
    examination = examined(tmp_path, program)
    assert [each.line for each in examination.findings if each.mode == "fm05"] == lines
