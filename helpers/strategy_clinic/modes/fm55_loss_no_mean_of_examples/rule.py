"""Checks fm55: a loss is a ratio of sums over the batch, and each replica computes the ratio for its part."""

import ast
import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace

from ...examiner import blame, lineage
from ...examiner.divergence import (
    EXACT,
    Divergence,
    depends_on_mean,
    first_divergence,
    optimizer_ratio,
    update_ratio,
)
from ...examiner.findings import FollowUp, Replace, counted
from ...examiner.recording import Recording
from ...examiner.rule import Answers, Runs, Steps, compared, rule_of_runs
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
from ...observer.events import Frame, GradientComputed, Operation, Part, PartUsed, Stack
from ...observer.replacements import Replacement

SUMS = "reduce_sum", "count_nonzero", "sum"
REDUCTIONS = {*SUMS, "reduce_mean", "mean", "reduce_max", "max", "reduce_std", "std", "moments"}
AVERAGES = {"compute_average_loss"}
# Reductions that are no sums of what each example has, and functions that are no factors of what they get.
NO_SUMS = {"norm", "reduce_euclidean_norm", "reduce_logsumexp", "logsumexp", "reduce_prod"}
NO_SUMS |= {"reduce_std", "std", "reduce_variance", "var", "moments"}
BENDS = {"sqrt", "rsqrt", "log", "log1p", "exp", "square", "pow"}
# Functions of each value and its neighbours along an axis.
ALONG = {"softmax", "log_softmax", "l2_normalize", "normalize", "cumsum", "sort", "argsort"}
RATIOS = "divide_no_nan", "divide", "truediv"
# Why a loss of Keras, or a chosen way to add up, makes the runs differ.
OTHER_REASONS = {
    Part.MASK,
    Part.WHOLE_BATCH_LOSS,
    Part.SCALAR_LOSS,
    Part.REDUCTION,
    Part.OWN_REDUCTION,
}
SAME_FACTOR = 1e-2  # relative: of gradients that differ in nothing but their sums
COMBINED = "all_reduce", "all_gather", "gather", "merge_call"  # over replicas


@rule_of_runs("fm55")
def ratio_of_part(runs: Runs) -> Steps:
    """Checks for a first update that is another one on other numbers of replicas, though the examples are the same."""
    for one, other in same_batches(runs):
        location = ratio_of_sums(other) if traced_losses(other) else ratio_in_loss(other)
        if location and (yield from differs_at_first(one, other)):
            counts = one.replicas, other.replicas
            message = (
                "the loss divides by a sum over the batch, and each replica divides by that of its part; "
                f"the first update on {other.replicas} devices differs from that on {counted(one.replicas, 'device')}"
            )
            yield compared("fm55", counts, location, message)
            return


@rule_of_runs("fm55")
def compares_examples(runs: Runs) -> Steps:
    """Checks for a loss that combines all examples: a replica then computes what one device does with its part alone."""
    for divergence in runs.divergences[:1]:
        if divergence.step != 1 or not has_own_loss(divergence):
            continue
        one, other = divergence.one, divergence.other
        location, way = joined_at(divergence)
        if not location or update_ratio(one, other, divergence.training, EXACT) is not None:
            continue
        expected = replaced_as_expected(divergence) | {Replacement.ONE_PART}
        if uses(Part.SPARSE_GRADIENTS)(divergence):
            expected |= {Replacement.DENSE_GRADIENTS}
        change = Replace(expected)
        words = "with one part of the batch for each replica"
        part = yield FollowUp(one, change, words)
        parts = yield FollowUp(other, change, words)
        if part is None or parts is None or not (part.finished and parts.finished):
            continue
        if are_multiples(part, parts, divergence.training):
            message = (
                f"the loss {way} those of its part: "
                f"on {other.devices} devices it does what one device does with a part of the batch"
            )
            finding = compared("fm55", (one.devices, other.devices), location, message)
            yield replace(finding, fix=combines_examples.fix)


def joined_at(divergence: Divergence) -> tuple[Stack, str]:
    """Returns the line that joins examples with each other, and how: by what ran, or else by what is written."""
    other, line = divergence.other, gradient_line(divergence)
    if traced_losses(other):
        product, joined = joined_examples(other, "MatMul"), joined_examples(other)
    else:
        product, joined = product_of_examples(line), joining_line(functions_of_step(line[0]), line)
    if product:
        return (
            product,
            "compares the examples of a batch with each other, and each replica compares",
        )
    return joined, "combines the examples of a batch, and each replica combines"


def are_multiples(one: Recording, other: Recording, training: int) -> bool:
    """Tells whether gradients on more devices are as large or a multiple, as updates or the squares that are kept show."""
    if update_ratio(one, other, training, EXACT) is not None:
        return True
    kept = optimizer_ratio(one, other, training) or 0.0
    factors = 1.0, other.replicas / one.replicas
    return any(abs(kept - factor) <= SAME_FACTOR * factor for factor in factors)


def product_of_examples(stack: Stack) -> Stack:
    """Returns the line of a step, or of a function that it calls, that multiplies all examples by all, or calls what does."""
    functions, nodes = functions_of_step(stack[0]), blame.nodes_of_file(stack[0].path)
    for function in functions:
        for node in ast.walk(function):
            name = blame.called_name(node) if isinstance(node, ast.Call) else ""
            helpers = [each for each in blame.functions_named(nodes, name) if each not in functions]
            inner = [each for helper in helpers for each in ast.walk(helper)]
            if isinstance(node, ast.expr) and any(map(is_product, [node, *inner])):
                return (Frame(stack[0].path, node.lineno, function.name), *stack)
    return ()


def is_product(node: ast.AST) -> bool:
    """Tells whether this multiplies a matrix by a transposed one."""
    if isinstance(node, ast.Call) and blame.called_name(node) == "matmul":
        return bool(blame.keyword(node, "transpose_b")) or any(map(is_transposed, node.args[1:2]))
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.MatMult)
        and is_transposed(node.right)
    )


def is_transposed(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and blame.called_name(value) == "transpose"
    return is_call or isinstance(value, ast.Attribute) and value.attr == "T"


def has_own_loss(divergence: Divergence) -> bool:
    """Tells whether the program computes the loss of its step."""
    others = {used.part for used in divergence.other.of(PartUsed)} & OTHER_REASONS
    return bool(gradient_line(divergence) and not (others or is_fit(divergence)))


def loss_line(divergence: Divergence) -> Stack:
    """Returns the line that computes what the loss is divided by, of all examples, or joins examples, or else the loss."""
    line = gradient_line(divergence)
    return (
        ratio_of_sums(divergence.other)
        or joined_examples(divergence.other)
        or ratio_in_loss(divergence.other, REDUCTIONS)
        or joining_line(functions_of_step(line[0]), line)
        or blame.line_of_loss(line)
    )


combines_examples = Suspect(
    Replacement.SAME_PARTS,
    "with the same examples in all replicas",
    Side.PROGRAM,
    has_own_loss,
    "the loss, or a layer, combines the examples of a batch, and each replica combines those of its part",
    "gather what is combined from all replicas with `all_gather`, or return a loss for each example",
    loss_line,
    mode="fm55",
    last=True,
)


def line_of_own_loss(divergence: Divergence) -> Stack:
    """Returns the line of a loss, given to `compile`, that computes a sum by which it divides, or else its last line."""
    given = place_of(Part.OWN_LOSS)(divergence)
    function = blame.function_at(given[0])
    functions = [function] if isinstance(function, ast.FunctionDef) else []
    ratio = ratio_of_sums(divergence.other) or ratio_in_loss(divergence.other, REDUCTIONS)
    return ratio or joining_line(functions, given) or given


combines_in_fit = replace(
    combines_examples,
    applies=lambda divergence: is_fit(divergence) and uses(Part.OWN_LOSS)(divergence),
    fix="return a loss for each example that depends on this example alone",
    located=line_of_own_loss,
)


def same_batches(runs: Runs) -> Iterator[tuple[Recording, Recording]]:
    """Returns the pairs of runs whose steps have the same examples, the run on fewer replicas first."""
    for one, other in itertools.permutations(runs.matched, 2):
        if other.replicas > one.replicas and one.examples == other.examples > 0:
            yield one, other


def differs_at_first(one: Recording, other: Recording) -> Answers[bool]:
    """Tells whether runs differ after the first step; also without what makes correct programs differ."""
    divergence = first_divergence(one, other)
    if divergence is None or divergence.step != 1:
        return False
    if one.plain and not (yield from depends_on_mean(one)):
        return False
    parts = replaced_as_expected(divergence) | clippings(other)
    if not parts:
        return True
    change = Replace(parts)
    words = "with the same numbers in all replicas"
    again = yield FollowUp(one, change, words)
    other_again = yield FollowUp(other, change, words)
    left = first_divergence(again, other_again) if again and other_again else None
    return left is not None and left.step == 1


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


def written_ratios(loss: lineage.Loss) -> list[tuple[Operation, Operation]]:
    """Returns those of which the program wrote both operations."""
    return [ratio for ratio in loss.ratios() if len([*loss.written(ratio)]) == 2]


def joined_examples(recording: Recording, kind: str = "") -> Stack:
    """Returns the line that joins examples with each other, or applies to a sum what is no factor."""
    joins = [each for loss in traced_losses(recording) for each in loss.written(loss.joins())]
    return next((each.location for each in joins if kind in ("", each.kind)), ())


def traced_losses(recording: Recording) -> list[lineage.Loss]:
    computed = recording.of(GradientComputed)[:1]
    losses = [lineage.loss_at(recording, each.location) for each in computed]
    return [each for each in losses if each]


def ratio_in_loss(recording: Recording, reductions: Collection[str] = SUMS) -> Stack:
    """Returns the line that computes the sum, or the result of another reduction, by which the loss is divided.

    That is in the step, in a function that it calls, or in one that `compile` was given.
    """
    located = [each.location for each in recording.of(GradientComputed) if each.location]
    given = [each.location for each in recording.of(PartUsed) if each.part is Part.OWN_LOSS]
    for stack in [*located[:1], *filter(None, given)]:
        own = blame.function_at(stack[0]) if stack in given else None
        for function in [own] if own else functions_of_step(stack[0]):
            nodes, end = list(ast.walk(function)), end_of_loss(function)
            in_loss = [each for each in nodes if getattr(each, "lineno", 0) <= end]
            divisors = [] if combines(nodes) else [*divisors_in(in_loss)]
            if own:
                divisors = [each for each in divisors if is_of_batch(each, function)]
            lines = [
                line for each in divisors if (line := line_of_reduction(each, nodes, reductions))
            ]
            if lines:
                return (Frame(stack[0].path, lines[0], function.name), *stack)
    return ()


def is_of_batch(value: ast.expr, function: blame.Function) -> bool:
    """Tells whether a value is computed from what a loss is called with, and not from what it has, such as weights of classes."""
    assigned = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
    names, seen = {*blame.names_in(value)}, set[str]()
    while names - seen:
        seen |= names
        for each in assigned:
            names |= {*blame.names_in(each.value)} if blame.targets_of(each) & seen else set()
    return bool(seen & {*blame.parameters(function)} - {"self"})


def joining_line(functions: list[ast.FunctionDef], stack: Stack) -> Stack:
    """Returns the first line that computes something from all examples; nothing if several functions have such lines."""
    lines = {
        function.name: [node.lineno for node in joining_nodes(function)] for function in functions
    }
    found = [(min(numbers), name) for name, numbers in lines.items() if numbers]
    return (Frame(stack[0].path, *found[0]), *stack) if len(found) == 1 else ()


def joining_nodes(function: ast.FunctionDef) -> list[ast.expr]:
    """Returns what computes something from all examples, in front of the line that computes gradients."""
    nodes, end = list(ast.walk(function)), end_of_loss(function)
    expressions = [each for each in nodes if isinstance(each, ast.expr) and each.lineno <= end]
    return [
        each
        for each in expressions
        if joins_examples(each) or is_bent(each) or is_of_each_and_all(each, nodes)
    ]


def joins_examples(node: ast.expr) -> bool:
    """Tells whether a call works along the first axis by name, is no sum of examples, or multiplies all examples by all."""
    if not isinstance(node, ast.Call):
        return False
    axes, name = blame.axes_of(node), blame.called_name(node)
    is_product = name == "matmul" and blame.keyword(node, "transpose_b")
    along_first = name in REDUCTIONS | ALONG and 0 in (axes or ())
    return bool(is_product) or along_first or name in NO_SUMS and axes is None


def is_bent(node: ast.expr) -> bool:
    """Tells whether something other than a factor is applied to the mean of a part, such as a root."""
    match node:
        case ast.Call(args=[value, *_]) if blame.called_name(node) in BENDS:
            return reduces(value)
        case ast.BinOp(left=value, op=ast.Pow()):
            return reduces(value)
    return False


def reduces(value: ast.expr) -> bool:
    return any(reduces_all(call, REDUCTIONS | AVERAGES) for call in blame.calls_in(value))


def is_of_each_and_all(node: ast.expr, nodes: list[ast.AST]) -> bool:
    """Tells whether values of examples are combined with the mean, or another reduction, of the same values."""
    if not isinstance(node, ast.BinOp):
        return False
    sides = (node.left, node.right), (node.right, node.left)
    return any(
        {*blame.names_in(call.args[0])} & {*blame.names_in(each)}
        for each, other in sides
        for call in reductions_of(other, nodes)
        if call.args and not reduces(each)
    )


def reductions_of(value: ast.expr, nodes: list[ast.AST]) -> list[ast.Call]:
    """Returns the reductions of all examples that a value is, or that a name is assigned to."""
    assigned = [each for each in nodes if isinstance(each, ast.Assign)]
    name = value.id if isinstance(value, ast.Name) else ""
    values = [value, *(each.value for each in assigned if name in blame.targets_of(each))]
    return [each for each in values if isinstance(each, ast.Call) and reduces_all(each, REDUCTIONS)]


def functions_of_step(frame: Frame) -> list[ast.FunctionDef]:
    """Returns the function that computes the gradient, and those of the same file that it calls."""
    nodes = [each for each in blame.nodes_of_file(frame.path) if isinstance(each, ast.FunctionDef)]
    inner = blame.function_at(frame)
    around = [inner] if isinstance(inner, ast.FunctionDef) else []
    given = blame.step_given_at(frame)
    steps = [each for each in nodes if each.name == given] + around
    taped = [step for step in steps if "gradient" in map(blame.called_name, blame.calls_in(step))]
    called = [
        blame.called_name(call)
        for step in taped
        for call in blame.calls_in(step)
        if call.lineno <= end_of_loss(step)
    ]
    found = [
        function
        for name in dict.fromkeys(called)
        if name != "gradient"
        for function in blame.functions_behind(frame.path, name)
    ]
    return list(dict.fromkeys(taped + found))


def end_of_loss(function: blame.Function) -> int:
    """Returns the last line that computes gradients, or else the last of all: what follows, such as a clip, is no loss."""
    calls = blame.calls_in(function)
    taken = [each.lineno for each in calls if blame.called_name(each) == "gradient"]
    return max(taken, default=function.end_lineno or 0)


def combines(nodes: list[ast.AST]) -> bool:
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    return any(blame.is_over_replicas(call, COMBINED) for call in calls)


def divisors_in(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield node.right
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node.value
        if isinstance(node, ast.Call) and blame.called_name(node) in RATIOS and len(node.args) > 1:
            yield node.args[1]


def line_of_reduction(value: ast.expr, nodes: list[ast.AST], names: Collection[str]) -> int:
    """Returns the line of a reduction of all examples in a value, or in what is assigned to a name in it; 0 if there is none."""
    values, seen = [value], set[str]()
    while values:
        current = values.pop(0)
        found = [call for call in blame.calls_in(current) if reduces_all(call, names)]
        if found:
            return found[0].lineno
        new = {*blame.names_in(current)} - seen
        seen |= new
        assigned = [each for each in nodes if isinstance(each, ast.Assign)]
        values += [each.value for each in assigned if blame.targets_of(each) & new]
    return 0


def reduces_all(call: ast.Call, names: Collection[str]) -> bool:
    """Tells whether a call reduces all examples that it is given; along other axes there is a value for each."""
    axes = blame.axes_of(call)
    return blame.called_name(call) in names and (axes is None or 0 in axes)
