"""Repairs fm09: the optimizer creates its variables where it is made, before anything is saved, or is saved, too."""

from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_optimizers import build_where_made
from ...examiner.repair_saved import hold, optimizers_made, places


@repairs("fm09")
def build_optimizer(source: Source, line: int) -> Ways:
    yield from build_where_made(source)
    for place in places(source, line):
        yield from hold(source, place, optimizers_made(source, place))
