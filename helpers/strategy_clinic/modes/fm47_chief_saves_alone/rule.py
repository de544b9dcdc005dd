"""Checks fm47: one of several workers waits for ever in a save that the others do not make."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.hangs import hangs, saves_alone
from ...examiner.rule import Runs, rule_of_runs


@rule_of_runs("fm47")
def chief_waits(runs: Runs) -> Iterator[Finding]:
    if saves_alone(runs.recordings):
        yield from hangs(runs.recordings, "fm47")
