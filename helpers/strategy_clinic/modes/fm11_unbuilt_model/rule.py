"""Checks fm11: an optimizer was given no gradients at all, for a model that had been asked for its variables too early."""

from collections.abc import Iterator

from ...examiner.blame import from_maker
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import blames, line_of, names, observed, rule
from ...observer.events import ExceptionRaised, GradientsApplied, Stack, UnbuiltModelRead

# What `tf.add_n`, and `all_reduce` of a replica's context, say of an empty list.
NOTHING_TO_ADD = (
    "Inputs must be an iterable of at least one Tensor",
    "'NoneType' object has no attribute 'batch_reduce'",
)


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


@names("fm11")
def nothing_to_add(recording: Recording, raised: ExceptionRaised) -> bool:
    """Tells whether a sum over the variables of a model or their gradients, such as a penalty, has found none."""
    is_empty = any(text in raised.traceback for text in NOTHING_TO_ADD)
    return is_empty and recording.last(UnbuiltModelRead) is not None


@blames("fm11")
def unbuilt(recording: Recording, stack: Stack) -> Stack:
    early = recording.last(UnbuiltModelRead)
    return from_maker(early.location, early.made_at) if early else stack
