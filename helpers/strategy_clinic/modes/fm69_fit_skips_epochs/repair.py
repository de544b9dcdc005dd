"""Repairs fm69: the model is saved and loaded before the later `fit`, or told to forget the epoch of the backup."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs_statement

FILE = "trained.keras"
# For a model whose classes Keras cannot load, and for one that other code has, too.
FORGET = "{}._initial_epoch = None  # a private attribute, in which Keras 3 keeps the epoch of the backup"


@repairs_statement("fm69")
def load_again(source: Source, statement: ast.stmt) -> Iterator[Sequence[Edit]]:
    for call in source.calls("fit", statement):
        if isinstance(call.func, ast.Attribute):
            model = source.code(call.func.value)
            loaded = f'{model} = tf.keras.models.load_model("{FILE}")'
            saved = f'{model}.save("{FILE}")'
            yield [
                source.insert_before(
                    statement, saved, *source.in_scope_of(model, statement, loaded)
                )
            ]
            yield [source.insert_before(statement, FORGET.format(model))]
