"""Repairs fm54: a callback keeps its best value in a file, and reads it when `fit` begins; what saves comes last."""

import ast

from ...examiner.blame import name_of
from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_saved import hold_variables
from ...examiner.repair_values import keep_number, of_objects

# By callback, the attributes that it forgets.
FORGOTTEN = {
    "ModelCheckpoint": ("best",),
    "EarlyStopping": ("best", "wait"),
    "ReduceLROnPlateau": ("best", "wait", "cooldown_counter"),
}
REMEMBERING = '''\
class {name}({base}):
    """Keeps what the callback remembers in a file, for a restart."""

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if tf.io.gfile.exists("{file}"):
            {targets} = map(float, tf.io.read_file("{file}").numpy().split())

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self.best is not None:
            tf.io.write_file("{file}", f"{values}")
'''
# As BackupAndRestore does with its backup, unless it has `delete_checkpoint=False`.
FORGETTING = """
    def on_train_end(self, logs=None):
        super().on_train_end(logs)
        if tf.io.gfile.exists("{file}"):
            tf.io.gfile.remove("{file}")
"""


@repairs("fm54", keeps_training=True)
def remember(source: Source, line: int) -> Ways:
    yield from keep_in_file(source, line)
    yield from save_last(source, line)
    yield from keep_number(source, line)
    yield from hold_variables(source)
    yield from of_objects(source)


def save_last(source: Source, line: int) -> Ways:
    """Yields lists of callbacks in which another one is the last: what others set is saved after they have."""
    statement = source.simple_statement(line)
    for word in source.of(ast.keyword, statement) if statement else ():
        if word.arg == "callbacks" and isinstance(word.value, ast.List):
            given = list(map(source.code, word.value.elts))
            for each in given[:-1]:
                order = [*(other for other in given if other is not each), each]
                yield [source.replace(word.value, f"[{', '.join(order)}]")]


def keep_in_file(source: Source, line: int) -> Ways:
    for call in source.of(ast.Call):
        kind = name_of(call.func)
        if call.lineno == line and kind in FORGOTTEN:
            name = f"Remembering{kind}"
            outer = source.outermost(call)
            made = source.replace(call.func, name)
            for template in (REMEMBERING + FORGETTING, REMEMBERING):
                text = written(template, kind, name, source.code(call.func))
                yield [source.insert_before(outer, *text.split("\n"), ""), made]


def written(template: str, kind: str, name: str, base: str) -> str:
    kept = [f"self.{attribute}" for attribute in FORGOTTEN[kind]]
    return template.format(
        name=name,
        base=base,
        file=f"{kind}.txt",
        targets=", ".join(kept) + ("," if len(kept) == 1 else ""),
        values=" ".join(f"{{{each}}}" for each in kept),
    )
