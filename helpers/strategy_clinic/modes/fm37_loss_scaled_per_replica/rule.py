"""Checks fm37: with the same examples, the first update on n devices is n times that on one, an nth, or has n penalties."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...examiner import blame, lineage
from ...examiner.divergence import (
    ENOUGH_ENTRIES,
    Divergence,
    both_replaced,
    depends_on_mean,
    differs_by_penalty,
    first_divergence,
    growth_ratio,
    optimizer_ratio,
    trainings_of,
    update_ratio,
)
from ...examiner.findings import Answers, Finding, FollowUp, OnDevices, Replace, once_more
from ...examiner.printed import PrintedDifference, printed_difference, source_of
from ...examiner.recording import Kind, Recording, first_line
from ...examiner.rule import Runs, Steps, compared, rule_of_runs, same_batches
from ...examiner.suspects import clippings, replaced_as_expected
from ...examiner.whole_batches import whole_batch_counted
from ...observer.events import (
    GradientComputed,
    GradientsApplied,
    InputShared,
    Operation,
    Part,
    Stack,
    StepEnded,
    step_name,
)
from ...observer.replacements import Replacement

NEAR = 0.1  # of a factor, which is 1 in a correct program and at least 2 in a broken one
VERY_NEAR = 0.01  # of what changes in one way only
ENOUGH_OF_PENALTY = 3  # entries of a weight, where the traced loss has a penalty
# Why updates grow, whatever the program's loss is.
OTHER_REASONS = Part.WHOLE_BATCH_LOSS, Part.SCALAR_LOSS
NO_SUM = (
    "give the optimizer each replica's own gradients, or divide their sum by the number of replicas"
)
FOR_EACH_EXAMPLE = (
    "let the loss return one value for each example: outputs and labels need two axes, as `y[:, None]`, since a loss of Keras "
    "takes the mean over the last one"
)
ONCE = (
    "divide by the whole batch in the loss alone, as it does, and not by the number of replicas after that: the optimizer adds "
    "up the gradients of the replicas"
)
OF_EACH = "return the loss of each example, and let Keras divide their sum by the whole batch"
SHARE = "divide the penalty by the number of replicas: `tf.nn.scale_regularization_loss(penalty)`"

GROWS = "grows as their number: each replica divides that part of the loss by its own examples"
EACH_ADDS = (
    "each replica adds a whole part in which are no examples, such as a penalty, to its own loss"
)
ADDS = "grows as their number: each replica adds a whole penalty to its part of the loss"
# What a part of the gradients does, and its size on a number of replicas.
GROWTHS: dict[str, Callable[[int], float]] = {
    GROWS: lambda replicas: replicas,
    "falls as their number grows: that part of the loss is divided by it twice": (
        lambda replicas: 1 / replicas
    ),
}


@dataclass(frozen=True)
class Pair:
    """A training in two runs that differ in nothing but the number of replicas, the run on fewer first."""

    one: Recording
    other: Recording
    training: int
    watched: tuple[Recording, Recording]  # the runs without these replacements
    replacements: frozenset[Replacement] = frozenset()

    @property
    def is_distorted(self) -> bool:
        """Whether updates may differ by a factor whatever the loss is: through clipping in each replica, or a mask."""
        return bool(distortions(self.other) - self.replacements)


# The line to blame, a message, and a repair that is not the usual one.
Shown = tuple[Stack, str] | tuple[Stack, str, str]


@rule_of_runs("fm37")
def scaled_loss(runs: Runs) -> Steps:
    """Checks each training as it is, and then without what makes the trainings of correct programs differ."""
    for pair in (yield from same_trainings(runs)):
        shown = yield from scaling(pair)
        divergences = [each for each in runs.divergences if (each.one, each.other) == pair.watched]
        if divergences and not shown:
            replaced = yield from without_expected(pair, divergences[0])
            shown = yield from scaling(replaced)
            shown = shown or (yield from growing_part(replaced or pair))
        if shown:
            yield found(pair, divergences, *shown)
            return


@rule_of_runs("fm37", last=True)
def printed_loss(runs: Runs) -> Steps:
    """Checks a loss that is right for the updates, and is printed as the sum of what each replica divides by its own part."""
    difference = yield from printed_difference(runs)
    if difference is None or not difference.is_loss:
        return
    is_whole = difference.is_by_replicas
    for pair in (yield from same_trainings(runs)):
        shown = yield from (
            scaling_undistorted(pair) if is_whole else growing_print(pair, difference)
        )
        if shown:
            yield found(pair, (), *shown)
            return
    location = source_of(difference) if is_whole and difference.factor > 1 else ()
    if location and not (yield from whole_batch_counted(runs, difference)):
        message = f"{difference}: it is the sum of means"
        yield compared("fm37", difference.counts, location, message)


def growing_print(pair: Pair, difference: PrintedDifference) -> Answers[Shown | None]:
    """Returns what shows that a part of a printed loss grows with the devices, where it hardly changes the weights."""
    location, why, fix = part_that_grows(pair)
    if not location or other_number(pair):
        return None
    third = yield from on_more(pair)
    number = difference.in_place_of(third) if third else ""
    if third is None or not number:
        return None
    counts = difference.few.replicas, difference.many.replicas, third.replicas
    values = [*map(float, (difference.number, difference.other, number))]
    grows, growth = ((most - few) / (many - few) for few, many, most in (counts, values))
    if abs(growth - grows) > NEAR * grows:
        return None
    message = f"{difference}, and {number} on {third.devices}: a part of it {why}"
    return location, message, fix


def scaling_undistorted(pair: Pair) -> Answers[Shown | None]:
    """Returns what shows that a loss is scaled otherwise on more devices, although clipping or a mask hides it."""
    distorted = distortions(pair.other)
    if not distorted:
        return None
    replaced = yield from with_replacements(pair, distorted, "without clipping and masks")
    return (yield from scaling(replaced))


def scaling(pair: Pair | None) -> Answers[Shown | None]:
    """Returns what shows that all of a loss, or a penalty in it, is scaled otherwise on more devices."""
    if pair is None or pair.is_distorted or not (loss := line_of_loss(pair)):
        return None
    few, many = pair.one.replicas, pair.other.replicas
    on_many = f"on {many} devices, with the same examples"
    for factor in (many / few, few / many):
        what = scaled_by(pair, factor)
        if what and (yield from is_repeated(scaled_by, pair, factor)):
            if factor > 1:
                if sums := line_of_sum(pair):
                    why = "they are added up here, and the optimizer adds them up again"
                    return sums, f"{what} {on_many}: {why}", NO_SUM
                if (added := penalty(pair)) and not means(pair):
                    return added, f"{what} {on_many}: {EACH_ADDS}", SHARE
                return mean_of_part(pair) or loss, f"{what} {on_many}: each divides by its own part"
            why = "the loss is divided by the number of replicas once too often"
            if own := divided_again(pair):
                return own, f"{what} {on_many}: {why}, by Keras", OF_EACH
            if after := division_after_loss(pair):
                why = "the loss is divided by the whole batch, and its gradients by the number of replicas once more"
                return after, f"{what} {on_many}: {why}", ONCE
            return other_number(pair) or loss, f"{what} {on_many}: {why}"
    if has_penalty(pair) and (yield from is_repeated(has_penalty, pair)):
        why = f"each of {many} replicas adds the whole penalty on them to its part of the loss"
        message = f"the first update differs by a multiple of the weights: {why}"
        return penalty(pair) or loss, message, SHARE
    return None


def growing_part(pair: Pair) -> Answers[Shown | None]:
    """Returns what shows that a part of the gradients grows with the devices, or falls, while the rest does not."""
    (one, other), loss = pair.watched, line_of_loss(pair)
    if not loss or pair.is_distorted or not first_divergence(pair.one, pair.other):
        return None
    third = yield from on_more(pair)
    if third is None:
        return None
    why = growth_in_words(pair, third)
    if not why or not (yield from differs_with_same_parts(pair)):
        return None
    if not (yield from is_repeated(growth_in_words, pair, third)):
        return None
    counts = f"{one.replicas}, {other.replicas} and {third.replicas} devices"
    message = f"on {counts}, with the same examples, a part of the first update"
    if why == GROWS:
        line, why, fix = part_that_grows(pair)
        return line or loss, f"{message} {why}", fix
    return loss, f"{message} {why}"


def on_more(pair: Pair) -> Answers[Recording | None]:
    """Returns the same training on twice as many devices."""
    one, other = pair.watched
    if other.task:
        return None
    replicas = other.replicas if one.plain else 0
    change = OnDevices(2 * other.devices, replicas, pair.replacements)
    third = yield FollowUp(other, change, f"on {change.devices} devices")
    is_more = third is not None and third.replicas > other.replicas
    return third if third and is_more and is_same_training(one, third) else None


def part_that_grows(pair: Pair) -> tuple[Stack, str, str]:
    """Returns the only line that can make a part of the loss grow with the devices, why it does, and a fix."""
    if added := only_penalty(pair):
        return added, ADDS, SHARE
    return only_mean(pair), GROWS, ""


def differs_with_same_parts(pair: Pair) -> Answers[bool]:
    """Tells whether runs differ also if all replicas have the same examples: then it is not through how a batch is divided."""
    replacements = pair.replacements | {Replacement.SAME_PARTS}
    replaced = yield from with_replacements(pair, replacements, "with the same parts of a batch")
    return bool(replaced and first_divergence(replaced.one, replaced.other))


def without_expected(pair: Pair, divergence: Divergence) -> Answers[Pair | None]:
    """Returns the same training without what makes the trainings of correct programs differ, such as random numbers."""
    replacements = replaced_as_expected(divergence) | distortions(pair.other)
    if not replacements:
        return None
    words = "without what makes correct programs differ"
    return (yield from with_replacements(pair, replacements, words))


def distortions(recording: Recording) -> frozenset[Replacement]:
    masked = {Replacement.NO_MASK} if recording.uses(Part.MASK) else set()
    return clippings(recording) | masked


def with_replacements(
    pair: Pair, replacements: frozenset[Replacement], words: str
) -> Answers[Pair | None]:
    both = yield from both_replaced(*pair.watched, Replace(replacements), words)
    return Pair(*both, pair.training, pair.watched, replacements) if both else None


def growth_in_words(pair: Pair, third: Recording) -> str:
    """Returns what a part of the first gradients does with the number of replicas; nothing if they change otherwise."""
    few, many, most = pair.one.replicas, pair.other.replicas, third.replicas
    ratio = growth_ratio(pair.one, pair.other, third, pair.training) or 0.0
    for why, size in GROWTHS.items():
        expected = (size(most) - size(few)) / (size(many) - size(few))
        if abs(ratio - expected) < VERY_NEAR * expected:
            return why
    return ""


def same_trainings(runs: Runs) -> Answers[list[Pair]]:
    """Returns the trainings of each pair of runs that differ in nothing but the number of replicas."""
    found: list[Pair] = []
    for one, other in (yield from same_batches(runs.matched)):
        # An optimizer, or a sum of gradients, outside the scope takes that of every replica: that is fm23.
        sums = [number for number in other.written_outside if other.variables[number].shape]
        if not (other.shared_slots or sums) and is_same_training(one, other):
            trainings = trainings_of(one, other)
            found += [Pair(one, other, training, (one, other)) for training in trainings]
    return found


def mean_of_part(pair: Pair) -> Stack:
    """Returns the line that divides what a replica has by the number of its examples, or else that reduces them."""
    loss = traced_loss(pair)
    for found in (means(pair), loss.divisions, loss.reductions) if loss else ():
        if found:
            return chosen(found[0].location)
    return ()


def means(pair: Pair) -> list[Operation]:
    """Returns what takes a mean of a part, or divides by a number that is smaller on more devices, as that of its examples."""
    loss = traced_loss(pair)
    return [*loss.means, *other_numbers(pair, grows=True)] if loss else []


def chosen(stack: Stack) -> Stack:
    """Returns the line that chose the function which a line calls, if its functions, or its object, were given that."""
    kept = blame.attribute_called(stack[0])
    return (kept, *stack) if kept else blame.from_choice(stack)


def only_mean(pair: Pair) -> Stack:
    """Returns the only line that takes a mean of a part, where other parts of the loss are divided by a number."""
    lines = {each.location[:1]: each.location for each in means(pair)}
    return chosen(next(iter(lines.values()))) if len(lines) == 1 else ()


def other_numbers(pair: Pair, *, grows: bool) -> list[Operation]:
    """Returns what multiplies or divides by another number on more devices."""
    few, many = traced_loss(pair, 0), traced_loss(pair)
    return [*many.others_than(few, grows=grows)] if few and many else []


def other_number(pair: Pair) -> Stack:
    """Returns the line that makes a loss smaller on more devices."""
    return next((each.location for each in other_numbers(pair, grows=False)), ())


def divided_again(pair: Pair) -> Stack:
    """Returns the line of a loss that makes one number of a part by itself, where Keras divides that by the replicas.

    Keras 2 has no operation for that on one device.
    """
    loss, divides = traced_loss(pair), other_number(pair)
    if not divides and loss and blame.calls_at(loss.location, "fit"):
        divides = loss.location
    if not loss or divides[:1] != loss.location[:1]:
        return ()
    return next((each.location for each in loss.written(loss.reductions)), ())


def division_after_loss(pair: Pair) -> Stack:
    """Returns the line that divides the gradients by the number of replicas, or else applies them.

    Nothing if the loss is divided by the number of its own examples, or by another number on more devices.
    """
    recording, loss = pair.watched[1], traced_loss(pair)
    is_whole = loss and traced_loss(pair, 0) and not means(pair) and not other_number(pair)
    stack = first_line(since(recording, pair.training, GradientsApplied)) if is_whole else ()
    if not stack or blame.calls_at(stack, "fit"):
        return ()
    counts = {"num_replicas_in_sync"}
    for each in blame.nodes_of_file(stack[0].path, ast.Assign | ast.AnnAssign):
        for target, value in blame.given_in(each):
            counts |= names_under(target) if counts & names_under(value) else set()
    lines = [
        each.lineno
        for each in blame.nodes_under(blame.function_at(stack[0]))
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)
        if counts & names_under(each.right)
    ]
    return (stack[0]._replace(line=lines[-1]), *stack) if lines else stack


def names_under(node: ast.AST) -> set[str]:
    return {name for each in ast.walk(node) if (name := blame.name_of(each))}


def penalty(pair: Pair) -> Stack:
    """Returns the line that computes a penalty on weights which is added to the loss of a part."""
    loss = traced_loss(pair)
    return next((each.location for each in loss.penalties()), ()) if loss else ()


def only_penalty(pair: Pair) -> Stack:
    """Returns the line that computes a penalty which is added to a loss of which nothing is a mean of a part.

    One that is divided by another number on more devices is not added whole.
    """
    loss = traced_loss(pair)
    return penalty(pair) if loss and not loss.means and not other_number(pair) else ()


def traced_loss(pair: Pair, of: int = 1) -> lineage.Loss | None:
    """Returns what leads to the loss of the training, on more devices, or on fewer if `of` is 0."""
    recording = pair.watched[of]
    return lineage.loss_at(recording, line_of_gradient(recording, pair.training))


def line_of_loss(pair: Pair) -> Stack:
    """Returns the line that gave the loss its value of which the training computed a gradient first."""
    return blame.line_of_loss(line_of_gradient(pair.watched[1], pair.training))


def line_of_gradient(recording: Recording, training: int) -> Stack:
    """Returns the line that computed a gradient first in a training."""
    computed = since(recording, training, GradientComputed)
    # A loss may have gradients in it that are taken of no variable
    of_variables = [each for each in computed if each.connected] or computed
    return first_line(of_variables)


def since(recording: Recording, training: int, kind: type[Kind]) -> list[Kind]:
    """Returns the events of a training, and then those before it, the last one first: it may use the lines of these."""
    before = [step for step in recording.of(StepEnded) if step.training < training]
    if not before:
        return recording.of(kind)
    own, earlier = recording.of(kind, after=before[-1]), recording.of(kind, until=before[-1])
    return [*own, *earlier[::-1]]


def line_of_sum(pair: Pair) -> Stack:
    """Returns the line of a step that adds up the gradients of all replicas, if no line of it divides by their number."""
    stack = line_of_loss(pair)
    nodes = [*blame.nodes_under(blame.function_at(stack[0]))]
    lines = {each.lineno for each in nodes if isinstance(each, ast.Call) and adds_up(each)}
    if len(lines) != 1 or "num_replicas_in_sync" in map(blame.name_of, nodes):
        return ()
    return (stack[0]._replace(line=min(lines)), *stack)


def adds_up(call: ast.Call) -> bool:
    """Tells whether a call reduces the gradients of all replicas, which are named so, as `all_reduce("SUM", gradients)`."""
    return blame.called_name(call) == "all_reduce" and "grad" in ast.unparse(call)


def found(
    pair: Pair, seen: Sequence[Divergence], location: Stack, message: str, fix: str = ""
) -> Finding:
    counts = pair.one.replicas, pair.other.replicas
    step = step_name(pair.training, 1)
    proof = str(seen[0]) if seen else "compared {} and {} devices, in ".format(*counts) + step
    fix = fix or (FOR_EACH_EXAMPLE if blame.calls_at(location, "fit") else "")
    return compared("fm37", counts, location, message, proof, fix=fix)


def is_repeated(shows: Callable[..., object], pair: Pair, *against: Any) -> Answers[bool]:
    """Tells whether a comparison shows the same if the program runs again: with other data, it may show it by chance."""
    one, other = pair.watched
    if one.plain and not (yield from depends_on_mean(one)):
        return False
    if pair.replacements:  # of runs that repeat themselves
        return True
    again = yield once_more(other)
    return again is None or bool(shows(replace(pair, other=again), *against))


def is_same_training(one: Recording, other: Recording) -> bool:
    """Tells whether both were seen to take in the same number of examples in a step, with optimizers of the same rate."""
    if other.uses(*OTHER_REASONS) or other.of(InputShared) or other.trains_alone:
        return False
    rates = [
        {update.optimizer.learning_rate for update in each.of(GradientsApplied)}
        for each in (one, other)
    ]
    return rates[0] == rates[1] and one.examples == other.examples > 0


def has_penalty(pair: Pair) -> bool:
    """Tells whether the runs differ by a penalty: by chance few entries have its direction, too, if the loss has none."""
    least = ENOUGH_OF_PENALTY if only_penalty(pair) else ENOUGH_ENTRIES
    return differs_by_penalty(pair.one, pair.other, pair.training, least)


def scaled_by(pair: Pair, factor: float) -> str:
    """Returns what is this many times as large in the other run, in words; nothing if nothing is."""
    ratios = {
        "the first update is {:.2f} times as large": update_ratio,
        "the gradients that the optimizer keeps are {:.2f} times as large": optimizer_ratio,
    }
    for words, ratio_between in ratios.items():
        ratio = ratio_between(pair.one, pair.other, pair.training)
        if ratio and abs(ratio - factor) < NEAR * factor:
            return words.format(ratio)
    return ""
