"""Where a value becomes one number, read in a program's source."""

import pytest
from strategy_clinic.examiner.rules import means

PROGRAM = """\
def mean(losses):
    return tf.reduce_mean(losses)

def pair(real, fake):
    real_loss = mean(real)
    return real_loss, fake

def step(batch):
    with tape:
        errors = model(batch)
        total, other = pair(errors, errors)
        total += sum_of_weights
        scaled = total / 2
    gradients = tape.gradient(scaled, weights)

def plain(batch):
    loss = tf.nn.compute_average_loss(errors)
    gradients = tape.gradient(loss, weights)

def given(loss_of):
    loss = loss_of(errors)

def main():
    choice = tf.reduce_mean
    given(choice)

def none(batch):
    loss = loss + batch
"""

INSIDE = """\
def train(batch):
    def step(part):
        loss = mean(part)
        return tape.gradient(loss, weights)

    return strategy.run(step, args=(batch,))
"""


@pytest.mark.parametrize(
    "frames, line",
    [
        ([(13, "step")], 2),
        ([(17, "plain")], 17),
        ([(21, "given"), (25, "main")], 24),
        ([(28, "none")], 28),
    ],
    ids=["through functions", "here", "chosen", "nowhere"],
)
def test_the_line_that_makes_the_mean(tmp_path, frames, line):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    at = [[str(path), number, name] for number, name in frames]
    assert means.from_mean(at)[0][1] == line


def test_the_step_that_is_given_to_run(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(INSIDE)
    run, gradient = [str(path), 6, "train"], [str(path), 4, "step"]
    assert means.into_step([run], "gradient") == (gradient, run)
    assert means.into_step([gradient, run], "gradient") == (gradient, run)
    assert means.into_step([run], "apply") == (run,)


def test_nothing_comes_from_nothing():
    assert means.from_mean(()) == means.into_step((), "gradient") == ()
