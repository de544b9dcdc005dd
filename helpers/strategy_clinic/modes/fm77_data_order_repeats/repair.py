"""Repairs fm77: the order of an epoch follows from its number, and the first epoch is that where training goes on."""

import ast

from ...examiner.blame import keyword, last_line, name_of
from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_values import of_generators, of_objects


@repairs("fm77")
def count_on(source: Source, line: int) -> Ways:
    statement = source.statement(line)
    for part in headers(source, statement) if statement else ():
        yield from from_first(source, part)
        yield from counted_on(source, part)
        yield from begun_with(source, part)
    yield from counted_on(source, source.tree)
    yield from of_generators(source)
    for counted in source.calls("range"):
        yield from from_first(source, counted)
    yield from order_of_epoch(source)
    yield from of_objects(source)


def headers(source: Source, statement: ast.stmt) -> list[ast.AST]:
    """Returns a statement, or what its loop goes over, and what the loops around it go over."""
    loops = [each.iter for each in source.parents_of(statement) if isinstance(each, ast.For)]
    return [statement.iter if isinstance(statement, ast.For) else statement, *loops]


def from_first(source: Source, part: ast.AST) -> Ways:
    """Yields, for each difference of two numbers, a range that begins at the second, or the first number alone."""
    for apart in source.of(ast.BinOp, part):
        if isinstance(apart.op, ast.Sub):
            whole, first = source.code(apart.left), source.code(apart.right)
            outer = source.parents[apart]
            if isinstance(outer, ast.Call) and name_of(outer.func) == "range":
                yield [source.replace(apart, f"{first}, {whole}")]
            yield [source.replace(apart, whole)]


def counted_on(source: Source, part: ast.AST) -> Ways:
    """Yields a count of a range that begins as the range does."""
    for counted in source.calls("enumerate", part):
        match counted:
            case ast.Call(args=[ast.Call(func=ast.Name(id="range"), args=[first, _])]):
                yield [source.add_argument(counted, source.code(first))]


def begun_with(source: Source, part: ast.AST) -> Ways:
    """Yields the epoch with which `fit` begins in place of a 0 that its data are given."""
    for word in source.of(ast.keyword, part):
        for number in source.of(ast.Constant, part) if word.arg == "initial_epoch" else ():
            is_verbose = getattr(source.parents[number], "arg", "") == "verbose"
            if number.value == 0 and type(number.value) is int and not is_verbose:
                yield [source.replace(number, source.code(word.value))]


def order_of_epoch(source: Source) -> Ways:
    """Yields a shuffle that is moved into the loop over epochs below it, with the epoch as its seed."""
    for statement in source.of(ast.Assign):
        seeds = [keyword(call, "seed") for call in source.calls("shuffle", statement)]
        below = [e for e in source.below(statement) if isinstance(e, ast.For | ast.While)]
        loops = [each for each in below if counter_of(each)]
        if len(seeds) == 1 and isinstance(seeds[0], ast.Constant) and loops:
            first, last = statement.lineno, last_line(statement)
            text, seed = source.code(statement), source.code(seeds[0])
            drawn = text.replace(f"seed={seed}", f"seed={seed} + int({counter_of(loops[0])})")
            if first == last:
                yield [source.delete(first, last), source.insert_before(loops[0].body[0], drawn)]


def counter_of(loop: ast.For | ast.While) -> str:
    """Returns the name that counts a loop."""
    match loop:
        case (
            ast.For(target=ast.Name(id=name)) | ast.While(test=ast.Compare(left=ast.Name(id=name)))
        ):
            return name
    return ""
