"""Repairs fm50: a class of the optimizer clips the sum of the replicas' gradients before Keras clips a replica's share of it."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, spans
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

NAME = "ClipsTheSum"
# How the sum is clipped, by the argument of the optimizer, which is an attribute of it, too.
CLIPPED = {
    "clipnorm": "[tf.clip_by_norm(each, self.clipnorm) for each in total]",
    "global_clipnorm": "tf.clip_by_global_norm(total, self.global_clipnorm)[0]",
    "clipvalue": "[tf.clip_by_value(each, -self.clipvalue, self.clipvalue) for each in total]",
}
CLASS = """\
class {name}({optimizer}):
    def apply(self, grads, trainable_variables=None):
        context = tf.distribute.get_replica_context()
        total = context.all_reduce("SUM", list(grads))
        total = {clipped}
        share = [each / context.num_replicas_in_sync for each in total]
        super().apply(share, trainable_variables)


"""


@repairs("fm50")
def clip_the_sum(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    for call in source.of(ast.Call):
        limits = [name for name in CLIPPED if keyword(call, name) is not None]
        if spans(call, line) and len(limits) == 1 and ".optimizers." in source.code(call.func):
            clipped, optimizer = CLIPPED[limits[0]], source.code(call.func)
            text = CLASS.format(name=NAME, optimizer=optimizer, clipped=clipped)
            made = source.insert_before(source.outermost(call), *text.splitlines())
            yield [made, source.replace(call.func, NAME)]
