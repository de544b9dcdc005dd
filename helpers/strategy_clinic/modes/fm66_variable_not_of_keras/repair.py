"""Repairs fm66: a layer makes its variables by `add_weight`, by which Keras 3 knows them."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

# With the same shape and first value, by the function that returns it, and for any other value.
FILLED = {"zeros": '"zeros"', "ones": '"ones"'}
KEPT = "name", "trainable", "dtype"


@repairs("fm66")
def add_weights(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    """Yields `add_weight` for all variables of the class that may be trained, since each of them would be found."""
    statement = source.statement(line)
    own = source.class_of(statement) if statement else None
    made = [call for call in source.calls("Variable", own) if is_weight(call)] if own else []
    yield [source.replace(call, added(source, call)) for call in made]


def is_weight(call: ast.Call) -> bool:
    flag = keyword(call, "trainable")
    is_known = {word.arg for word in call.keywords} <= {"initial_value", *KEPT}
    return is_known and not (isinstance(flag, ast.Constant) and flag.value is False)


def added(source: Source, call: ast.Call) -> str:
    value = call.args[0] if call.args else keyword(call, "initial_value")
    words = [word for word in call.keywords if word.arg in KEPT]
    kept = "".join(f", {word.arg}={source.code(word.value)}" for word in words)
    return f"self.add_weight({of_value(source, value)}{kept})"


def of_value(source: Source, value: ast.expr | None) -> str:
    match value:
        case ast.Call(args=[shape], keywords=[]) if name_of(value.func) in FILLED:
            of_one = isinstance(shape, ast.Constant) and isinstance(shape.value, int)
            written = f"({source.code(shape)},)" if of_one else source.code(shape)
            return f"shape={written}, initializer={FILLED[name_of(value.func)]}"
        case ast.Constant(value=int() | float()):
            constant = f"tf.keras.initializers.Constant({source.code(value)})"
            return f"shape=(), initializer={constant}"
    code = source.code(value) if value else "0.0"
    return f"shape=tf.convert_to_tensor({code}).shape, initializer=lambda *_, **__: {code}"
