"""An edit that several modes share: an optimizer creates its variables where it is made."""

from __future__ import annotations

import ast
import re

from .blame import first_argument, targets_in
from .repair import Binding, Source, Ways, names

OPTIMIZERS = re.compile(r"\boptimizers\.")  # in the code of what makes one
WEIGHTS = re.compile(r"(.+)\.(?:(variables|weights)|trainable_(?:variables|weights))")
TRAINED = "trainable_variables"


def build_where_made(source: Source) -> Ways:
    """Yields for what trains as an optimizer does, and each model that it trains, the line that creates its variables."""
    for made, target, _ in source.makers():
        optimizer = source.code(target)
        for model, weights in trained_by(source, optimizer):
            yield from built_after(source, made, optimizer, model, weights)


def built_after(source: Source, made: Binding, optimizer: str, model: str, weights: str) -> Ways:
    """Yields the line below the statements that make an optimizer and its model, if they stand in one block."""
    names_of_model = {model, f"self.{model}", model.removeprefix("self.")}
    own = [
        each
        for each in source.assignments()
        if source.function(each) is source.function(made)
        and names_of_model & {*map(source.code, targets_in(each))}
    ]
    later = [each for each in own if each.lineno > made.lineno and each in source.block(made)]
    place = later[-1] if later else made
    known = model.partition(".")[0] in source.names_before(made) - {"self"}
    if source.simple_statement(place.lineno) is place and (later or known or own):
        name = source.code(targets_in(own[0])[0]) if own else model
        yield [source.insert_after(place, f"{optimizer}.build({name}.{weights})")]


def trained_by(source: Source, optimizer: str) -> list[tuple[str, str]]:
    """Returns the models, as code, whose weights an optimizer is given with gradients, or that are compiled with it.

    Beside each is the attribute that has them.
    """
    found = []
    for call in source.calls(("build", "apply_gradients", "apply")):
        zipped = [each.args for each in source.calls("zip", call)]
        given = zipped[0] if zipped else call.args
        if len(given) in (1, 2) and of_one_name(source, call.func, optimizer):
            found += weights_of(source, given[-1])
    for call in source.calls("compile"):
        chosen = first_argument(call, "optimizer")
        if chosen is not None and source.code(chosen) == optimizer:
            found += [(each, TRAINED) for each in names(call.func)]
    return list(dict.fromkeys(found))


def of_one_name(source: Source, method: ast.expr, optimizer: str) -> bool:
    """Tells whether a method is one of an object that has the name of the optimizer, as its attribute elsewhere."""
    name = source.code(method).rpartition(".")[0].rpartition(".")[2]
    return name == optimizer.rpartition(".")[2]


def weights_of(source: Source, given: ast.expr) -> list[tuple[str, str]]:
    """Returns the model whose weights are given, in their place or by a name that they were assigned to."""
    is_of_model = WEIGHTS.fullmatch(source.code(source.resolved(given)))
    return [(is_of_model[1], is_of_model[2] or TRAINED)] if is_of_model else []
