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


@repairs("fm50")
def clip_the_sum(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    for call in source.of(ast.Call):
        limits = [name for name in CLIPPED if keyword(call, name) is not None]
        if spans(call, line) and len(limits) == 1 and ".optimizers." in source.code(call.func):
            clipped, optimizer = CLIPPED[limits[0]], source.code(call.func)
            text = CLASS.format(name=NAME, optimizer=optimizer, clipped=clipped)
            made = source.insert_before(source.outermost(call), *text.splitlines())
            yield [made, source.replace(call.func, NAME)]
