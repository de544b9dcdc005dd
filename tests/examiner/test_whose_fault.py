"""Divergences that no rule explains: whether they are expected, the framework's fault or the program's, and on which lines."""

from dataclasses import replace

import pytest
from divergent_programs import FRAMEWORK as BY_FRAMEWORK
from divergent_programs import NOBODY, PROGRAM, PROGRAMS
from recorded import (
    LINE,
    NUDGED,
    OTHER,
    WRITTEN,
    ended,
    settled,
    stack,
    strategy,
    trained,
    updated,
    values,
    written,
)
from score_divergences import blamed, examined
from strategy_clinic.examiner import whose_fault
from strategy_clinic.examiner.divergence import first_divergence
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import DIVERGES, FRAMEWORK, Replace
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs, mode_rules, observed, rule
from strategy_clinic.examiner.runs import plan
from strategy_clinic.observer.events import (
    BatchTaken,
    DatasetBatched,
    GradientComputed,
    Outcome,
    Part,
    PartUsed,
    ReplicaCountRead,
    StepEnded,
)
from strategy_clinic.observer.replacements import Replacement
from strategy_clinic.processes import python_process


def test_a_divergence_is_a_finding_on_the_line_that_wrote_what_differs():
    diagnosis, _ = settled(trained(0.9, devices=1), trained(0.8))
    (finding,) = diagnosis.findings
    assert (finding.mode, finding.line, finding.devices) == (DIVERGES, 20, (1, 2))
    assert str(finding.message) == (
        "v1 has another value on 2 devices than on 1, first after step 1, by 0.11 of its size"
    )
    assert str(finding.proof) == (
        "compared 1 and 2 devices: v1 differs in step 1, by 0.11; it is written at line 20"
    )
    assert diagnosis.notes == []


def test_all_lines_that_wrote_it_are_in_the_proof():
    more = written(location=LINE), written(location=OTHER, replicas=0), written(number=2)
    diagnosis, _ = settled(trained(0.9, devices=1), trained(0.8, *more))
    (finding,) = diagnosis.findings
    assert finding.line == 20
    assert str(finding.proof).endswith("; it is written at line 20 and at line 7")
    more = [written(location=stack("/program/train.py", line)) for line in (1, 2, 3)]
    (finding,) = settled(trained(0.9, devices=1), trained(0.8, *more))[0].findings
    assert str(finding.proof).endswith("; it is written at line 20 and at line 1 and at line 2")


def test_a_variable_that_no_known_line_writes():
    other = trained(0.8)
    nowhere = replace(other, events=tuple(each for each in other.events if each is not WRITTEN))
    diagnosis, _ = settled(trained(0.9, devices=1), nowhere)
    (finding,) = diagnosis.findings
    assert (finding.mode, bool(finding.location)) == (DIVERGES, False)


def test_what_differs_only_at_the_end():
    def late(value, devices):
        first = trained(0.9, devices=devices)
        return replace(first, events=(*first.events[:-1], ended({1: [value]})))

    diagnosis, _ = settled(late(0.9, 1), late(0.8, 2))
    assert "first at the end, by" in str(diagnosis.findings[0].message)


def test_only_a_run_that_has_finished_shows_what_a_replacement_does():
    one = trained(0.9, devices=1)
    divergence = first_divergence(one, trained(0.8))
    assert whose_fault.is_whole(one, divergence)
    assert not whose_fault.is_whole(replace(one, outcome=Outcome.RAISED), divergence)


# What is no finding


def test_runs_that_agree_are_not_run_again():
    diagnosis, asked = settled(trained(0.9, devices=1), trained(0.9))
    assert (diagnosis.findings, diagnosis.notes, asked) == ([], [], [])


@pytest.mark.parametrize(
    "explains, expected",
    [(True, ["one"]), (False, ["one", DIVERGES])],
    ids=["of devices", "of files"],
)
def test_a_finding_of_a_rule_explains_it_unless_it_is_of_files(explains, expected):
    @rule("one", explains_divergence=explains)
    def found(recording):
        if recording.devices == 2:
            yield observed("one", recording, LINE, "it is so")

    diagnosis, _ = settled(trained(0.9, devices=1), trained(0.8), without=[found])
    assert [finding.mode for finding in diagnosis.findings] == expected


def test_without_another_run_it_is_a_note():
    one, other = trained(0.9, devices=1), trained(0.8)
    diagnosis = diagnose(Runs([other, one], [first_divergence(one, other)]))
    assert diagnosis.findings == []
    assert diagnosis.notes == [
        "compared 1 and 2 devices: v1 differs in step 1, by 0.11; that is none of the modes by itself"
    ]
    assert diagnosis.agreeing == []


def test_what_other_last_digits_change_is_not_compared():
    diagnosis, asked = settled(trained(0.9, devices=1), trained(0.8), {NUDGED: (0.9, 0.801)})
    assert (diagnosis.findings, asked) == ([], [(frozenset(), 0)])
    assert diagnosis.notes[0].endswith("so it does if only the last digits of the weights differ")
    assert diagnosis.agreeing == diagnosis.notes
    diagnosis, _ = settled(trained(0.9, devices=1), trained(0.8), {NUDGED: (0.9, 0.80001)})
    assert [finding.mode for finding in diagnosis.findings] == [DIVERGES]


def taken(value, devices, examples, *events, **changes):
    batch = BatchTaken(LINE, (examples // devices,) * devices)
    return trained(value, batch, *events, updated(**changes), devices=devices)


ASKED, BATCHED = ReplicaCountRead(LINE), DatasetBatched(LINE, 8)


@pytest.mark.parametrize(
    "one, other, reason",
    [
        (taken(0.9, 1, 8), taken(0.8, 2, 16), "a step takes in 8 and 16 examples"),
        (taken(0.9, 1, 8, BATCHED, ASKED), taken(0.8, 2, 16, BATCHED, ASKED), "8 and 16 examples"),
        (
            taken(0.9, 1, 8, BATCHED),
            taken(0.8, 2, 16, replace(BATCHED, size=16)),
            "8 and 16 examples",
        ),
        (taken(0.9, 1, 7, BATCHED), taken(0.8, 2, 8, BATCHED), "7 and 8 examples"),
        (trained(0.9, ASKED, devices=1), trained(0.8, ASKED), "its batches were not seen"),
        (
            taken(0.9, 1, 8, ASKED, learning_rate="0.1"),
            taken(0.8, 2, 8, ASKED, learning_rate="0.2"),
            "chooses its learning rate",
        ),
    ],
    ids=["a larger batch", "asked for", "chosen", "uneven", "unknown batches", "a larger rate"],
)
def test_trainings_that_are_meant_to_differ(one, other, reason):
    diagnosis, asked = settled(one, other)
    assert (diagnosis.findings, asked) == ([], [])
    assert reason in diagnosis.notes[0]


def second_training(value, devices, examples, *events):
    """A run with 8 examples in a step of its first training; a later one has batches of this size."""
    batched = DatasetBatched(OTHER, examples)
    return taken(value, devices, 8, strategy(devices), BATCHED, batched, *events)


def test_a_later_training_that_is_meant_to_differ():
    meant = second_training(0.9, 1, 4, ASKED), second_training(0.8, 2, 8, ASKED)
    diagnosis, asked = settled(*meant)
    assert (diagnosis.findings, asked) == ([], [])
    assert "a step takes in 4 and 8 examples" in diagnosis.notes[0]
    nobody_asked = second_training(0.9, 1, 4), second_training(0.8, 2, 8)
    not_by_replicas = second_training(0.9, 1, 6, ASKED), second_training(0.8, 2, 8, ASKED)
    for runs in (nobody_asked, not_by_replicas):
        assert [finding.mode for finding in settled(*runs)[0].findings] == [DIVERGES]


def test_more_examples_that_nobody_chose():
    (finding,) = settled(taken(0.9, 1, 8, BATCHED), taken(0.8, 2, 16, BATCHED))[0].findings
    assert finding.mode == DIVERGES
    assert "; a step takes in 8 and 16 examples; it is written at" in str(finding.proof)


def test_a_program_that_asks_for_replicas_and_trains_with_equal_batches():
    diagnosis, _ = settled(taken(0.9, 1, 8, ASKED), taken(0.8, 2, 8, ASKED))
    assert [finding.mode for finding in diagnosis.findings] == [DIVERGES]
    rates = [taken(0.9, 1, 8, learning_rate="0.1"), taken(0.8, 2, 8, learning_rate="0.2")]
    assert [finding.mode for finding in settled(*rates)[0].findings] == [DIVERGES]


# What correct programs differ by

DRAWN = PartUsed(LINE, Part.RANDOM_NUMBERS)
CONSTANT, SHARED = Replacement.CONSTANT_NUMBERS, Replacement.SHARED_STATISTICS


@pytest.mark.parametrize(
    "part, replacement",
    [
        (Part.RANDOM_NUMBERS, CONSTANT),
        (Part.BATCH_STATISTICS, SHARED),
        (Part.HALF_PRECISION, Replacement.FULL_PRECISION),
    ],
)
def test_what_each_replica_has_for_itself(part, replacement):
    runs = trained(0.9, devices=1), trained(0.8, PartUsed(LINE, part))
    diagnosis, asked = settled(*runs, {(replacement,): (0.7, 0.7)})
    assert (diagnosis.findings, asked[1:]) == ([], [(frozenset({replacement}), 0)] * 2)
    assert "correct programs have these, too" in diagnosis.notes[0]
    diagnosis, _ = settled(*runs)
    (finding,) = diagnosis.findings
    assert (finding.mode, finding.line) == (DIVERGES, 20)


@pytest.mark.parametrize("nudged, found", [(0.92, []), (0.88, [DIVERGES])], ids=["it does", "not"])
def test_what_is_left_without_random_numbers_may_change_with_the_last_digits(nudged, found):
    answers = {(CONSTANT,): (0.9, 0.88), (CONSTANT, *NUDGED): (0.9, nudged)}
    diagnosis, _ = settled(trained(0.9, devices=1), trained(0.8, DRAWN), answers)
    assert [each.mode for each in diagnosis.findings] == found
    assert bool(diagnosis.notes) != bool(found)


@pytest.mark.parametrize("step", [1, 2, 0], ids=["first step", "second step", "end"])
@pytest.mark.parametrize(
    "end, found", [(0.85, []), (0.7, [DIVERGES])], ids=["small", "too large for rounding"]
)
def test_what_is_left_without_random_numbers_after_the_first_step(end, found, step):
    def again(follow_up):
        parts = follow_up.change.replacements
        value = 0.9 if follow_up.recording.devices == 1 else 0.8
        if CONSTANT not in parts:
            return trained(value)
        last = end if follow_up.recording.devices == 2 else 0.9
        run_again = trained(last if step == 1 else 0.9)
        second = StepEnded(2, values({1: [last]}), values({1: [0.9]}), (), ())
        more = [second] if step == 2 else []
        return replace(run_again, events=(*run_again.events[:-1], *more, ended({1: [last]})))

    gradient = GradientComputed(LINE, 0, 1)  # so that the loss is a suspect
    one, other = trained(0.9, gradient, devices=1), trained(0.8, DRAWN, gradient)
    rules = replace(mode_rules(), rules=[])
    diagnosis = diagnose(Runs([other, one], [first_divergence(one, other)]), again, rules)
    is_known = found or [DIVERGES] if step == 1 else found
    assert [each.mode for each in diagnosis.findings] == is_known
    assert bool(is_known) != any("as small as rounding makes" in note for note in diagnosis.notes)


def test_several_of_these_are_replaced_together():
    parts = DRAWN, PartUsed(LINE, Part.BATCH_STATISTICS)
    runs = trained(0.9, devices=1), trained(0.8, *parts)
    diagnosis, asked = settled(*runs, {(CONSTANT, SHARED): (0.7, 0.7)})
    assert (diagnosis.findings, asked[1:]) == ([], [(frozenset({CONSTANT, SHARED}), 0)] * 2)


def test_which_modes_explain_no_divergence():
    apart = {each.mode for each in mode_rules().rules if not each.explains_divergence}
    assert {"fm05", "fm25", "fm29", "fm43"} <= apart and not apart & {"fm21", "fm23", "fm37"}


# Faults of the framework

CLIPS = {"clipnorm": 0.5}
NO_CLIPPING = Replacement.NO_CLIPPING


def clipping(value, devices, *events):
    return trained(value, updated(**CLIPS), *events, devices=devices)


def test_the_framework_is_blamed_and_no_line():
    runs = trained(0.9, devices=1), trained(0.8, PartUsed(LINE, Part.MASK))
    diagnosis, asked = settled(*runs, {(Replacement.NO_MASK,): (0.7, 0.7)})
    (finding,) = diagnosis.findings
    assert (finding.mode, bool(finding.location)) == (FRAMEWORK, False)
    assert finding.by_framework
    assert str(finding.message).endswith("your program is right")
    assert str(finding.proof).endswith("without the mask in the loss the runs agree")
    assert asked[1:] == [(frozenset({Replacement.NO_MASK}), 0)] * 2


def test_a_mode_explains_a_suspect_of_its_own():
    diagnosis, asked = settled(clipping(0.9, 1), clipping(0.8, 2), {(NO_CLIPPING,): (0.7, 0.7)})
    (finding,) = diagnosis.findings
    assert (finding.mode, finding.line, finding.fix) == ("fm50", 20, "")
    assert finding.by_framework
    assert asked[1:] == [(frozenset({NO_CLIPPING}), 0)] * 2


def test_a_program_that_clips_and_differs_without_it():
    diagnosis, _ = settled(clipping(0.9, 1), clipping(0.8, 2), {(NO_CLIPPING,): (0.7, 0.6)})
    assert [(each.mode, each.line) for each in diagnosis.findings] == [(DIVERGES, 20)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_runs_that_end_in_no_numbers_settle_nothing(value):
    diagnosis, _ = settled(clipping(0.9, 1), clipping(0.8, 2), {(NO_CLIPPING,): (value, value)})
    assert [each.mode for each in diagnosis.findings] == [DIVERGES]


def test_clipping_beside_random_numbers():
    answers = {(NO_CLIPPING,): (0.7, 0.6), (CONSTANT,): (0.7, 0.6), (CONSTANT, *NUDGED): (0.7, 0.6)}
    both = {(NO_CLIPPING, CONSTANT): (0.7, 0.7)}
    diagnosis, _ = settled(clipping(0.9, 1), clipping(0.8, 2, DRAWN), answers | both)
    assert [each.mode for each in diagnosis.findings] == ["fm50"]
    diagnosis, _ = settled(clipping(0.9, 1), clipping(0.8, 2, DRAWN), answers)
    assert [each.mode for each in diagnosis.findings] == [DIVERGES]


@pytest.mark.parametrize(
    "part, replacement",
    [
        (Part.WHOLE_BATCH_LOSS, Replacement.WHOLE_BATCH_LOSS),
        (Part.REDUCTION, Replacement.REDUCTION_TO_ONE_DEVICE),
        (Part.MASK, Replacement.NO_MASK),
        (Part.SPARSE_GRADIENTS, Replacement.DENSE_GRADIENTS),
    ],
)
def test_other_parts_of_the_framework(part, replacement):
    runs = trained(0.9, devices=1), trained(0.8, PartUsed(LINE, part))
    diagnosis, _ = settled(*runs, {(replacement,): (0.7, 0.7)})
    assert [(each.mode, each.line) for each in diagnosis.findings] == [(FRAMEWORK, 0)]
    assert [each.mode for each in settled(*runs)[0].findings] == [DIVERGES]


def test_repeated_rows_of_an_embedding_hide_a_fault_of_the_program():
    parts = PartUsed(LINE, Part.CLIPPING), PartUsed(LINE, Part.SPARSE_GRADIENTS)
    runs = trained(0.9, *parts, devices=1), trained(0.8, *parts)
    rows, own = Replacement.DENSE_GRADIENTS, Replacement.NO_OWN_CLIPPING
    answers = {(rows,): (0.7, 0.6), (own,): (0.7, 0.6)}
    diagnosis, _ = settled(*runs, answers | {(rows, own): (0.7, 0.7)})
    assert [(each.mode, each.by_framework) for each in diagnosis.findings] == [("fm50", False)]
    diagnosis, _ = settled(*runs, answers)
    assert [each.mode for each in diagnosis.findings] == [DIVERGES]


def test_an_overflow_that_another_replica_has():
    state = updated(kind="LossScaleOptimizer")
    one, other = trained(0.9, state, devices=1), trained(float("inf"), state)
    shared = {(Replacement.SHARED_OVERFLOW,): (0.9, 0.9), NUDGED: (0.9, float("inf"))}
    (finding,) = settled(one, other, shared)[0].findings
    assert finding.mode == "fm51" and "only the first replica" in str(finding.message)
    _, asked = settled(one, trained(0.8, state), shared)
    assert (frozenset({Replacement.SHARED_OVERFLOW}), 0) not in asked


def fitted(tmp_path, value, devices, *events):
    path = tmp_path / "train.py"
    path.write_text("model.fit(x, y)\n")
    return trained(value, GradientComputed(stack(path, 1), 0, 1), *events, devices=devices)


def test_keras_2_is_asked_where_keras_computes_the_loss(tmp_path):
    one, other = (fitted(tmp_path, value, n) for n, value in ((1, 0.9), (2, 0.8)))
    diagnosis, asked = settled(one, other)
    assert asked[1:] == [(frozenset(), 2)] * 2
    assert [each.mode for each in diagnosis.findings] == [DIVERGES]
    (finding,) = settled(one, other, {(): (0.7, 0.7)})[0].findings
    assert finding.mode == FRAMEWORK and "Keras 2 does not" in str(finding.message)


def test_the_last_batch_is_suspected_only_where_it_can_be_the_cause(tmp_path):
    def late(value, devices):
        first = fitted(tmp_path, 0.9, devices)
        return replace(first, events=(*first.events[:-1], ended({1: [value]})))

    full = {(Replacement.FULL_BATCHES,): (0.7, 0.7)}
    (finding,) = settled(late(0.9, 1), late(0.8, 2), full)[0].findings
    assert finding.mode == FRAMEWORK and "does not divide evenly" in str(finding.message)
    _, asked = settled(fitted(tmp_path, 0.9, 1), fitted(tmp_path, 0.8, 2), full)
    assert (frozenset({Replacement.FULL_BATCHES}), 0) not in asked


@pytest.mark.parametrize(
    "fails, line, expected",
    [
        (Replacement.FULL_BATCHES, "model.fit(x, y)", []),
        (Replacement.FULL_BATCHES, "tape.gradient(loss, weights)", [DIVERGES]),
        (None, "model.fit(x, y)", [DIVERGES]),
    ],
    ids=["of Keras", "of the program", "with Keras 2"],
)
def test_a_program_that_fails_without_a_part_of_the_framework(fails, line, expected, tmp_path):
    """As one that has an array for the predictions of all examples."""
    path = tmp_path / "train.py"
    path.write_text(line)

    def second(value, devices):
        first = trained(0.9, GradientComputed(stack(path, 1), 0, 1), devices=devices)
        step = StepEnded(1, values({1: [value]}), values({1: [1.0]}), (), (), training=2)
        return replace(first, events=(*first.events[:-1], step, ended({1: [value]})))

    def again(follow_up):
        is_nudged = follow_up.change.replacements == NUDGED
        is_failing = fails in (follow_up.change.replacements or {None}) and not is_nudged
        outcome = Outcome.RAISED if is_failing else Outcome.FINISHED
        return replace(follow_up.recording, role=Role.CHANGED, outcome=outcome)

    one, other = second(0.9, 1), second(0.8, 2)
    rules = replace(mode_rules(), rules=[])
    diagnosis = diagnose(Runs([other, one], [first_divergence(one, other)]), again, rules)
    assert [each.mode for each in diagnosis.findings] == expected
    told = "whether the runs agree without a smaller last batch is not known"
    assert any(told in note for note in diagnosis.notes) == (not expected)


# Faults of the program that a run without them shows


@pytest.mark.parametrize(
    "part, replacement, mode",
    [
        (Part.CLIPPING, Replacement.NO_OWN_CLIPPING, "fm50"),
        (Part.OWN_REDUCTION, Replacement.REDUCTION_TO_ONE_DEVICE, DIVERGES),
    ],
)
def test_a_fault_of_the_program_has_its_line(part, replacement, mode):
    runs = trained(0.9, devices=1), trained(0.8, PartUsed(LINE, part))
    (finding,) = settled(*runs, {(replacement,): (0.7, 0.7)})[0].findings
    assert (finding.mode, finding.line, bool(finding.fix)) == (mode, 7, True)
    (finding,) = settled(*runs)[0].findings
    assert (finding.mode, finding.line) == (DIVERGES, 20)


def test_a_last_batch_that_the_program_divides_by():
    def late(value, devices):
        first = trained(0.9, GradientComputed(LINE, 0, 1), devices=devices)
        return replace(first, events=(*first.events[:-1], ended({1: [value]})))

    full = {(Replacement.FULL_BATCHES,): (0.7, 0.7)}
    (finding,) = settled(late(0.9, 1), late(0.8, 2), full)[0].findings
    assert (finding.mode, finding.line) == ("fm19", 7)


def test_a_last_batch_of_an_earlier_training():
    """It shows in the first step of the next one."""

    def second(value, devices):
        first = trained(0.9, GradientComputed(LINE, 0, 1), devices=devices)
        step = StepEnded(1, values({1: [value]}), values({1: [1.0]}), (), (), training=2)
        return replace(first, events=(*first.events[:-1], step, ended({1: [value]})))

    full = {(Replacement.FULL_BATCHES,): (0.7, 0.7)}
    (finding,) = settled(second(0.9, 1), second(0.8, 2), full)[0].findings
    assert (finding.mode, finding.line) == ("fm19", 7)


def test_how_the_observer_is_told():
    both = Replace(frozenset({SHARED, CONSTANT}))
    told = ("--replace", "constant_numbers,shared_statistics", "--keras", "0")
    assert plan.options_of(both) == told
    assert plan.options_of(Replace(frozenset(), 2)) == ("--keras", "2")


# Programs


def test_every_program_is_another():
    texts = [program.text for program in PROGRAMS]
    assert len(set(texts)) == len(texts) == len({program.name for program in PROGRAMS})
    faults = [program.fault for program in PROGRAMS]
    assert min(faults.count(fault) for fault in (PROGRAM, BY_FRAMEWORK, NOBODY)) >= 20


@pytest.mark.replayed
@pytest.mark.parametrize(
    "name, keras",
    [
        ("divided twice", 3),
        ("divided by a sum over a part, in fit", 3),
        ("centred by the mean of a part, in fit", 3),
        ("own loss of each example, beside dropout", 3),
        ("centred by the mean of a part", 3),
        ("clipnorm in AdamW", 3),
        ("positions in an embedding, with Adam", 3),
        ("Dice", 3),
        ("an uneven last batch of arrays", 3),
        ("a generator in the step", 3),
        ("averaged weights", 3),
        ("a masked loss", 2),
        ("an uneven last batch of arrays", 2),
    ],
)
def test_whose_fault_it_is(name, keras):
    """All programs: python tools/score_divergences.py"""
    python_process.fork_server()
    (program,) = (each for each in PROGRAMS if each.name == name)
    assert blamed(examined(program, keras)) == program.fault
