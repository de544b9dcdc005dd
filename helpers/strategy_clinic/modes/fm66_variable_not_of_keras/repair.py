"""Repairs fm66: a layer makes its variables by `add_weight`, by which Keras 3 knows them."""

import ast

from ...examiner.blame import is_constant, keyword
from ...examiner.repair import Source, Ways, repairs_statement

KEPT = "name", "trainable", "dtype", "aggregation"
FIRST = "shape=tf.convert_to_tensor({0}).shape, initializer=lambda *_, **__: {0}"
CONSTANT = "shape=(), initializer=tf.keras.initializers.Constant({0})"


@repairs_statement("fm66", compound=True)
def add_weights(source: Source, statement: ast.stmt) -> Ways:
    """Yields `add_weight` for all variables of the class that may be trained, since each of them would be found.

    If the finding is about one that is not trained, for all others, too.
    """
    own = source.class_of(statement)
    made = [call for call in source.calls("Variable", own) if len(call.args) == 1] if own else []
    state = {call for call in made if is_constant(keyword(call, KEPT[1]), False)}
    is_of_state = any(call in state for call in source.calls("Variable", statement))
    yield [
        source.replace(call, added(source, call))
        for call in made
        if {word.arg for word in call.keywords} <= {*KEPT} and (is_of_state or call not in state)
    ]


def added(source: Source, call: ast.Call) -> str:
    form = CONSTANT if isinstance(call.args[0], ast.Constant) else FIRST
    given = [
        form.format(source.code(call.args[0])),
        *map(of_keras, map(source.code, call.keywords)),
    ]
    return f"self.add_weight({', '.join(given)})"


def of_keras(argument: str) -> str:
    """Returns an argument of a variable of TensorFlow as Keras 3 names it: an aggregation by a word."""
    name, _, value = argument.partition("=")
    return f'{name}="{value.rpartition(".")[2].lower()}"' if name == "aggregation" else argument
