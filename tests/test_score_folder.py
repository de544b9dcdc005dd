"""The score of programs that nobody here wrote, on a folder with one small program: what fits, what is counted, and one real run.

Other people's programs lie outside of this repository; `python tools/score_folder.py FOLDER` runs them.
"""

import ast
from dataclasses import replace

import pytest
import score_folder
from conftest import changed
from strategy_clinic.examiner.findings import Evidence, Finding, Location, Text
from strategy_clinic.observer.events import Frame

PROGRAM = """\
# Source: this test. Licence: MIT. Copyright: nobody's. Changed: nothing.
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
[[fault]]
program = "small"
mode = ["fm37"]
guilty = ["loss = tf.reduce_mean(errors)"]
edits = [["tf.nn.compute_average_loss(errors, global_batch_size=BATCH)", "tf.reduce_mean(errors)"]]

[[fault]]
program = "small"
mode = ["fm02"]
guilty = ["loss = strategy.reduce("]
keras = [3]
edits = [["    return loss\\n", "    loss = strategy.reduce('SUM', loss, axis=None)\\n    return loss\\n"]]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.py").write_text(PROGRAM)
    (tmp_path / "faults.toml").write_text(FAULTS)
    return tmp_path


def test_a_program_comes_with_each_of_its_faults(folder):
    correct, *broken = score_folder.programs(folder, 3)
    assert (correct.text, correct.modes, correct.restart) == (PROGRAM, (), True)
    assert [(each.modes, each.guilty) for each in broken] == [
        (("fm37",), (15,)),
        (("fm02",), (17,)),
    ]
    for each in broken:
        ast.parse(each.text)
        assert each.text != PROGRAM
    assert [each.modes for each in score_folder.programs(folder, 2)] == [(), ("fm37",)]


def test_what_fits_has_no_problems(folder):
    assert score_folder.problems(folder) == []


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("small.py", "Source:", "From"),
        ("small.py", "MIT", "GPL"),
        (
            "small.py",
            "BATCH = 8\n",
            "# tf.nn.compute_average_loss(errors, global_batch_size=BATCH)\nBATCH = 8\n",
        ),
        ("faults.toml", '["tf.nn.', '["tf.nnn.'),
        ("faults.toml", 'guilty = ["loss = tf', 'guilty = ["lost = tf'),
        ("faults.toml", '"tf.reduce_mean(errors)"]]', '"tf.reduce_mean(errors"]]'),
    ],
)
def test_what_does_not_fit_is_said(folder, name, old, new):
    changed(folder / name, old, new, 1)
    assert len(score_folder.problems(folder)) == 1


def finding(mode, line, **fields):
    location = Location((Frame("train.py", line, "step"),))
    return Finding(mode, location, Evidence.OBSERVED, Text(), Text(), **fields)


def scored(other, *findings, ended="finished"):
    return score_folder.Score(other, 3, findings, ended, 1.0)


def test_words_and_totals(folder):
    correct, broken, _ = score_folder.programs(folder, 3)
    right, near, other = finding("fm37", 15), finding("fm37", 14), finding("fm23", 15)
    scores = {
        "correct": scored(correct),
        "FALSE POSITIVE": scored(correct, other),
        "ENDED raised": scored(correct, ended="raised"),
        "on the line": scored(broken, right),
        "on the line, 1 false": scored(broken, right, other),
        "on the line, not first, 2 false": scored(broken, other, right, finding("fm23", 3)),
        "named": scored(broken, near),
        "missed": scored(broken, other),
    }
    assert [each.word for each in scores.values()] == list(scores)
    told = score_folder.totals(list(scores.values()))
    assert told == (
        "4 of 5 faults named (28 to 99 %); 3 of 5 on the line (15 to 95 %); 3 likeliest first; "
        "4 false findings beside, in 3 programs; 4 of 9 findings right (14 to 79 %); "
        "1 of 3 correct accused (1 to 91 %)"
    )
    assert "fm23 at line 15" in score_folder.line_of(scores["missed"])


def test_a_finding_that_says_the_program_is_right_names_no_fault(folder):
    _, broken, _ = score_folder.programs(folder, 3)
    by_framework = finding("fm37", 15, by_framework=True)
    assert scored(broken, by_framework).word == "missed"
    planted = replace(broken, modes=("fm37", "framework"))
    assert scored(planted, by_framework).word == "on the line"


@pytest.mark.slow
def test_a_real_score(folder, capsys):
    assert score_folder.main([str(folder)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == (
        "Keras 3: 2 of 2 faults named (16 to 100 %); 2 of 2 on the line (16 to 100 %); 2 likeliest first; "
        "0 false findings beside, in 0 programs; 2 of 2 findings right (16 to 100 %); "
        "0 of 1 correct accused (0 to 98 %)"
    )
