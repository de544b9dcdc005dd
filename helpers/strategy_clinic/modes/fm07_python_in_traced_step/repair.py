"""Repairs fm07: functions of NumPy on tensors become those of TensorFlow, and a number that a trace keeps a variable."""

import ast
import re

from ...examiner.blame import name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, Ways, repairs

SAME_IN_TENSORFLOW = {
    "abs": "abs",
    "exp": "exp",
    "mean": "reduce_mean",
    "sqrt": "sqrt",
    "square": "square",
    "sum": "reduce_sum",
    "max": "reduce_max",
    "min": "reduce_min",
}
FROZEN = re.compile(r"([\w.]+) was ")
VARIABLE = "tf.Variable({}, dtype=tf.float32, trainable=False)"


@repairs("fm07")
def in_tensorflow(source: Source, line: int) -> Ways:
    statement = source.simple_statement(line)
    calls = source.of(ast.Call, statement) if statement else []
    own = [call.func for call in calls if source.code(call.func).startswith(("np.", "numpy."))]
    functions = [each for each in own if isinstance(each, ast.Attribute)]
    if functions and all(each.attr in SAME_IN_TENSORFLOW for each in functions):
        yield [source.replace(each, f"tf.{SAME_IN_TENSORFLOW[each.attr]}") for each in functions]
    yield from as_variable(source)


def as_variable(source: Source) -> Ways:
    """Yields a variable in place of the number that the finding names, and assignments to it where it is set again."""
    frozen = FROZEN.match(source.said)
    owner, _, name = frozen[1].rpartition(".") if frozen else ("", "", "")
    statements: list[ast.Assign | ast.AugAssign] = [*source.of(ast.Assign)]
    statements += source.of(ast.AugAssign)
    edits: list[Edit] = []
    for each in statements if name else ():
        target = each.targets[0] if isinstance(each, ast.Assign) else each.target
        if name_of(target) != name or isinstance(target, ast.Attribute) != bool(owner):
            continue
        code, value = source.code(target), source.code(each.value)
        if isinstance(each, ast.AugAssign):
            value = ast.unparse(ast.BinOp(each.target, each.op, each.value))
        later = source.replace(each, f"{code}.assign({value})")
        edits.append(later if edits else source.replace(each.value, VARIABLE.format(value)))
    if len(edits) > 1:
        yield edits
