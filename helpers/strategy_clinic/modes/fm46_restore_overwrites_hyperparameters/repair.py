"""Repairs fm46: the learning rate from before the restore is set again after it, or it is set or read below or above."""

import ast

from ...examiner.blame import spans
from ...examiner.repair import Source, Ways, repairs_statement
from ...examiner.repair_saved import optimizers_made

KEPT = "rate_before_restore"
RESTORES = "restore", "read", "restore_or_initialize", "load_weights"
SAVES = "save", "write", "save_weights"


@repairs_statement("fm46")
def set_rate_again(source: Source, statement: ast.stmt) -> Ways:
    if KEPT in source.text:
        return
    yield from moved(source, statement)
    known = [*optimizers(source, statement), *optimizers_made(source, statement.lineno)]
    for optimizer in dict.fromkeys(known if source.calls(RESTORES, statement) else ()):
        rate = f"{optimizer}.learning_rate"
        yield [
            source.insert_before(statement, f"{KEPT} = float(tf.convert_to_tensor({rate}))"),
            source.insert_after(statement, f"{rate} = {KEPT}"),
        ]


def moved(source: Source, statement: ast.stmt) -> Ways:
    """Yields moves of the statement that sets or reads the rate, or of one around it, below a restore or above a save."""
    around = [each for each in source.parents_of(statement) if isinstance(each, ast.stmt)]
    for part in (statement, *around):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            return
        block = source.block(part)
        above = block[: block.index(part)]
        for each in source.below(part):
            if is_told(source, each) or source.calls(RESTORES, each):
                yield source.move(part, below=each)
        for save in [each for each in above[::-1] if source.calls(SAVES, each)]:
            yield source.move(part, above=save)


def is_told(source: Source, statement: ast.stmt) -> bool:
    return any(spans(statement, line) for line in source.told)


def optimizers(source: Source, statement: ast.stmt) -> list[str]:
    """Returns the optimizers that this statement may restore: of a Checkpoint's arguments, or of a model that it loads."""
    found = []
    for call in source.calls("restore", statement):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        made = source.assigned(source.code(owner), source.function(call)) if owner else None
        checkpoint = made or owner
        words = checkpoint.keywords if isinstance(checkpoint, ast.Call) else []
        given = {word.arg: word.value for word in words if isinstance(word.value, ast.Name)}
        found += [source.code(given["optimizer"])] if "optimizer" in given else []
        found += [f"{source.code(given['model'])}.optimizer"] if "model" in given else []
    for call in source.calls("load_weights", statement):
        if isinstance(call.func, ast.Attribute):
            found.append(f"{source.code(call.func.value)}.optimizer")
    return found
