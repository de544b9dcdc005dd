"""Checks fm11: an optimizer was given no gradients at all, for a model that had been asked for its variables too early."""

from collections.abc import Iterator

from ...examiner.blame import from_maker
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import blames, line_of, observed, rule
from ...observer.events import GradientsApplied, Stack, UnbuiltModelRead


@rule("fm11", explains_divergence=False)
def nothing_applied(recording: Recording) -> Iterator[Finding]:
    early = recording.last(UnbuiltModelRead)
    empty = [update for update in recording.of(GradientsApplied) if not update.gradients]
    if early and empty:
        yield observed(
            "fm11",
            recording,
            from_maker(early.location, early.made_at),
            f"{early.name} has no variables here, since it was never called: what is made of them is empty",
            line_of(empty[0].location, "a step"),
            " gave the optimizer 0 gradients",
        )


@blames("fm11")
def unbuilt(recording: Recording, stack: Stack) -> Stack:
    early = recording.last(UnbuiltModelRead)
    return from_maker(early.location, early.made_at) if early else stack
