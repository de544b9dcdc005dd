"""Repairs fm44: a metric is an object that adds up over all replicas, or a function of the examples of all of them."""

import ast
from collections.abc import Sequence

from ...examiner.blame import name_of, names_given
from ...examiner.edits import Edit
from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_sums import (
    SUMMED,
    means_of_all,
    quotient,
    ratios_of_all,
    run_by_replicas,
)
from ...examiner.reported import STEPS

# Keras 3 also calls a metric where no replica runs, to learn its shape.
WHOLE = (
    "replica = tf.distribute.get_replica_context()",
    "{0} = [replica.all_gather(each, axis=0) if replica else each for each in ({0})]",
)


WRAPPER = """\
def {name}(metric):
    def whole(*given):
        replica = tf.distribute.get_replica_context()
        return metric(*[replica.all_gather(each, axis=0) if replica else each for each in given])

    whole.__name__ = getattr(metric, "__name__", "metric")
    return whole


"""
OF_ALL = "of_all_replicas"


@repairs("fm44", keeps_training=True)
def over_all_replicas(source: Source, line: int) -> Ways:
    statement = source.statement(line)
    for update in updates(source, statement) if statement else ():
        yield from weighted(source, update)
    yield from wrapped(source)
    yield from in_replicas(source, line)


def updates(source: Source, statement: ast.stmt) -> list[ast.FunctionDef | ast.Call]:
    """Returns how the metric of a statement is updated: a method of its class, and calls of an object that it makes."""
    own = source.class_of(statement)
    methods = [each for each in source.of(ast.FunctionDef, own) if each.name == "update_state"]
    made = names_given(statement)
    calls = source.calls("update_state")
    of_it = [each for each in calls if name_of(getattr(each.func, "value", each)) in made]
    return [*(methods if own else []), *of_it]


def weighted(source: Source, update: ast.FunctionDef | ast.Call) -> Ways:
    """Yields what adds up both parts of a ratio, of which a mean is not the ratio of all examples, or what all have."""
    for call in [update] if isinstance(update, ast.Call) else source.calls("update_state", update):
        for _, divisor in ratios(source, call.args[:1]) if len(call.args) == 1 else ():
            yield [source.add_argument(call, source.code(divisor))]
    added = [call.args[0] for call in source.calls("assign_add", update) if len(call.args) == 1]
    counts = [each for each in added if ast.unparse(each) in ("1", "1.0")]
    divided = [each for each in added if ratios(source, [each])]
    if len(divided) == len(counts) == 1:
        texts = map(source.code, ratios(source, divided)[0])
        yield [source.replace(each, text) for each, text in zip((*divided, *counts), texts)]
    yield from summed_stars(source, update)
    if isinstance(update, ast.FunctionDef):
        yield [gathered(source, update)]


def ratios(source: Source, values: Sequence[ast.expr]) -> list[tuple[ast.expr, ast.expr]]:
    return [found for each in values if (found := quotient(source.resolved(each)))]


def summed_stars(source: Source, within: ast.AST) -> Ways:
    for starred in source.of(ast.Starred, within):
        values = f"[{SUMMED.format('each')} for each in {source.code(starred.value)}]"
        yield [source.replace(starred.value, values)]


def wrapped(source: Source) -> Ways:
    """Yields functions around those that `compile` is given as metrics, which may be of another file."""
    for call in source.calls("compile"):
        given = [word.value for word in call.keywords if (word.arg or "").endswith("metrics")]
        nodes = [node for each in given for node in ast.walk(source.resolved(each))]
        listed = [node for node in nodes if isinstance(node, ast.List | ast.Tuple | ast.Call)]
        parts = [
            part for node in listed for part in getattr(node, "elts", getattr(node, "args", [])[:1])
        ]
        functions = [each for each in parts if isinstance(each, ast.Name | ast.Attribute)]
        if functions:
            text = WRAPPER.format(name=OF_ALL).splitlines()
            edits = [source.replace(each, f"{OF_ALL}({source.code(each)})") for each in functions]
            first = min(map(source.outermost, functions), key=lambda each: each.lineno)
            yield [source.insert_before(first, *text), *edits]


def in_replicas(source: Source, line: int) -> Ways:
    """Yields the sums and means of all replicas in the functions that these run for the line, or of which it is one."""
    statement = source.statement(line)
    around = source.around(statement)[0] if statement else source.tree
    is_step = isinstance(around, ast.FunctionDef) and around.name in STEPS
    if statement and is_step:
        yield from summed_stars(source, statement)
    for function in [around] if is_step else run_by_replicas(source, around):
        yield ratios_of_all(source, function)
        yield means_of_all(source, function)


def gathered(source: Source, method: ast.FunctionDef) -> Edit:
    """Returns the first statement of a method, which gathers what it is given without a default."""
    given = method.args.args[1 : -len(method.args.defaults) or None]
    names = ", ".join(each.arg for each in given)
    return source.insert_first(method, *(line.format(names) for line in WHOLE))
