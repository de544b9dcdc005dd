"""Checks fm55: a loss is a ratio of sums over the batch, and each replica computes the ratio for its part."""

import ast
from dataclasses import replace

from ...examiner import blame, lineage
from ...examiner.divergence import (
    EXACT,
    Divergence,
    both_replaced,
    depends_on_mean,
    first_divergence,
    optimizer_ratio,
    points_of_rounding,
    update_ratio,
)
from ...examiner.findings import Answers, Replace, counted
from ...examiner.recording import Recording
from ...examiner.rule import Runs, Steps, compared, rule_of_runs, same_batches
from ...examiner.suspects import (
    Side,
    Suspect,
    clippings,
    gradient_line,
    is_fit,
    place_of,
    replaced_as_expected,
    uses,
)
from ...observer.events import GradientComputed, Operation, Part, Stack
from ...observer.replacements import Replacement

# Why a loss of Keras, or a chosen way to add up, makes the runs differ.
OTHER_REASONS = {
    Part.MASK,
    Part.WHOLE_BATCH_LOSS,
    Part.SCALAR_LOSS,
    Part.REDUCTION,
    Part.OWN_REDUCTION,
}
# Keras 3 adds up what a loss that returns one number returns on each replica.
SHARE = (
    'divide by the sum of all replicas, `tf.distribute.get_replica_context().all_reduce("SUM", x)`, so that each replica returns '
    "its share of the loss; if that takes the sums of all replicas above the division, too, divide the loss by "
    "`num_replicas_in_sync`"
)
SAME_FACTOR = 1e-2  # relative: of gradients that differ in nothing but their sums


@rule_of_runs("fm55")
def ratio_of_part(runs: Runs) -> Steps:
    """Checks for one of the first updates that is another one on other numbers of replicas, though the examples are the same."""
    for one, other in (yield from same_batches(runs.matched)):
        location = ratio_of_sums(other)
        step = (yield from differs_early(one, other)) if location else 0
        if step:
            counts = one.replicas, other.replicas
            update = "first update" if step == 1 else f"update of step {step}"
            message = (
                "the loss divides by a sum over the batch, and each replica divides by that of its part; "
                f"the {update} on {other.replicas} devices differs from that on {counted(one.replicas, 'device')}"
            )
            fix = SHARE if other.uses(Part.SCALAR_LOSS) else ""
            yield compared("fm55", counts, location, message, fix=fix)
            return


@rule_of_runs("fm55")
def compares_examples(runs: Runs) -> Steps:
    """Checks for a loss that combines all examples: a replica then computes what one device does with its part alone."""
    for divergence in runs.divergences[:1]:
        if divergence.step != 1 or not has_own_loss(divergence):
            continue
        one, other = divergence.one, divergence.other
        location, combines = joined_at(other)
        if not location or update_ratio(one, other, divergence.training, EXACT) is not None:
            continue
        expected = replaced_as_expected(divergence) | {Replacement.ONE_PART}
        if uses(Part.SPARSE_GRADIENTS)(divergence):
            expected |= {Replacement.DENSE_GRADIENTS}
        change = Replace(expected)
        words = "with one part of the batch for each replica"
        both = yield from both_replaced(one, other, change, words)
        is_complete = both and all(each.finished for each in both)
        if both and is_complete and are_multiples(*both, divergence.training):
            message = (
                f"the loss {combines} the examples of a batch with each other: "
                f"on {other.devices} devices each replica {combines} only those of its own part"
            )
            devices, fix = (one.devices, other.devices), combines_examples.fix
            yield compared("fm55", devices, location, message, fix=fix)


def joined_at(recording: Recording) -> tuple[Stack, str]:
    """Returns the line that joins examples with each other, and how."""
    product = joined_examples(recording, "MatMul")
    return (product, "compares") if product else (joined_examples(recording), "combines")


def are_multiples(one: Recording, other: Recording, training: int) -> bool:
    """Tells whether gradients on more devices are as large or a multiple, as updates or the squares that are kept show."""
    if update_ratio(one, other, training, EXACT) is not None:
        return True
    kept = optimizer_ratio(one, other, training) or 0.0
    factors = 1.0, other.replicas / one.replicas
    return any(abs(kept - factor) <= SAME_FACTOR * factor for factor in factors)


def has_own_loss(divergence: Divergence) -> bool:
    """Tells whether the program computes the loss of its step."""
    is_other = is_fit(divergence) or divergence.other.uses(*OTHER_REASONS)
    return bool(gradient_line(divergence)) and not is_other


def loss_line(divergence: Divergence) -> Stack:
    """Returns the line that computes what the loss is divided by, or joins examples; else what the loss reduces, or the loss."""
    recording = divergence.other
    found = joining_line(recording) or reduced_examples(recording)
    return found or blame.line_of_loss(gradient_line(divergence))


combines_examples = Suspect(
    Replacement.SAME_PARTS,
    "with the same examples in all replicas",
    Side.PROGRAM,
    has_own_loss,
    "the loss, or a layer, combines the examples of a batch, and each replica combines those of its part",
    "gather what is combined from all replicas with `all_gather`, or take a loss in which each example is for itself",
    loss_line,
    mode="fm55",
    last=True,
)


def line_of_own_loss(divergence: Divergence) -> Stack:
    """Returns the line of a loss, given to `compile`, that computes a sum by which it divides, or else its last line."""
    return joining_line(divergence.other) or place_of(Part.OWN_LOSS)(divergence)


combines_in_fit = replace(
    combines_examples,
    applies=lambda divergence: (
        is_fit(divergence)
        and (uses(Part.OWN_LOSS)(divergence) or bool(joined_examples(divergence.other)))
    ),
    fix="combine the labels and outputs of all replicas: `tf.distribute.get_replica_context().all_gather(x, axis=0)`, "
    "where there is a context; or return a loss for each example that depends on this example alone",
    located=line_of_own_loss,
)


def differs_early(one: Recording, other: Recording) -> Answers[int]:
    """Returns the first step after which runs differ, also without what makes correct programs differ; 0 if it is no early one.

    Parts may be alike in the first step. In a later one, the last digits of the weights may be a reason, too.
    """
    divergence = first_divergence(one, other)
    if divergence is None or not divergence.step or divergence.training > 1:
        return 0
    if one.plain and not (yield from depends_on_mean(one)):
        return 0
    if divergence.step > 1 and (yield from is_sensitive(divergence)):
        return 0
    parts = replaced_as_expected(divergence) | clippings(other)
    if not parts:
        return divergence.step
    words = "with the same numbers in all replicas"
    again = yield from both_replaced(one, other, Replace(parts), words)
    left = first_divergence(*again) if again else None
    return divergence.step if left is not None and left.step == divergence.step else 0


def is_sensitive(divergence: Divergence) -> Answers[bool]:
    """Tells whether the runs agree but for what changes with the last digits of the weights, or nobody knows."""
    found = yield from points_of_rounding(divergence.other)
    return found is None or first_divergence(divergence.one, divergence.other, found) is None


# The line to blame


def ratio_of_sums(recording: Recording) -> Stack:
    """Returns the line that computes of the examples of a part the number by which the loss is divided.

    A function that only counts is right in itself: then it is the line that divides.
    """
    ratios = [ratio for loss in traced_losses(recording) for ratio in written_ratios(loss)]
    for division, reduction in ratios[:1]:
        is_near = lineage.is_of_one_function(division, reduction)
        return (reduction if is_near else division).location
    return ()


def joining_line(recording: Recording) -> Stack:
    return ratio_of_sums(recording) or joined_examples(recording)


def written_ratios(loss: lineage.Loss) -> list[tuple[Operation, Operation]]:
    """Returns those of which the program wrote both operations."""
    return [ratio for ratio in loss.ratios() if len([*loss.written(ratio)]) == 2]


def joined_examples(recording: Recording, kind: str = "") -> Stack:
    """Returns the line that joins examples with each other, or applies to a sum what is no factor."""
    joins = [each for loss in traced_losses(recording) for each in loss.written(loss.joins())]
    return from_copy(next((each.location for each in joins if kind in ("", each.kind)), ()))


def reduced_examples(recording: Recording) -> Stack:
    """Returns the line that reduces examples to the loss; where it adds them up, the one that computes what each of them has."""
    for loss in traced_losses(recording):
        for of in loss.written(loss.reductions):
            found = loss.sources(of) if of.kind in ("Sum", "Mean") else [of]
            return next((each.location for each in loss.written(found)), ())
    return ()


def from_copy(stack: Stack) -> Stack:
    """Returns the line that only passes on what a line of the loss is given, as if it was that of all replicas.

    It gives it another name, or returns it from a function that is called for it. The same lines if there is none.
    """
    for i, frame in enumerate(stack):
        if blame.computes_gradient(frame):
            break
        given = [each for call in blame.calls_in(blame.statement_at(frame)) for each in call.args]
        for name in reversed([each for each in given if isinstance(each, ast.Name)]):
            line = blame.maker_of(name, frame, ())
            if line != frame and is_copy(blame.statement_at(line)):
                return (line, *stack[i:])
    return stack


def is_copy(statement: ast.stmt | None) -> bool:
    """Tells whether a line has several values of which it computes nothing."""
    parts = getattr(getattr(statement, "value", None), "elts", ())
    plain = all(isinstance(each, ast.Name | ast.Constant) for each in parts)
    return plain and any(isinstance(each, ast.Name) for each in parts)


def traced_losses(recording: Recording) -> list[lineage.Loss]:
    computed = recording.of(GradientComputed)[:1]
    losses = [lineage.loss_at(recording, each.location) for each in computed]
    return [each for each in losses if each]
