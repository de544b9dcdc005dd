"""Repairs fm19: what takes the mean gets the values of all examples, and not the mean of a replica's own."""

import ast
import re

from ...examiner.blame import MEANS, keyword
from ...examiner.repair import Source, Ways, parameters, repairs_statement
from ...examiner.repair_sums import (
    means_of_all,
    ratios_of_all,
    returned,
    run_by_replicas,
    words_for_mean,
)

EACH = "tf.reduce_mean(tf.reshape({0}, [tf.shape({0})[0], -1]), axis=1)"  # one value an example
SIZE = "tf.cast(tf.shape({})[0], tf.float32)"
ONE = re.compile(r"(\w+\.constant\()?1(\.0?)?\)?")  # what counts a batch as one
WEIGHTED = "tf.math.multiply_no_nan({}, {})"


@repairs_statement("fm19", keeps_training=True)
def values_of_examples(source: Source, statement: ast.stmt) -> Ways:
    for call in source.calls("update_state", statement):
        edits = [
            source.replace(each, source.code(each.args[0])) for each in source.over_all(MEANS, call)
        ]
        if edits:
            yield edits
    around = [source.around(each)[0] for each in source.calls("reduce")]
    own = source.around(statement)[0]
    for function in sorted(dict.fromkeys(around), key=lambda each: each is not own):
        yield from reduced_over_examples(source, function)


def reduced_over_examples(source: Source, caller: ast.AST) -> Ways:
    """Yields what the replicas return to a function that takes the mean of it: values, sums and sizes, or what all have."""
    calls = source.calls("reduce", caller)
    kinds = words_for_mean(source, calls)
    axes = [axis for each in calls if (axis := keyword(each, "axis"))]
    for function in run_by_replicas(source, caller) if kinds else ():
        values = [*returned(source, function)]
        means = [each for each in source.over_all(MEANS, function) if each in values]
        taken = [source.code(each.args[0]) for each in means]
        if means and axes and len(means) == len(values):
            for form in ("{0}", EACH):
                of_examples = [form.format(each) for each in taken]
                axis_edits = [source.replace(each, "0") for each in axes]
                yield [*axis_edits, *map(source.replace, means, of_examples)]
        counts = [each for each in values if ONE.fullmatch(source.code(each))]
        given = [*filter(str.isidentifier, taken), *sorted(parameters(function) - {"self"})]
        if means and counts and given:
            size = SIZE.format(given[0])
            weighted = [WEIGHTED.format(source.code(each), size) for each in means]
            edits = [*map(source.replace, means, weighted)]
            edits += [source.replace(each, size) for each in counts]
            yield [*edits, *(source.replace(each, '"SUM"') for each in kinds)]
        yield ratios_of_all(source, function)
        yield means_of_all(source, function)
