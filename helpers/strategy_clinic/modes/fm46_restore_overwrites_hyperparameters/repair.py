"""Repairs fm46: the learning rate from before the restore is set again after it, or for the first time."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

KEPT = "rate_before_restore"


@repairs("fm46")
def set_rate_again(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is None or KEPT in source.text:
        return
    yield from moved_below(source, statement)
    for optimizer in optimizers(source, statement):
        rate = f"{optimizer}.learning_rate"
        yield [
            source.insert_before(statement, f"{KEPT} = float(tf.convert_to_tensor({rate}))"),
            source.insert_after(statement, f"{rate} = {KEPT}"),
        ]


def moved_below(source: Source, statement: ast.stmt) -> Iterator[Sequence[Edit]]:
    """Yields a move of the statement that sets the rate below the restore that the finding tells."""
    block = source.block(statement)
    for line in source.told:
        restore = source.simple_statement(line)
        if restore in block[block.index(statement) + 1 :]:
            last = statement.end_lineno or statement.lineno
            lines = [each.strip() for each in source.code(statement).splitlines()]
            yield [
                source.delete(statement.lineno, last),
                source.insert_after(restore, *lines),
            ]


def optimizers(source: Source, statement: ast.stmt) -> list[str]:
    """Returns the optimizers that this statement may restore: of a Checkpoint's arguments, or of a model that it loads."""
    found = []
    for call in source.calls("restore", statement):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        made = source.assignment(source.code(owner), source.function(call)) if owner else None
        checkpoint = made.value if made else owner
        words = checkpoint.keywords if isinstance(checkpoint, ast.Call) else []
        given = {word.arg: word.value for word in words if isinstance(word.value, ast.Name)}
        found += [source.code(given["optimizer"])] if "optimizer" in given else []
        found += [f"{source.code(given['model'])}.optimizer"] if "model" in given else []
    for call in source.calls("load_weights", statement):
        if isinstance(call.func, ast.Attribute):
            found.append(f"{source.code(call.func.value)}.optimizer")
    return found
