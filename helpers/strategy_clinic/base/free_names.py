"""Statements as Python's own compiler sees them: the names that each makes and uses, and what some names need."""

import ast
import symtable
from functools import cache


def one_import_each(body: list) -> list:
    """One name for each import, so that imports can be kept and compared one by one."""
    parts = []
    for statement in body:
        if isinstance(statement, ast.ImportFrom):
            parts += [
                ast.ImportFrom(statement.module, [alias], statement.level)
                for alias in statement.names
            ]
        elif isinstance(statement, ast.Import):
            parts += [ast.Import([alias]) for alias in statement.names]
        else:
            parts.append(statement)
    return parts


@cache
def names_of(text: str) -> tuple[frozenset, frozenset]:
    """The names that a statement makes at the top level, and those that it takes from there."""
    top, *inner = all_tables(symtable.symtable(text, "statement", "exec"))
    own = top.get_symbols()
    far = [symbol for table in inner for symbol in table.get_symbols() if symbol.is_global()]
    made = [each for each in own if each.is_assigned() or each.is_imported()]
    made += [each for each in far if each.is_assigned()]
    used = [each for each in own if each.is_referenced()] + far
    return frozenset(each.get_name() for each in made), frozenset(each.get_name() for each in used)


def all_tables(table) -> list:
    return [table] + [each for child in table.get_children() for each in all_tables(child)]


def binds(statement) -> frozenset:
    return names_of(ast.unparse(statement))[0]


def uses(statement) -> frozenset:
    return names_of(ast.unparse(statement))[1]


def union(function, listed) -> set:
    return set().union(*map(function, listed))


def needed(listed: list, wanted: set) -> list:
    """The statements that make the wanted names, and all that those need in their turn."""
    kept = [each for each in listed if binds(each) & wanted]
    more = wanted | union(uses, kept)
    return kept if more == wanted else needed(listed, more)


def unparsed(listed: list) -> str:
    return "\n\n".join(ast.unparse(each) for each in listed)
