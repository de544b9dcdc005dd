"""Repairs fm36: a strategy over other devices reduces without a group of its own."""

import ast

from ...examiner.blame import keyword
from ...examiner.repair import Source, Ways, repairs

REDUCTION = "cross_device_ops=tf.distribute.ReductionToOneDevice()"


@repairs("fm36")
def reduce_without_group(source: Source, line: int) -> Ways:
    makers = [call for call in source.calls("MirroredStrategy") if is_open(call)]
    last = [call for call in makers if call.lineno <= line][-1:]
    here = [call for call in makers if call.lineno == line]
    for calls in (here, last, makers):
        if calls:
            yield [source.add_argument(call, REDUCTION) for call in calls]


def is_open(call: ast.Call) -> bool:
    return len(call.args) < 2 and keyword(call, "cross_device_ops") is None
