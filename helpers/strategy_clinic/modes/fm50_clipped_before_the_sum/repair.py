"""Repairs fm50: the sum of the replicas' gradients is clipped, by a class of the optimizer or in the step.

The class does it before Keras clips a replica's share of the sum.
"""

import ast

from ...examiner.blame import keyword, name_of, spans
from ...examiner.edits import inserted
from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_sums import CONTEXT, SUMMED

NAME = "ClipsTheSum"
# How the sum is clipped, by the argument of the optimizer, which is an attribute of it, too.
CLIPPED = {
    "clipnorm": "[tf.clip_by_norm(each, self.clipnorm) for each in total]",
    "global_clipnorm": "tf.clip_by_global_norm(total, self.global_clipnorm)[0]",
    "clipvalue": "[tf.clip_by_value(each, -self.clipvalue, self.clipvalue) for each in total]",
}
# Variables without a gradient keep None, and gradients of some rows, as of an `Embedding`, are added up as whole ones.
CLASS = """\
@tf.keras.utils.register_keras_serializable()
class {name}({optimizer}):
    def apply(self, grads, trainable_variables=None):
        replica = tf.distribute.get_replica_context()
        total = [tf.convert_to_tensor(each) for each in grads if each is not None]
        total, n = replica.all_reduce("SUM", total), replica.num_replicas_in_sync
        own = iter([each / n for each in {clipped}])
        super().apply([each if each is None else next(own) for each in grads], trainable_variables)


"""


REPLICAS = f"{CONTEXT}.num_replicas_in_sync"
SHARE = f"[each / {REPLICAS} for each in {{0}}]"  # what an optimizer adds up again
SHARES = f"{{0}} = {SHARE}"


# One device may train otherwise with it: Keras takes the norm of an `Embedding`'s gradients before it adds up those of one row.
@repairs("fm50")
def clip_the_sum(source: Source, line: int) -> Ways:
    for call in source.of(ast.Call):
        limits = [name for name in CLIPPED if keyword(call, name) is not None]
        made_of = call.args[0] if name_of(call.func) == "partial" and call.args else call.func
        if spans(call, line) and len(limits) == 1 and is_optimizer(source, made_of):
            clipped, optimizer = CLIPPED[limits[0]], source.code(made_of)
            text = CLASS.format(name=NAME, optimizer=optimizer, clipped=clipped)
            made = source.insert_before(source.outermost(call), *text.splitlines())
            yield [made, source.replace(made_of, NAME)]
    yield from clip_in_step(source, line)
    yield from sum_in_step(source, line)


def is_optimizer(source: Source, made_of: ast.expr) -> bool:
    imports = [each for each in source.of(ast.ImportFrom) if "optimizers" in (each.module or "")]
    imported = {alias.asname or alias.name for each in imports for alias in each.names}
    imported |= {each.name for each in source.of(ast.ClassDef)}
    return ".optimizers." in f".{source.code(made_of)}" or source.code(made_of) in imported


def clip_in_step(source: Source, line: int) -> Ways:
    """Yields the sum in place of what a statement clips, and a share of what comes of it: by a statement, or in its place."""
    statement = source.simple_statement(line)
    clipped = clipped_in(statement) if isinstance(statement, ast.Assign) else ""
    for call in source.of(ast.Call, statement) if statement else ():
        if name_of(call.func).startswith("clip_by_") and call.args and statement:
            given = call.args[0]
            divided = inserted(source.end(call), f" / {REPLICAS}")
            below = source.insert_after(statement, SHARES.format(clipped)) if clipped else divided
            yield [source.replace(given, SUMMED.format(source.code(given))), below]


def sum_in_step(source: Source, line: int) -> Ways:
    """Yields the sum of all replicas where a step computes its gradients, and a share of it for the optimizer."""
    statement = source.statement(line)
    step = source.around(statement)[0] if statement else source.tree
    computed = source.calls("gradient", step)
    applied = source.calls(("apply_gradients", "apply"), step)
    zipped = [each for call in applied for each in source.calls("zip", call)] or applied
    given = [call.args[0] for call in zipped if call.args]
    if len(computed) == len(given) == 1:
        own = source.code(computed[0])
        is_inside = computed[0] in ast.walk(given[0])
        summed = [] if is_inside else [source.replace(computed[0], SUMMED.format(own))]
        shared = source.code(given[0])
        shared = shared.replace(own, SUMMED.format(own)) if is_inside else shared
        yield [*summed, source.replace(given[0], SHARE.format(shared))]


def clipped_in(statement: ast.Assign) -> str:
    """Returns the name that an assignment gives to the gradients, alone or before their norm."""
    match statement.targets[0]:
        case ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_]):
            return name
    return ""
