"""Every error and warning that is worded in a module which the modes touch, and which of them are judged to be none."""

import ast
import functools
import importlib.util
import re
import tomllib
from pathlib import Path

PACKAGES = Path(importlib.util.find_spec("tensorflow").origin).parents[1]
DISTRIBUTE = """distribute_lib mirrored_run mirrored_strategy values values_util cross_device_ops distribute_utils input_lib
tpu_strategy collective_all_reduce_strategy"""
MODULES = (
    *(f"tensorflow/python/distribute/{each}.py" for each in DISTRIBUTE.split()),
    "tensorflow/python/checkpoint/checkpoint.py",
    "tensorflow/python/checkpoint/restore.py",
    "tensorflow/python/training/py_checkpoint_reader.py",
    "tensorflow/python/eager/polymorphic_function/polymorphic_function.py",
    "tensorflow/python/framework/func_graph.py",
    "keras/src/optimizers/base_optimizer.py",
    "keras/src/saving/saving_api.py",
    "keras/src/saving/saving_lib.py",
    "keras/src/saving/serialization_lib.py",
)
FEW = 4  # words that a message has at least
FILLED = ("class", "2")  # what may stand where a message is filled in


@functools.cache
def none() -> tuple[str, ...]:
    """What is judged to be none of the modes, from tensorflow_messages.toml."""
    by_reason = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return tuple(each for texts in by_reason.values() for each in texts.splitlines() if each)


@functools.cache
def judged() -> re.Pattern:
    """What fits any text of the list."""
    return re.compile("|".join(re.escape(each).replace(r"\.\.\.", ".*") for each in none()))


@functools.cache
def messages() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The module of each message, and the message in each way in which it is filled."""
    return tuple((module, said) for module in MODULES for said in dict.fromkeys(worded(module)))


def worded(module: str):
    for node in ast.walk(ast.parse((PACKAGES / module).read_text())):
        kind, said = raised(node) or warned(node) or ("", None)
        texts = tuple(" ".join(text_of(said, fill).split()) for fill in FILLED) if said else ("",)
        if len(texts[0].split()) >= FEW:
            yield tuple(f"{kind}: {text}" for text in texts)


def raised(node):
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        return ast.unparse(node.exc.func).split(".")[-1], node.exc.args[0]


def warned(node):
    if (
        isinstance(node, ast.Call)
        and node.args
        and ast.unparse(node.func).endswith((".warning", ".warn"))
    ):
        return "WARNING", node.args[0]


def text_of(node, fill: str) -> str:
    """The text of a string that is put together, with something for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r"%[sdr]|\{[^}]*\}", fill, text)
        case ast.JoinedStr(values=parts):
            return "".join(text_of(each, fill) or fill for each in parts)
        case ast.BinOp(left=left, op=op, right=right):
            return text_of(left, fill) + (text_of(right, fill) if isinstance(op, ast.Add) else "")
        case ast.Call(func=ast.Attribute(value=text)):
            return text_of(text, fill)
    return ""
