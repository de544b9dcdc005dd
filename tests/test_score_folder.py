"""The score of programs that were written without the examiner, on a folder with one small program."""

import ast
from dataclasses import replace

import pytest
import recordings
import score_folder
import score_repairs
from conftest import changed
from recorded import run
from strategy_clinic.base.files import ROOT
from strategy_clinic.examiner.findings import Evidence, Finding, Location, Text
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.observer.events import Frame, Outcome

PROGRAM = """\
import tensorflow as tf

BATCH = 8
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    weight = tf.Variable([1.0, 2.0, 3.0])
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build([weight])


def step(batch):
    with tf.GradientTape() as tape:
        errors = tf.square(tf.tensordot(batch, weight, 1) - 1.0)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    return loss


@tf.function
def train(batch):
    return strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)


numbers = tf.random.stateless_normal((32, 3), seed=(1, 2))
for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(numbers).batch(BATCH)):
    print(float(train(batch)))
"""

FAULTS = """\
command = ["train.py"]

[[fault]]
name = "mean"
mode = ["fm37"]
guilty = [["train.py", "loss = tf.reduce_mean(errors)"]]
edits = [["train.py", "tf.nn.compute_average_loss(errors, global_batch_size=BATCH)", "tf.reduce_mean(errors)"]]

[[fault]]
name = "reduce"
mode = ["fm02"]
guilty = [["train.py", "loss = strategy.reduce("]]
edits = [["train.py", "    return loss\\n", "    loss = strategy.reduce('SUM', loss, axis=None)\\n    return loss\\n"]]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "programs" / "small").mkdir(parents=True)
    (tmp_path / "programs" / "small" / "train.py").write_text(PROGRAM)
    (tmp_path / "programs" / "small" / "faults.toml").write_text(FAULTS)
    return tmp_path / "programs"


def test_a_program_comes_with_each_of_its_faults(folder, tmp_path):
    correct, *broken = score_folder.variants(folder)
    assert correct.name == "small correct" and correct.modes == []
    assert [(each.name, each.modes) for each in broken] == [
        ("small mean", ["fm37"]),
        ("small reduce", ["fm02"]),
    ]
    assert (correct.lay_out(tmp_path / "as it is") / "train.py").read_text() == PROGRAM
    for each in broken:
        text = (each.lay_out(tmp_path / each.name) / "train.py").read_text()
        ast.parse(text)
        assert text != PROGRAM


def test_what_fits_has_no_problems(folder):
    assert score_folder.problems(folder) == []


@pytest.mark.parametrize(
    "name, old, new, told",
    [
        (
            "train.py",
            "BATCH = 8\n",
            "# tf.nn.compute_average_loss(errors, global_batch_size=BATCH)\nBATCH = 8\n",
            "small mean: 2 times in train.py, not once",
        ),
        ("faults.toml", '"tf.nn.', '"tf.nnn.', "small mean: 0 times in train.py"),
        ("faults.toml", '"loss = tf', '"lost = tf', "small mean: no line of train.py begins with"),
        (
            "faults.toml",
            '"tf.reduce_mean(errors)"]]',
            '"tf.reduce_mean(errors)("]]',
            "was never closed",
        ),
        ("faults.toml", 'name = "reduce"', 'name = "mean"', "a name is given to two faults"),
        ("faults.toml", 'name = "reduce"\n', "", "missing 1 required"),
        ("faults.toml", 'command = ["train.py"]', "", "command"),
    ],
)
def test_what_does_not_fit_is_said(folder, name, old, new, told):
    changed(folder / "small" / name, old, new, 1)
    (problem,) = score_folder.problems(folder)
    assert told in problem


def test_a_folder_without_programs_is_said(tmp_path):
    assert score_folder.problems(tmp_path) == [f"no program with faults.toml in {tmp_path}"]


def finding(mode, line, **fields):
    location = Location((Frame("train.py", line, "step"),))
    return Finding(mode, location, Evidence.OBSERVED, Text(), Text(), **fields)


def scored(other, *findings, ended="finished", runs=(), notes=()):
    on_lines = tuple(each.line == 14 for each in findings)
    return score_folder.Score(other, findings, on_lines, ended, runs, notes)


def test_words_and_totals(folder):
    correct, broken, _ = score_folder.variants(folder)
    right, near, other = finding("fm37", 14), finding("fm37", 13), finding("fm23", 14)
    said = ("steps of another length (fm37)", "so it does (fm26)")
    scores = {
        "correct": scored(correct, notes=said[1:]),
        "FALSE POSITIVE": scored(correct, other),
        "ENDED raised": scored(correct, ended="raised"),
        "on the line": scored(broken, right, notes=said),
        "on the line, 1 false": scored(broken, right, other),
        "on the line, not first, 2 false": scored(broken, other, right, finding("fm23", 3)),
        "named": scored(broken, near),
        "named, 1 false": scored(broken, near, other),
        "in a note": scored(broken, notes=said),
        "missed": scored(broken, other, notes=said[1:]),
    }
    assert [each.word for each in scores.values()] == list(scores)
    told = score_folder.totals(list(scores.values()))
    assert told == (
        "5 of 7 faults named (29 to 96 %); 3 of 7 on the line (10 to 82 %); 4 likeliest first; "
        "5 false findings beside, in 4 programs; 5 of 11 findings right (17 to 77 %); "
        "1 of 3 correct accused (1 to 91 %); notes name 1 more, and a mode in 1 of 3 correct"
    )
    assert "fm23 at train.py:14" in score_folder.line_of(scores["missed"])


def test_a_mode_that_is_an_error_of_keras_is_named_like_any_other(folder):
    correct, broken, _ = score_folder.variants(folder)
    fault = replace(broken.fault, mode=["fm50"])
    planted = replace(broken, fault=fault)
    assert scored(planted, finding("fm50", 14, by_framework=True)).word == "on the line"
    assert scored(planted, finding("framework", 14, by_framework=True)).word == "missed"
    assert scored(correct, finding("fm50", 14, by_framework=True)).word == "FALSE POSITIVE"


@pytest.mark.parametrize(
    "begins, line, expected",
    [
        ("total = add(", 3, True),
        ("total = add(", 5, True),  # the last line of the same call
        ("total = add(", 6, False),
        ("for each in", 7, True),
        ("for each in", 8, False),  # what a statement holds is another one
        ("1,", 3, True),
    ],
)
def test_any_line_of_a_guilty_statement_counts(folder, tmp_path, begins, line, expected):
    text = (
        "def add(*all): ...\n\ntotal = add(\n    1,\n)\nlast = 1\nfor each in []:\n    last = 2\n"
    )
    (tmp_path / "train.py").write_text(text)
    variant = score_folder.variants(folder)[1]
    fault = replace(variant.fault, guilty=[["train.py", begins]])
    location = Location((Frame(str(tmp_path / "train.py"), line, "step"),))
    found = replace(finding("fm37", 1), location=location)
    assert score_folder.is_guilty(found, replace(variant, fault=fault), tmp_path) is expected


def test_a_line_of_a_notebook_is_guilty_by_its_text(folder, tmp_path):
    variant = score_folder.variants(folder)[1]
    guilty = [["train.ipynb", "another"], ["train.ipynb", "loss = tf"]]
    fault = replace(variant.fault, guilty=guilty)
    frames = (Frame(str(tmp_path / "train.ipynb"), 2, "step"),)
    for code, expected in (("loss = tf.reduce_mean(errors)", True), ("loss = 1", False)):
        found = replace(finding("fm37", 1), location=Location(frames, 3, code))
        assert score_folder.is_guilty(found, replace(variant, fault=fault), tmp_path) is expected


# How a fault shows


def told(role, number, outcome=Outcome.FINISHED, **fields):
    return run(role=role, output=f"step 1 0.5\nresult {number}\n[end]", outcome=outcome, **fields)


def runs_of(*numbers, **fields):
    roles = Role.WATCHED, Role.COMPARED, Role.RESTARTED
    return tuple(told(role, number, **fields) for role, number in zip(roles, numbers))


@pytest.mark.parametrize(
    "runs, expected",
    [
        (runs_of("1.25", "1.25", "1.25"), []),
        (runs_of("1.2501", "1.25", "1.2502"), []),  # as rounding makes them
        (runs_of("1.26", "1.26", "1.26"), ["result"]),
        (runs_of("1.25", "1.26", "1.25"), ["devices"]),
        (runs_of("1.25", "1.25", "1.26"), ["restart"]),
        (runs_of("nan", "1.25"), ["result", "devices"]),
        (runs_of("nan", "nan"), ["result"]),
        (runs_of("1.25", "1.25", outcome=Outcome.RAISED), ["raises"]),
        ((*runs_of("1.25"), told(Role.RESTARTED, "9.0", moment=Moment.DURING)), []),
        ((*runs_of("1.25"), told(Role.MATCHED, "9.0")), []),
    ],
)
def test_how_a_fault_shows(folder, runs, expected):
    correct, broken, _ = score_folder.variants(folder)
    whole = scored(correct, runs=runs_of("1.25", "1.25", "1.25"))
    assert score_folder.shown(whole, scored(broken, runs=runs)) == expected


def test_what_does_not_show_as_it_should_is_said(folder, capsys):
    correct, broken, _ = score_folder.variants(folder)
    restarted = replace(broken, fault=replace(broken.fault, restart=True))
    well, everywhere = runs_of("1.0", "1.0", "1.0"), runs_of("2.0", "2.0", "1.0")
    only_then = runs_of("1.0", "1.0", "2.0")
    scores = [
        scored(correct, runs=well),
        scored(broken, runs=well),
        scored(restarted, runs=only_then),
    ]
    assert score_folder.verified(scores) == ["small mean"]
    assert score_folder.verified([scores[0], scored(restarted, runs=everywhere)]) == ["small mean"]
    assert score_folder.verified([scored(correct, runs=everywhere)]) == ["small correct"]
    assert "small mean                                   nothing  WRONG" in capsys.readouterr().out


# With real runs


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.thorough
def test_a_real_score_and_the_same_again_without_a_run(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(score_folder, "RECORDINGS", tmp_path / "recordings")
    assert score_folder.main([str(folder), "--record"]) == 0
    recorded = capsys.readouterr().out
    assert recorded.splitlines()[-1] == (
        "2 of 2 faults named (16 to 100 %); 2 of 2 on the line (16 to 100 %); 2 likeliest first; "
        "0 false findings beside, in 0 programs; 2 of 2 findings right (16 to 100 %); "
        "0 of 1 correct accused (0 to 98 %)"
    )
    monkeypatch.setattr(recordings, "RecordingSandbox", None)
    assert score_folder.main([str(folder), "--replay"]) == 0
    assert capsys.readouterr().out == recorded
    assert score_folder.main([str(folder), "--replay", "--verify"]) == 0
    assert "small mean                                   result, devices" in capsys.readouterr().out
    changed(folder / "small" / "train.py", "BATCH = 8", "BATCH = 16")
    with pytest.raises(SystemExit, match=r"correct.json.xz is out of date \(program\)"):
        score_folder.main([str(folder), "--replay"])


@pytest.mark.slow
@pytest.mark.thorough  # test_mend repairs others
def test_a_planted_fault_is_repaired(monkeypatch, capsys):
    """The first examination is replayed, and the runs that prove the repair are made."""
    folder = str(ROOT / "tests" / "programs" / "read")
    only = "accumulate_micro mean_of_the_micro_batch"
    monkeypatch.setattr("sys.argv", ["score_repairs.py", "--programs", folder, "--only", only])
    score_repairs.main()
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(only) and told[0].endswith("a repair is proven")
    assert told[-1].startswith("1 of 1 silent findings have a proven repair")
