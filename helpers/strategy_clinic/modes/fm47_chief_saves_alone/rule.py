"""Checks fm47: one of several workers waits for ever in a save, or for a value, and the others do not take part."""

from collections.abc import Iterator
from dataclasses import replace

from ...examiner.findings import Finding
from ...examiner.hangs import hangs, is_reading, is_saving, one_waits
from ...examiner.rule import Runs, rule_of_runs

READ = "read the value on every worker, and print it on one"


@rule_of_runs("fm47")
def chief_waits(runs: Runs) -> Iterator[Finding]:
    if one_waits(runs.recordings, is_saving):
        yield from hangs(runs.recordings, "fm47")
    if one_waits(runs.recordings, is_reading):
        for finding in hangs(runs.recordings, "fm47"):
            yield replace(finding, fix=READ)
