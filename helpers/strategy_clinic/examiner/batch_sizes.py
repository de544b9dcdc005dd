"""Compares the sizes of the batches of two runs, as far as the program chooses them by the number of replicas."""

from __future__ import annotations

from collections.abc import Iterator

from ..observer.events import DatasetBatched, ReplicaCountRead, Stack
from .recording import Recording


def chosen_sizes(one: Recording, other: Recording) -> tuple[int, int] | None:
    """Returns the examples in a step of both runs, if they differ, and not since each replica takes a batch nobody chose."""
    sizes = one.examples, other.examples
    if 0 in sizes:
        return None
    if sizes[0] == sizes[1]:
        return next(larger_later(one, other), None) if asked(one) else None
    of_each_replica = sizes[0] * other.replicas == sizes[1] * one.replicas
    same_sizes = batch_sizes(one) == batch_sizes(other) != set()
    return sizes if asked(one) or not same_sizes or not of_each_replica else None


def larger_later(one: Recording, other: Recording) -> Iterator[tuple[int, int]]:
    """Yields the sizes of batches that one line makes in both runs, where they are in proportion to the number of replicas.

    The first training may have batches of one size, and a later one of the program others.
    """
    for made in one.of(DatasetBatched):
        sizes = [each.size for each in other.of(DatasetBatched) if each.location == made.location]
        larger = made.size * other.replicas / one.replicas
        if made.location and larger in sizes and made.size not in sizes:
            yield made.size, int(larger)


def asked(recording: Recording) -> bool:
    return bool(recording.of(ReplicaCountRead))


def batch_sizes(recording: Recording) -> set[tuple[Stack, int]]:
    return {(batched.location, batched.size) for batched in recording.of(DatasetBatched)}
