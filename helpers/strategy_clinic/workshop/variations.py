"""Other data for an exercise: each expression that makes data is replaced by another one, wherever a program has it.

A variation knows no mode. It names what stands in the text of the exercise, so a program that makes its data otherwise has none
of it, and cannot be run with other data.
"""

import ast
from collections.abc import Sequence

from ..base.errors import UserError

# The calls that make the data of an exercise. A variable is data if nothing but a number is given.
MAKES_ARRAY = {"np.array", "np.ones", "tf.constant", "tf.ones", "tf.range", "tf.zeros"}
MAKES_DATASET = {"tf.data.Dataset.from_tensor_slices", "tf.data.Dataset.range"}
MAKES_VARIABLE = {"tf.Variable"}
# By name, what stands for the data n.
VARIATIONS = {"turned": "7 - {n}", "doubled": "{n} + {n}", "reversed": "{n}[::-1]"}
# Of the first data of an exercise alone: inputs and labels that are both reversed are the same examples.
OF_THE_FIRST = {"reversed"}
FLAGS = {0.0, 1.0}  # have no other values, so they can only change places


class OtherData(UserError):
    """A program does not make the data of its exercise as they were handed out."""


def data_of(text: str) -> list[str]:
    """Returns the expressions that make data in a program, each once, in their order."""
    nodes = list(ast.walk(ast.parse(text)))
    counted = {id(node.iter) for node in nodes if isinstance(node, ast.For)}  # the steps of a loop
    found = [ast.unparse(each) for each in nodes if makes_data(each) and id(each) not in counted]
    return list(dict.fromkeys(found))


def makes_data(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name, simple = ast.unparse(node.func), len(node.args) == 1 and not node.keywords
    if name in MAKES_DATASET:
        # Of a tuple, each part is data for itself.
        return all(isinstance(each, ast.Constant | ast.List | ast.Name) for each in node.args)
    if name in MAKES_VARIABLE:
        return simple and isinstance(node.args[0], ast.Constant)
    return name in MAKES_ARRAY


def variations_of(data: Sequence[str]) -> list[str]:
    """Returns the names of the variations after which data are still of their kind."""
    if any(numbers_in(each) == FLAGS for each in data):
        return sorted(OF_THE_FIRST)
    return list(VARIATIONS) if data else []


def numbers_in(expression: str) -> set[float]:
    """Returns the numbers with a decimal point."""
    nodes = ast.walk(ast.parse(expression))
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return {each for each in constants if isinstance(each, float)}


def varied(text: str, data: Sequence[str], variation: str) -> str:
    """Returns a program with a variation of its exercise's data."""
    replaced = data[:1] if variation in OF_THE_FIRST else data
    tree = Replacing(replaced, VARIATIONS[variation]).visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def require_data(text: str, data: Sequence[str]) -> None:
    """Raises OtherData if a program has not all data of its exercise."""
    found = set(data_of(text))
    if missing := [each for each in data if each not in found]:
        raise OtherData(f"it does not make its data as they were handed out: {missing[0]}")


class Replacing(ast.NodeTransformer):
    def __init__(self, data: Sequence[str], words: str) -> None:
        self.data, self.words = data, words

    def visit(self, node: ast.AST) -> ast.AST:
        words = ast.unparse(node) if makes_data(node) else ""
        if words not in self.data or not words:
            changed: ast.AST = super().visit(node)
            return changed
        return self.in_place_of(node, words)

    def in_place_of(self, node: ast.AST, words: str) -> ast.AST:
        assert isinstance(node, ast.Call)
        name, changed = ast.unparse(node.func), self.words.format(n=words)
        if name in MAKES_DATASET:
            changed = f"{words}.map(lambda number: {self.words.format(n='number')})"
        elif name in MAKES_VARIABLE:
            changed = f"{name}({self.words.format(n=ast.unparse(node.args[0]))})"
        return ast.parse(changed, mode="eval").body
