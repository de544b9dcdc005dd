"""Repairs fm69: the model is saved and loaded before the later `fit`, or told to forget the epoch of the backup."""

import ast

from ...examiner.repair import Source, Ways, repairs_statement

FILE = "trained.keras"
# For a model whose classes Keras cannot load, and for one that other code has, too.
FORGET = "{}._initial_epoch = None  # a private attribute, in which Keras 3 keeps the epoch of the backup"


@repairs_statement("fm69")
def load_again(source: Source, statement: ast.stmt) -> Ways:
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
