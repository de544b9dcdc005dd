"""Repairs fm19: what takes the mean gets the values of all examples, and not the mean of a replica's own."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, name_of
from ...examiner.edits import Edit
from ...examiner.repair import MEANS, Source, repairs

EACH = "tf.reduce_mean(tf.reshape({0}, [tf.shape({0})[0], -1]), axis=1)"  # one value an example


@repairs("fm19", keeps_training=True)
def values_of_examples(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is None:
        return
    for call in source.calls("update_state", statement):
        edits = [
            source.replace(each, source.code(each.args[0])) for each in source.over_all(MEANS, call)
        ]
        if edits:
            yield edits
    for reduced in source.calls("reduce"):
        axis, returned = keyword(reduced, "axis"), returns_of(source, reduced)
        if is_mean(reduced) and axis is not None and source.code(axis) == "None" and returned:
            over_examples = source.replace(axis, "0")
            for form in ("{0}", EACH):
                values = [form.format(source.code(each.args[0])) for each in returned]
                yield [over_examples, *map(source.replace, returned, values)]


def is_mean(reduced: ast.Call) -> bool:
    return bool(reduced.args) and ast.unparse(reduced.args[0]).strip("'").endswith("MEAN")


def returns_of(source: Source, reduced: ast.Call) -> list[ast.Call]:
    """Returns the means that the function returns which the replicas run for this reduction."""
    within = source.around(reduced)[0]
    runs = [call.args[0] for call in source.calls("run", within) if call.args]
    named = {name_of(each) for each in runs}
    functions = [each for each in source.of(ast.FunctionDef) if each.name in named]
    values = [each.value for function in functions for each in source.of(ast.Return, function)]
    means = [mean for each in values if each for mean in source.over_all(MEANS, each)]
    return [each for each in means if each in values]
