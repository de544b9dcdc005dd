"""Repairs fm57: a strategy of `tf.distribute` takes the place of a distribution of Keras."""

import ast

from ...examiner.blame import name_of
from ...examiner.repair import Source, Ways, is_strategy, repairs

MIRRORED = "tf.distribute.MirroredStrategy()"


@repairs("fm57")
def strategy_of_tensorflow(source: Source, line: int) -> Ways:
    for call in source.of(ast.Call):
        if call.lineno == line and name_of(call.func) == "set_distribution":
            set_strategy = f"tf.distribute.experimental_set_strategy({strategy_in(source)})"
            yield [source.replace(call, set_strategy)]
        if call.lineno == line and name_of(call.func) == "scope":
            yield [source.replace(call, f"{strategy_in(source)}.scope()")]


def strategy_in(source: Source) -> str:
    """Returns the name of the only strategy that the program makes, or else the call that makes one."""
    made = [source.code(target) for _, target, call in source.makers() if is_strategy(call)]
    return made[0] if len(made) == 1 else MIRRORED
