"""Checks fm23: a variable that no strategy distributes, and that each of its replicas writes to; it may be an optimizer's."""

from collections.abc import Iterator

from ...examiner.blame import from_strategy
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule
from ...observer.events import Owner, VariableWritten


@rule("fm23")
def written_by_replicas(recording: Recording) -> Iterator[Finding]:
    reported = set()
    for write in recording.of(VariableWritten):
        made = recording.variable(write.number)
        by_replicas = write.writer in (Owner.USER, Owner.LAYER) and write.replicas > 1
        if not by_replicas or made is None or not made.location or write.number in reported:
            continue
        own = made.maker in (Owner.USER, Owner.LAYER)
        if own and not made.copies and not recording.is_distributed(made.number):
            reported.add(write.number)
            yield observed(
                "fm23",
                recording,
                from_strategy(made.location),
                f"{made.name} was made outside the scope, and every replica writes to it",
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
