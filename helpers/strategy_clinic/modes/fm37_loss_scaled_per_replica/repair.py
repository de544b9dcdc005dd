"""Repairs fm37: a mean over one replica's examples becomes their sum by the size of the global batch, or a penalty a share."""

import ast
import re

from ...examiner.blame import MEANS, SUMS, first_argument, keyword, name_of, targets_in
from ...examiner.edits import Edit
from ...examiner.repair import Binding, Source, Ways, repairs_statement
from ...examiner.repair_sums import REPLICAS, divided_by_all, words_for_mean

FACTOR = "output_gradients"  # of a tape
SHARES = "compute_average_loss", "scale_regularization_loss"
PENALTIES = "l2_loss", "add_n"
OF_WEIGHTS = re.compile(r"\.(?:losses|trainable_(?:variables|weights)|kernel)\b")


@repairs_statement("fm37", keeps_training=True)
def divide_by_global_batch(source: Source, statement: ast.stmt) -> Ways:
    for call in source.over_all(MEANS, statement):
        argument, size = source.code(call.args[0]), global_batch_size(source)
        if size:
            average = f"tf.nn.compute_average_loss({argument}, global_batch_size={size})"
            yield [source.replace(call, average)]
        added = sums_for_means(source, statement)
        for edits in (added, []):
            yield [source.replace(call, share(source, call)), *edits]
        yield [divided_by_all(source, call), *added]
    for call in penalties(source, statement):
        yield [source.replace(call, f"tf.nn.scale_regularization_loss({source.code(call)})")]
    for call in loss_calls(source, statement):
        yield [source.replace(call, share(source, call))]
    value = statement.value if isinstance(statement, Binding) else None
    for call in source.calls(SHARES[0], statement):
        for word in [each for each in call.keywords if each.arg == "global_batch_size"]:
            yield [source.replace(word.value, f"({source.code(word.value)}) * {REPLICAS}")]
    for loss in whole_losses(source, statement):
        is_sum = isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Add)
        for part in (
            (loss, loss.right, loss.left) if isinstance(loss, ast.BinOp) and is_sum else [loss]
        ):
            yield [source.replace(part, f"({source.code(part)}) / {REPLICAS}")]
    for call in source.calls("gradient", statement):
        if call.args and keyword(call, FACTOR) is None:
            ones = f"{FACTOR}=tf.ones_like({source.code(call.args[0])})"
            yield [source.add_argument(call, f"{ones} / {REPLICAS}")]
    if isinstance(value, ast.Name | ast.Attribute) and name_of(value) in MEANS:
        mean = source.code(value)
        yield [source.replace(value, f"lambda *x, **axes: {mean}(*x, **axes) / {REPLICAS}")]


def sums_for_means(source: Source, statement: ast.stmt) -> list[Edit]:
    """Returns the edits that add up what the function of a statement returns on the replicas, where its mean is taken."""
    name = getattr(source.function(statement), "name", "")
    given = [each for each in source.calls("run") if each.args and name_of(each.args[0]) == name]
    callers = dict.fromkeys(source.function(each) for each in given if name)
    reduced = [each for caller in callers for each in source.calls("reduce", caller)]
    means = words_for_mean(source, reduced)
    return [source.replace(each, source.code(each).replace("MEAN", "SUM")) for each in means]


def whole_losses(source: Source, statement: ast.stmt) -> list[ast.expr]:
    """Returns what a statement computes as the loss; of one that asks for gradients, what its loss was computed as."""
    losses = [call.args[0] for call in source.calls("gradient", statement) if call.args]
    if losses:
        wanted, function = [*map(source.code, losses)], source.function(statement)
        above = [e for e in source.assignments(function) if e.lineno < statement.lineno]
        values = [each.value for each in above if source.code(targets_in(each)[0]) in wanted]
        return [*filter(None, values)][-1:]
    valued = (
        statement
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return)
        else None
    )
    value = valued.value if valued else None
    if isinstance(value, ast.Call) and is_share(source, value):
        return []
    return [value] if isinstance(value, ast.BinOp | ast.Call) else []


def is_share(source: Source, call: ast.Call) -> bool:
    """Tells whether a call returns a replica's share already, or no number but an object of `keras.losses`."""
    return name_of(call.func) in SHARES or ".losses." in source.code(call.func)


def share(source: Source, call: ast.Call) -> str:
    """Returns the value of a call divided by the number of replicas, as code that stands where the call stood."""
    divided = f"{source.code(call)} / {REPLICAS}"
    is_whole = isinstance(source.parents[call], ast.stmt)
    return divided if is_whole else f"({divided})"


def global_batch_size(source: Source) -> str:
    """Returns the size of the batches if the file makes them in one place, by a number or a name of the module."""
    calls = source.calls("batch")
    sizes = [first_argument(call, "batch_size") for call in calls]
    if len(sizes) != 1:
        return ""
    is_number = isinstance(sizes[0], ast.Constant) and isinstance(sizes[0].value, int)
    is_constant = isinstance(sizes[0], ast.Name) and source.assigned(sizes[0].id, source.tree)
    return source.code(sizes[0]) if sizes[0] is not None and (is_number or is_constant) else ""


def penalties(source: Source, statement: ast.stmt) -> list[ast.Call]:
    sums = source.calls((*SUMS, "sum"), statement)
    of_weights = [call for call in sums if OF_WEIGHTS.search(source.code(call))]
    scaled = [each for call in source.calls(SHARES[1], statement) for each in call.args]
    found = source.calls(PENALTIES, statement) or of_weights
    return [call for call in found if call not in scaled]


def loss_calls(source: Source, statement: ast.stmt) -> list[ast.Call]:
    """Returns the calls of an object of `keras.losses` that takes the mean; one is made or called in this statement."""
    losses = [
        (made, source.code(target))
        for made, target, call in source.makers()
        if ".losses." in source.code(call.func) and keyword(call, "reduction") is None
    ]
    own = [name for made, name in losses if made is statement]
    within, chosen = (None, own) if own else (statement, [name for _, name in losses])
    calls = [call for call in source.of(ast.Call, within) if source.code(call.func) in chosen]
    return calls if len(calls) == 1 else []
