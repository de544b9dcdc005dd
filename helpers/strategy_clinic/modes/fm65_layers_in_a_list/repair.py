"""Repairs fm65: what an object keeps in a list becomes a tuple, whose layers a checkpoint follows."""

import ast

from ...examiner.blame import targets_in
from ...examiner.repair import Source, Ways, repairs


@repairs("fm65")
def tuples_for_lists(source: Source, line: int) -> Ways:
    """Yields tuples for all lists that objects of the file are given where they are made; one is one when it is filled."""
    edits = []
    for made in source.assignments():
        target, method = targets_in(made)[0], source.function(made)
        is_own = isinstance(target, ast.Attribute) and source.class_of(made) is not None
        if not is_own or not isinstance(method, ast.FunctionDef) or method.name != "__init__":
            continue
        match made.value:
            case ast.List(elts=[]):
                name = source.code(target)
                appends = [source.code(call.func) for call in source.calls("append", method)]
                if f"{name}.append" in appends:
                    edits.append(source.insert_after(method.body[-1], f"{name} = tuple({name})"))
            case ast.List() | ast.ListComp():
                edits.append(source.replace(made.value, f"tuple({source.code(made.value)})"))
            case ast.Name(id=name) if given := source.assigned(name, method):
                if isinstance(given, ast.List | ast.ListComp):
                    edits.append(source.replace(made.value, f"tuple({name})"))
    yield edits
