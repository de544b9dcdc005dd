"""Repairs fm08: the path of a checkpoint is asked for in the folder that the file saves into."""

import ast
import posixpath
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

RESTORES = "restore", "read"


@repairs("fm08")
def ask_for_latest(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is None:
        return
    for call in [call for name in RESTORES for call in source.calls(name, statement)]:
        path = call.args[0] if call.args else keyword(call, "save_path")
        if path is not None and (isinstance(path, ast.Constant) or is_latest(path)):
            for folder in folders(source):
                yield [source.replace(path, f"tf.train.latest_checkpoint({folder})")]


def is_latest(path: ast.expr) -> bool:
    return isinstance(path, ast.Call) and name_of(path.func) == "latest_checkpoint"


def folders(source: Source) -> list[str]:
    """Returns the folders, as code, into which the file saves: that of a path for `save`, or a manager's directory."""
    found = []
    for call in source.calls("save"):
        path = call.args[0] if call.args else keyword(call, "file_prefix")
        if isinstance(path, ast.Constant) and isinstance(path.value, str):
            found.append(repr(posixpath.dirname(path.value) or ".").replace("'", '"'))
    for call in source.calls("CheckpointManager"):
        directory = call.args[1] if len(call.args) > 1 else keyword(call, "directory")
        if directory is not None and isinstance(directory, (ast.Constant, ast.Name)):
            found.append(source.code(directory))
    return list(dict.fromkeys(found))
