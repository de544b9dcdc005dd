"""Repairs fm42: the data of `fit` are repeated for as many steps as an epoch is to have."""

from ...examiner.blame import first_argument, keyword
from ...examiner.repair import Source, Ways, repairs


@repairs("fm42")
def repeat(source: Source, line: int) -> Ways:
    statement = source.simple_statement(line)
    here = source.calls("fit", statement) if statement else []
    for call in here or source.calls("fit"):
        data = first_argument(call, "x")
        if data and keyword(call, "steps_per_epoch"):
            yield [source.replace(data, f"{source.code(data)}.repeat()")]
            made = source.assigned(source.code(data), source.function(call))
            if made:
                yield [source.replace(made, f"({source.code(made)}).repeat()")]
