"""Whether each replica takes whole batches that nobody has distributed, such as those of an evaluation."""

from __future__ import annotations

from ..observer.events import DatasetBatched, ModelCalled
from .divergence import both_replaced
from .findings import FULL_BATCHES, Answers
from .printed import WORDS, PrintedDifference
from .recording import Recording
from .rule import Runs, least_and_most


def whole_batch_counted(runs: Runs, difference: PrintedDifference) -> Answers[ModelCalled | None]:
    """Returns the call of a model with a whole batch on each replica, where a number is printed so many times as large.

    In a graph the sizes of batches are not known if the last one may be smaller: then runs are looked at that have none.
    """
    pair = least_and_most(runs.whole, lambda each: each.finished and not each.task)
    if pair is None or not difference.is_by_replicas or difference.factor < 1:
        return None
    if call := whole_batch_call(*pair):
        return call
    full = yield from both_replaced(*pair, FULL_BATCHES, WORDS)
    return whole_batch_call(*full) if full else None


def whole_batch_call(few: Recording, many: Recording) -> ModelCalled | None:
    """Returns the first call in which each of more replicas has the examples of a batch, which has as many on fewer."""
    sizes, same = ({each.size for each in run.of(DatasetBatched)} for run in (few, many))
    alone = {(each.location[:1], each.examples, each.replicas) for each in few.of(ModelCalled)}
    return next(
        (
            each
            for each in many.of(ModelCalled)
            if each.replicas == many.replicas and each.examples in sizes & same
            if (each.location[:1], each.examples, few.replicas) in alone
        ),
        None,
    )
