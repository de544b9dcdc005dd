"""Numbers that a program prints, and that depend on the number of devices although the same weights are trained."""

import ast

import pytest
from edited_programs import edited, examined
from recorded import run, stack, strategy, trained, variable
from strategy_clinic.examiner import printed
from strategy_clinic.examiner.divergence import first_divergence
from strategy_clinic.examiner.recording import observer_failures
from strategy_clinic.examiner.rule import Runs

PROGRAM = """\
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
x = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    mean = tf.keras.metrics.Mean()


def replica(x):
    with tf.GradientTape() as tape:
        errors = tf.reduce_mean(tf.square(model(x, training=True) - 1.0), axis=-1)
        loss = tf.nn.compute_average_loss(errors, global_batch_size=8)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    mean.update_state(errors)
    return loss


@tf.function
def train_step(batch):
    losses = strategy.run(replica, (batch,))
    return strategy.reduce("SUM", losses, axis=None)


dataset = tf.data.Dataset.from_tensor_slices(x).batch(8)
for epoch in range(2):
    total = 0.0
    for batch in strategy.experimental_distribute_dataset(dataset):
        total += train_step(batch)
    print(f"Epoch {epoch}: loss {total:.4f} error {mean.result():.4f}")
"""
RETURNS = "    return loss\n"
REDUCES = 'strategy.reduce("SUM", losses, axis=None)'
DROPOUT = ("tf.keras.layers.Dense(2)]", "tf.keras.layers.Dense(2), tf.keras.layers.Dropout(0.3)]")
WRONG = {
    "the sum of means": ([(RETURNS, "    return tf.reduce_mean(errors)\n")], "fm37", REDUCES),
    "the mean of parts": ([("SUM", "MEAN")], "fm39", "strategy.reduce"),
    "the first replica": (
        [(REDUCES, "strategy.experimental_local_results(losses)[0]")],
        "fm39",
        "strategy.experimental_local_results",
    ),
    "the first replica, with dropout": (
        [(REDUCES, "strategy.experimental_local_results(losses)[0]"), DROPOUT],
        "fm39",
        "strategy.experimental_local_results",
    ),
    "a metric of losses": (
        [("mean.update_state(errors)", "mean.update_state(loss)")],
        "fm44",
        "mean.update_state",
    ),
    "a mean of means": (
        [
            ("mean.update_state(errors)", "mean.update_state(tf.reduce_mean(errors))"),
            ("size=(24, 3)", "size=(21, 3)"),
        ],
        "fm19",
        "mean.update_state",
    ),
}


@pytest.mark.replayed
@pytest.mark.parametrize("name", WRONG)
def test_a_number_that_depends_on_the_number_of_devices(name, tmp_path):
    edits, mode, line = WRONG[name]
    text = edited(PROGRAM, edits)
    examination = examined(tmp_path, text)
    assert observer_failures(examination.recordings) == ()
    (finding,) = examination.findings
    assert finding.mode == mode
    assert line in text.splitlines()[finding.line - 1]
    assert "is printed on 1 and" in str(finding.message)
    assert ("divided by the examples of the whole batch" in finding.fix) == (mode == "fm44")


AVERAGE = "tf.nn.compute_average_loss(errors, global_batch_size=8)"
APPLIES = "    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))\n"
CLIPS_SUM = """\
    gradients = tape.gradient(loss, variables)
    context = tf.distribute.get_replica_context()
    gradients, _ = tf.clip_by_global_norm(context.all_reduce("SUM", gradients), 0.01)
    gradients = [each / strategy.num_replicas_in_sync for each in gradients]
    optimizer.apply_gradients(zip(gradients, variables))
"""


@pytest.mark.replayed
@pytest.mark.parametrize("loss, count", [("tf.reduce_mean(errors)", 1), (AVERAGE, 0)])
def test_a_loss_whose_factor_is_clipped_from_the_gradients(loss, count, tmp_path):
    text = edited(PROGRAM, [(APPLIES, CLIPS_SUM), (AVERAGE, loss)])
    findings = examined(tmp_path, text).findings
    lines = [text.splitlines()[each.line - 1].strip() for each in findings]
    assert lines == [f"loss = {loss}"] * count
    assert [each.mode for each in findings] == ["fm37"] * count
    assert all("2.00 times as large" in str(each.message) for each in findings)


PRINTS = 'print(f"Epoch {epoch}: '
RIGHT = {
    "as it is": [],
    "with dropout": [DROPOUT],
    "with a smaller last batch": [("size=(24, 3)", "size=(21, 3)")],
    "the time": [(PRINTS, 'import time; print("now", time.time() % 1000)\n    ' + PRINTS)],
    "random numbers": [(PRINTS, "print('noise', np.random.rand())\n    " + PRINTS)],
    "whole numbers": [(PRINTS, "print('replicas', strategy.num_replicas_in_sync)\n    " + PRINTS)],
}


@pytest.mark.replayed
@pytest.mark.parametrize("name", RIGHT)
def test_numbers_of_a_right_program(name, tmp_path):
    examination = examined(tmp_path, edited(PROGRAM, RIGHT[name]))
    assert observer_failures(examination.recordings) == ()
    assert examination.findings == []


# What is printed


def compared(few, many, tolerance=1e-3):
    recordings = run(strategy(1), output=few), run(strategy(2), output=many)
    return [values for _, values in printed.differing(*recordings, tolerance)]


@pytest.mark.parametrize(
    "few, many, expected",
    [
        ("loss 1.500 after 3 steps", "loss 3.000 after 4 steps", [("1.500", "3.000")]),
        ("loss 1.500e-3", "loss 2.000e-3", [("1.500e-3", "2.000e-3")]),
        ("loss 1.500e-3", "loss 2e-3", []),
        ("loss nan", "loss 0.500", [("nan", "0.500")]),
        ("loss nan", "loss nan", []),
        ("loss 0.50", "loss 0.51", []),
        ("loss 100.001", "loss 100.052", []),
        (
            "step 1 loss 1.000\nstep 2 loss 1.000",
            "step 1 loss 1.000\nstep 2 loss 0.500",
            [("1.000", "0.500")],
        ),
        ("loss 1.000\nloss 1.000", "loss 2.000", []),
        ("loss 1.000", "error 2.000", []),
        ("\rloss 1.000", "\rloss 2.000", []),
        ("replicas 1", "replicas 2", []),
        ("loss 1.7", "loss 2.7", []),
        ("loss 0.017", "loss 2.713", []),
        ("Total training time: 1.753", "Total training time: 2.753", []),
        ("epoch 1 took 1.753 s", "epoch 1 took 2.753 s", []),
        ("1.753 examples/s", "2.753 examples/s", []),
        ("inf 1.000", "inf 1.000", []),
        ("loss 1.500e+400", "loss 3.000e+400", []),
        ("loss 1.500e-400", "loss 3.000e-400", []),
        (
            "job 123e4567-e89b-12d3\nloss 1.000",
            "job 321e7654-e89b-12d3\nloss 2.000",
            [("1.000", "2.000")],
        ),
        ("job 123e4567-e89b-12d3", "job 321e-7654-89b-12d3", []),
        ("1,1.500\r\n2,1.250\r\n", "1,3.000\r\n2,1.250\r\n", [("1.500", "3.000")]),
        ("1,1.500\r\n", "1,3.000\n", [("1.500", "3.000")]),
        ("5/10 1.500\r6/10 1.250\r\n", "5/10 3.000\r6/10 1.250\r\n", []),
    ],
)
def test_what_is_compared(few, many, expected):
    assert compared(few, many) == expected


@pytest.mark.parametrize(
    "number, expected",
    [("1.25", 0.01), ("2.5e3", 100), ("3e-2", 0.01), ("inf", 1), ("123e4567", 0), ("0e4567", 0)],
)
def test_what_the_last_digit_counts(number, expected):
    assert printed.unit(number) == pytest.approx(expected)


@pytest.mark.parametrize("output, asks", [("loss 2.000", True), ("loss 1.000", False), ("", False)])
def test_no_run_is_made_for_programs_that_print_the_same(output, asks):
    few, many = trained(0.9, devices=1, output="loss 1.000"), trained(0.8, output=output)
    steps = printed.printed_difference(Runs([many, few], [first_divergence(few, many)]))
    assert bool(next(steps, None)) == asks


def difference(few, many):
    pair = printed.Pair(run(strategy(1), output=few), run(strategy(2), output=many))
    found = printed.first_other(pair)
    assert found
    return found


@pytest.mark.parametrize(
    "few, many, is_so",
    [
        ("loss 1.000", "loss 2.000", True),
        ("loss 1.000 and 3.000", "loss 2.000 and 6.000", True),
        ("loss 1.000 and 3.000", "loss 0.500 and 1.500", True),
        ("loss 1.000 and 3.000", "loss 2.000 and 3.000", True),
        ("loss 1.000 and 3.000", "loss 2.000 and 4.000", False),
        ("loss 1.000", "loss 1.500", False),
        ("loss 0.000", "loss 1.500", False),
        ("loss 1.000", "loss nan", False),
    ],
)
def test_a_factor_of_the_number_of_replicas(few, many, is_so):
    assert difference(few, many).is_by_replicas == is_so


@pytest.mark.parametrize(
    "many, is_loss", [("Loss 3.000 error 2.000", True), ("Loss 1.000 error 3.000", False)]
)
def test_what_a_number_is_called(many, is_loss):
    assert difference("Loss 1.000 error 2.000", many).is_loss == is_loss


SOURCE = """\
def step(batch):
    losses = strategy.run(replica, (batch,))
    return strategy.reduce("SUM", losses, axis=None)
def replica(x):
    error.update_state(loss)
    all_losses = strategy.run(other)
for batch in batches:
    value = step(batch)
    totals[0] += value
    first = all_losses.values[0]
print("loss %.4f" % totals[0])
print("error {:.3f}".format(error.result()), flush=True)
print(f"first {first:.3f} of {epoch}")
print(f"alone {7.5 * epoch:.3f}")
print(f"total {totals[0]:.3f} and mean {error.result():.3f}")
print("Total:", totals[0].numpy(), "Mean:", error.result())
def replica_tune(x):
    tune[0].update_state(x)
    tune[1].update_state(tf.reduce_mean(loss))
print("step %d / second %.4f" % (epoch, value_of(kept)))
print("step {} / third {:.4f}".format(epoch, value_of(kept)))
def value_of(metric):
    return metric.result() + tf.gather(x, 0)
def replica_keep(x):
    kept.update_state(x)
print(f"epoch {epoch} " + " ".join(f"tune/{each.name}={each.result():.3f}" for each in tune))
"""


@pytest.mark.parametrize(
    "text, line",
    [
        ("total 3.000 and mean 1.000", 5),
        ("Total: 3.0 Mean: 1.0", 5),
        ("loss 1.0000", 3),
        ("error 1.000", 5),
        ("first 1.000 of 3", 10),
        ("alone 7.500", 14),
        ("epoch 3 tune/acc=1.000 tune/loss=2.000", 19),
        ("step 3 / second 1.0000", 25),
        ("step 3 / third 1.0000", 25),
        ("other 1.0", 3),
    ],
)
def test_where_a_printed_number_comes_from(tmp_path, text, line):
    (tmp_path / "train.py").write_text(SOURCE)
    many = run(variable(1, location=stack(tmp_path / "train.py", 2)))
    label = printed.NUMBER.split(text)[-2]
    difference = printed.PrintedDifference(many, many, text, label, "1.0", "2.0", 2.0)
    assert [frame.line for frame in printed.source_of(difference)] == [line]
    more = "\nstrategy.reduce('SUM', another, axis=None)\n"
    (tmp_path / "train.py").write_text(SOURCE + more)
    here = [] if text.startswith("other") else [line]
    assert [frame.line for frame in printed.source_of(difference)] == here


@pytest.mark.parametrize(
    "line, is_so",
    [
        ("print(total.values[0])", True),
        ("print(float(strategy.experimental_local_results(total)[0]))", True),
        ("print(total.values[name])", False),
        ("print(totals[0])", False),
    ],
)
def test_a_line_that_takes_the_value_of_one_replica(tmp_path, line, is_so):
    (tmp_path / "train.py").write_text(f"{line}\n")
    assert printed.is_of_one_replica(stack(tmp_path / "train.py", 1)) is is_so


def test_the_calls_of_a_file_are_looked_at_once_for_all_names(tmp_path, monkeypatch):
    filled, filled_by = [], printed.filled_by
    monkeypatch.setattr(
        printed, "filled_by", lambda call: filled.append(call.lineno) or filled_by(call)
    )
    (tmp_path / "train.py").write_text("".join(f"v{i} = g(v{i + 1})\n" for i in range(30)))
    value = ast.parse("v0 + v10 + v20", mode="eval").body
    printed.joining_line(str(tmp_path / "train.py"), value)
    assert {*range(1, 31)} == {*filled}
    assert len(filled) <= 3 * 30  # once more where names come from them
