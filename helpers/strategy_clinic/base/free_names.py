"""Python statements: which names each binds and uses, and what has to be there for some names."""

import ast
import symtable
from collections.abc import Callable, Iterable
from functools import cache


class Comprehensions(ast.NodeTransformer):
    """Makes generators of comprehensions: since Python 3.12 the variables of others are listed as the module's names."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.expr:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value]), node.generators)


@cache
def names_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names that a statement binds in its module, and those that it reads from there."""
    text = ast.unparse(Comprehensions().visit(ast.parse(text)))
    top, *inner = tables_in(symtable.symtable(text, "statement", "exec"))
    own = top.get_symbols()
    outer = [symbol for table in inner for symbol in table.get_symbols() if symbol.is_global()]
    bound = {symbol.get_name() for symbol in own if symbol.is_assigned() or symbol.is_imported()}
    bound |= {symbol.get_name() for symbol in outer if symbol.is_assigned()}
    read = {symbol.get_name() for symbol in own if symbol.is_referenced()}
    return frozenset(bound), frozenset(read | {symbol.get_name() for symbol in outer})


def tables_in(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    """Returns the symbol table of a block, and those of all blocks in it."""
    return [table, *(inner for child in table.get_children() for inner in tables_in(child))]


def binds(statement: ast.stmt) -> frozenset[str]:
    return names_of(ast.unparse(statement))[0]


def uses(statement: ast.stmt) -> frozenset[str]:
    return names_of(ast.unparse(statement))[1]


def union(names_in: Callable[[ast.stmt], frozenset[str]], body: Iterable[ast.stmt]) -> set[str]:
    """Returns the names of all statements, where `names_in` is `binds` or `uses`."""
    return set().union(*map(names_in, body))


def needed(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """Returns the statements that bind these names, and all statements that those need."""
    while True:
        statements = [statement for statement in body if binds(statement) & names]
        more = names | union(uses, statements)
        if more == names:
            return statements
        names = more


def unparsed(body: Iterable[ast.stmt]) -> str:
    """Returns the source of the statements, with an empty line between two."""
    return "\n\n".join(map(ast.unparse, body))
