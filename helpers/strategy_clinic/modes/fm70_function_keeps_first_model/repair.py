"""Repairs fm70: the traced functions are made again for a model that is made again."""

import ast

from ...examiner.blame import is_tf_function
from ...examiner.repair import Source, Ways, decorators, repairs

AGAIN = "{0} = tf.function({0}.python_function)"


@repairs("fm70")
def trace_again(source: Source, line: int) -> Ways:
    """Yields new functions in the loop in which the model is made, or at the end of the method that makes it."""
    for made in filter(None, map(source.statement, source.told or below(source, line))):
        scope, own = source.function(made), source.class_of(made)
        around = [each for each in source.parents_of(made) if source.function(each) is scope]
        loops = [each for each in around if isinstance(each, ast.For | ast.While)]
        names = traced(source, scope)
        for place in loops[0].body if loops and names else ():
            if place is made or place in around:
                yield [source.insert_after(place, *map(AGAIN.format, names))]
        methods = methods_traced(source, own) if own else []
        if methods and isinstance(scope, ast.FunctionDef):
            yield [source.insert_after(scope.body[-1], *map(AGAIN.format, methods))]


def methods_traced(source: Source, own: ast.AST) -> list[str]:
    """Returns the traced functions of an object: methods, and attributes that one of its methods gives them."""
    kept = [source.code(target) for _, target, call in source.makers(own) if is_tf_function(call)]
    methods = [f"self.{name}" for name in traced(source, own)]
    return [*methods, *(name for name in kept if name.startswith("self."))]


def below(source: Source, line: int) -> list[int]:
    """Returns the lines below one that make something in a loop."""
    return [each.lineno for each, *_ in source.makers() if each.lineno > line]


def traced(source: Source, scope: ast.AST) -> list[str]:
    """Returns the names that a function, a class or the module gives to traced functions."""
    defined = [each for each in source.of(ast.FunctionDef) if source.function(each) is scope]
    names = [each.name for each in defined if any(map(is_tf_function, decorators(each)))]
    made = [each for each in source.makers() if source.function(each[0]) is scope]
    names += [source.code(target) for _, target, call in made if is_tf_function(call)]
    return list(dict.fromkeys(names))
