"""Repairs fm08: the path of a checkpoint is asked for in the folder that the file saves into."""

import ast
import builtins
import posixpath
import re
from collections.abc import Callable

from ...examiner.blame import first_argument, keyword
from ...examiner.repair import Source, Ways, repairs_statement
from .rule import RESTORES

WORDS = re.compile(r"\w+")
TOLD = re.compile(r"no checkpoint is found in (?P<asked>[^,]+),.* (?P<there>\S+) was there")


@repairs_statement("fm08")
def ask_for_latest(source: Source, statement: ast.stmt) -> Ways:
    yield from in_other_folder(source, statement)
    for name in (*RESTORES, "latest_checkpoint"):
        for call in source.calls(name, statement):
            path = first_argument(call, "save_path")
            if path is not None and (isinstance(path, ast.Constant) or name not in RESTORES):
                asked = call if name not in RESTORES else path
                for folder in sorted(folders(source, statement), key=unlike(source.code(path))):
                    yield [source.replace(asked, f"tf.train.latest_checkpoint({folder})")]


def in_other_folder(source: Source, statement: ast.stmt) -> Ways:
    """Yields the folder in which the finding tells a checkpoint: one in what is asked for, or that of a prefix."""
    told = TOLD.search(source.said)
    for call in source.calls("latest_checkpoint", statement):
        path = first_argument(call, "checkpoint_dir")
        if path is None or told is None:
            return
        asked, folder = told["asked"], posixpath.dirname(told["there"])
        if folder.startswith(f"{asked}/"):
            inner = folder.removeprefix(f"{asked}/")
            yield [source.replace(path, f'os.path.join({source.code(path)}, "{inner}")')]
        elif folder == posixpath.dirname(asked):
            yield [source.replace(path, f"os.path.dirname({source.code(path)})")]


def folders(source: Source, statement: ast.stmt) -> list[str]:
    """Returns the folders, as code, into which the file saves: that of a path for `save`, or a manager's directory."""
    found = []
    for call in source.calls("save"):
        path = first_argument(call, "file_prefix")
        found.append((path, folder_of(source, path) if path else ""))
    for call in source.calls("CheckpointManager"):
        directory = call.args[1] if len(call.args) > 1 else keyword(call, "directory")
        found.append((directory, source.code(directory) if directory else ""))
    seen = [folder for path, folder in found if path and is_known(source, statement, path)]
    return list(dict.fromkeys(filter(None, seen)))


def unlike(path: str) -> Callable[[str], int]:
    """Returns a key by which code with more of the words of a path comes first."""
    return lambda code: -len({*WORDS.findall(code)} & {*WORDS.findall(path)})


def is_known(source: Source, statement: ast.stmt, path: ast.expr) -> bool:
    used = [each for each in source.of(ast.Name, path) if not hasattr(builtins, each.id)]
    return all(source.can_see(statement, each) for each in used)


def folder_of(source: Source, path: ast.expr) -> str:
    """Returns the folder of a path as code: what its last part is added to."""
    match path:
        case ast.Constant(value=str(value)):
            return repr(posixpath.dirname(value) or ".").replace("'", '"')
        case ast.Call(func=ast.Attribute(attr="join"), args=[folder, _]):
            return source.code(folder)
        case ast.Call(func=ast.Name(id="str"), args=[ast.BinOp(left=folder, op=ast.Div())]):
            return f"str({source.code(folder)})"
        case ast.BinOp(left=folder, op=ast.Div() | ast.Add()):
            return f"str({source.code(folder)})"
    return f"os.path.dirname({source.code(path)})"
