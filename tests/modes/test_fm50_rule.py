"""The examiner's rule for fm50: an optimizer that clips the gradients of each replica before they are added."""

from dataclasses import replace

import pytest
from divergent_programs import FIT, LOOP, optimizer
from edited_programs import edited, examined
from recorded import settled, stack, trained, updated
from strategy_clinic.examiner.findings import DIVERGES
from strategy_clinic.observer.events import Part, PartUsed
from strategy_clinic.observer.replacements import Replacement

NO_CLIPPING = (Replacement.NO_CLIPPING,)
NO_OWN_CLIPPING = (Replacement.NO_OWN_CLIPPING,)
LIMITS = "clipnorm", "global_clipnorm", "clipvalue"


def clipping(value, devices, made_at=(), **limits):
    update = updated(**(limits or {"clipnorm": 0.5}))
    return trained(value, replace(update, made_at=made_at), devices=devices)


def reported(one, other, answers):
    diagnosis, asked = settled(one, other, answers)
    return [(each.mode, each.line) for each in diagnosis.findings], asked


@pytest.mark.parametrize("limit", LIMITS)
def test_runs_that_agree_without_clipping(limit):
    runs = clipping(0.9, 1, **{limit: 0.5}), clipping(0.8, 2, **{limit: 0.5})
    assert reported(*runs, {NO_CLIPPING: (0.7, 0.7)})[0] == [("fm50", 20)]


def test_it_is_no_fault_of_the_program():
    (finding,) = settled(clipping(0.9, 1), clipping(0.8, 2), {NO_CLIPPING: (0.7, 0.7)})[0].findings
    assert finding.by_framework and finding.devices == (1, 2)
    assert str(finding.message).endswith("before it adds them up; your program is right")
    assert str(finding.proof).endswith("without the clipping of the optimizer the runs agree")


@pytest.mark.parametrize("limit", LIMITS)
def test_the_line_that_gives_an_optimizer_its_limit(tmp_path, limit):
    path = tmp_path / "optimizers.py"
    path.write_text(f"def make():\n    return SGD(\n        0.1, {limit}=0.5\n    )\n")
    runs = clipping(0.9, 1), clipping(0.8, 2, stack(path, 2))
    other = runs[1]
    # The first update is the one of `trained`, which clips nothing.
    assert reported(runs[0], other, {NO_CLIPPING: (0.7, 0.7)})[0] == [("fm50", 3)]


def test_an_optimizer_of_the_program_that_passes_its_limit_on(tmp_path):
    path = tmp_path / "optimizers.py"
    path.write_text(
        "def __init__(self, **given):\n    super().__init__(**given)\nOwn(clipnorm=0.5)\n"
    )
    runs = clipping(0.9, 1), clipping(0.8, 2, stack(path, 2, 3))
    assert reported(*runs, {NO_CLIPPING: (0.7, 0.7)})[0] == [("fm50", 3)]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_is_not_set(limit):
    runs = clipping(0.9, 1, **{limit: None}), clipping(0.8, 2, **{limit: None})
    findings, asked = reported(*runs, {NO_CLIPPING: (0.7, 0.7)})
    assert findings == [(DIVERGES, 20)] and (frozenset(NO_CLIPPING), 0) not in asked


def test_runs_that_differ_without_clipping_too():
    runs = clipping(0.9, 1), clipping(0.8, 2)
    assert reported(*runs, {NO_CLIPPING: (0.7, 0.6)})[0] == [(DIVERGES, 20)]


def test_runs_that_agree_are_not_run_again():
    assert reported(clipping(0.9, 1), clipping(0.9, 2), {}) == ([], [])


def test_a_run_without_clipping_that_did_not_end():
    runs = clipping(0.9, 1), clipping(0.8, 2)
    assert reported(*runs, {NO_CLIPPING: (float("inf"), 0.7)})[0] == [(DIVERGES, 20)]


# Clipping by the program

STEP = """\
def step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(x)
    gradients = tape.gradient(loss, weights)
    norm = tf.norm(gradients[0])
    gradients = [each / norm for each in gradients]
    weights = sorted(weights)
    optimizer.apply_gradients(zip(gradients, weights))
"""


@pytest.mark.parametrize(
    "text, line",
    [
        (STEP, 6),
        (STEP.replace("zip(gradients", "zip([each / norm for each in gradients]"), 6),
        (STEP.replace("    gradients = [each / norm for each in gradients]", "    pass"), 8),
        (
            STEP.replace("gradients = [each", "others = [each").replace("zip(gr", "zip(others, gr"),
            6,
        ),
        (STEP.replace("optimizer.apply_gradients(", "tf.clip_by_global_norm("), 8),
    ],
    ids=["a name", "once more", "in the call", "another name", "a function that clips"],
)
def test_the_line_of_the_program_that_clips(tmp_path, text, line):
    path = tmp_path / "train.py"
    path.write_text(text)
    clips = PartUsed(stack(path, 8), Part.CLIPPING)
    one, other = trained(0.9, devices=1), trained(0.8, clips, devices=2)
    findings, _ = reported(one, other, {NO_OWN_CLIPPING: (0.7, 0.7)})
    assert findings == [("fm50", line)]


# Programs

SUMMED = """

class ClipsTheSum(tf.keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        context = tf.distribute.get_replica_context()
        total, _ = tf.clip_by_global_norm(context.all_reduce("SUM", list(grads)), 0.5)
        share = [each / context.num_replicas_in_sync for each in total]
        super().apply(share, trainable_variables)


strategy ="""


@pytest.mark.replayed
@pytest.mark.parametrize(
    "base, edits, expected",
    [
        (FIT, [optimizer("SGD(0.02, global_clipnorm=0.5)")], ["fm50"]),
        (LOOP, [optimizer("SGD(0.02, clipnorm=0.5)")], ["fm50"]),
        (FIT, [optimizer("Adam(0.02, clipvalue=0.001)")], ["fm50"]),
        (FIT, [optimizer("SGD(0.02, global_clipnorm=1e6)")], []),
        (FIT, [optimizer("SGD(0.02)")], []),
        (
            FIT,
            [
                ("\nstrategy =", SUMMED),
                (
                    "optimizer = tf.keras.optimizers.SGD(0.02)",
                    "optimizer = ClipsTheSum(0.02, global_clipnorm=0.5)",
                ),
            ],
            [],
        ),
    ],
    ids=["fit", "loop", "Adam", "a limit that is not reached", "no limit", "the sum is clipped"],
)
def test_programs(tmp_path, base, edits, expected):
    findings = examined(tmp_path, edited(base, edits)).findings
    assert [each.mode for each in findings] == expected
