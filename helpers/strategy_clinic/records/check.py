"""The command `clinic check`: measures, compares, runs nbval, and keeps a report that has each mode as soon as it is compared."""

import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

from ..base.display import say
from ..processes import python_process, request_reply
from ..rendering.mode_notebooks import ModeNotebook
from . import compare, junit, progress
from .compare import Comparison
from .measure import counts_of_setups
from .version_records import nearest

STOPPED = "stopped before its end: what is not in this report was not compared"


@dataclass
class Report:
    """What has been compared so far by version of Keras, the suites of nbval, and the file for both, if one is wanted."""

    file: Path | None
    compared: dict[int, list[Comparison]] = field(default_factory=dict)
    outputs: list[Element] = field(default_factory=list)

    def comparisons(self) -> list[Comparison]:
        return [each for part in self.compared.values() for each in part]

    def write(self, whole: bool) -> None:
        """Writes the file; unless this is the whole check, with an error, since nobody may take a part for the whole."""
        if self.file:
            stopped = [] if whole else [junit.case("clinic check", "whole check", error=STOPPED)]
            suites = [
                junit.suite(f"verdicts-keras{keras}", [each.case() for each in part])
                for keras, part in self.compared.items()
            ]
            left = [junit.suite("check", stopped)] if stopped else []
            junit.write_suites(self.file, [*self.outputs, *suites, *left])


def tell_expected(
    chosen: list[ModeNotebook], versions: list[int], workers: int, quick: bool
) -> None:
    """Says how much there is to run, and about how long it takes."""
    setups = counts_of_setups(chosen, versions[0], compare.how(nearest(versions[0]), quick))
    pages = 0 if quick else len(chosen)
    say(progress.expected(setups, len(versions), workers, pages))


def measure(
    report: Report,
    chosen: list[ModeNotebook],
    versions: list[int],
    workers: int,
    quick: bool,
    save: Path | None,
) -> None:
    """Compares each mode on each version of Keras; the report is written again after each."""
    report.write(whole=False)
    for keras in versions:
        for found in compare.compare(chosen, keras, workers, save=save, own=quick):
            report.compared.setdefault(keras, []).extend(found)
            report.write(whole=False)
    news = compare.news(report.comparisons())
    say("\n".join(news or ["no news: every verdict is as recorded"]))


def close(report: Report) -> int:
    """Writes the whole report, says what differs, and returns the exit status."""
    problems = [each.problem for each in report.comparisons() if each.problem]
    if not compare.pages_as_stored(report.outputs):
        problems.append("stored outputs differ: see above what nbval says")
    report.write(whole=True)
    say("\n".join(problems) or "every output and every verdict is as stored")
    return 1 if problems else 0


def nbval(paths: list[Path]) -> list[Element]:
    """Runs nbval on stored notebooks, with kernels that are warm where that is possible; returns its suites."""
    environment = os.environ | python_process.warm_kernels()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outputs.xml"
        arguments = ["-q", "--nbval", "--junitxml", str(report), "-o", "junit_suite_name=outputs"]
        arguments += ["-p", "no:cacheprovider"]  # which would make a folder beside the notebooks
        server = python_process.fork_server()
        process = python_process.start_module(
            "pytest",
            environment,
            sys.__stdout__ or sys.stdout,
            server,
            *arguments,
            *map(str, paths),
        )
        try:
            process.wait()
        finally:
            request_reply.end(process)
        return junit.read_suites(report)
