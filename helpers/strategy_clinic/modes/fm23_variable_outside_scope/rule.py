"""Checks fm23: a variable that no strategy distributes, and that each of its replicas writes to; it may be an optimizer's."""

from collections.abc import Iterator

from ...examiner.blame import from_strategy
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule


@rule("fm23")
def written_by_replicas(recording: Recording) -> Iterator[Finding]:
    for number, write in recording.written_outside.items():
        yield observed(
            "fm23",
            recording,
            from_strategy(recording.location_of(number)),
            f"{recording.name_of(number)} was made outside the scope, and every replica writes to it",
            f"{write.replicas} replicas wrote to it at ",
            line_of(write.location, "a step"),
        )


@rule("fm23")
def optimizer_outside_scope(recording: Recording) -> Iterator[Finding]:
    for number, update in list(recording.shared_slots.items())[:1]:
        name, kind = recording.name_of(number), update.optimizer.kind
        first = min(filter(recording.is_single_slot, update.optimizer.variables))
        yield observed(
            "fm23",
            recording,
            from_strategy(recording.location_of(first)) or update.location,
            f"this {kind} was made outside the scope: {name} exists once, and every replica updates it",
            f"each of {recording.replicas} replicas has its own copy of the weights that it trains at ",
            line_of(update.location, "a step"),
        )
