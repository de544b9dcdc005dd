"""Checks fm14: weights were copied once, and the copy and its source part afterwards, although both are used as one."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule
from ...observer.events import GradientsApplied, OutdatedCopyUsed, WeightsCopied


@rule("fm14")
def trained_together(recording: Recording) -> Iterator[Finding]:
    for copied in recording.of(WeightsCopied):
        source, target = set(copied.source), set(copied.target)
        times = [each for each in recording.of(WeightsCopied) if set(each.target) == target]
        is_synchronised = len([each for each in times if each.function == copied.function]) > 1
        together = [
            update
            for update in recording.of(GradientsApplied, after=copied)
            if source & set(update.optimizer.trains) and target & set(update.optimizer.trains)
        ]
        if copied.equal and copied.location and together and not is_synchronised:
            yield observed(
                "fm14",
                recording,
                copied.location,
                f"{copied.function} copies weights that are equal here only: the copy has variables of its own",
                line_of(together[0].location, "an optimizer"),
                " trains both, each with its own gradients",
            )


@rule("fm14")
def outdated_copy(recording: Recording) -> Iterator[Finding]:
    for used in recording.of(OutdatedCopyUsed):
        if used.copied_at:
            yield observed(
                "fm14",
                recording,
                used.copied_at,
                "the weights are copied here, and the training of the original does not reach the copy",
                line_of(used.location, "a later line"),
                " uses the copy after that training, with the values from before",
            )
