"""Watches what is done in this process, between two lines of a test or a notebook: one run, and no other to compare it with."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ...observer.context import Settings
from ...observer.events import Outcome
from ...observer.observer import Observer
from ..engine import diagnose
from ..findings import Examination, Finding
from ..recording import OBSERVER_FAILED, Recording, Role, observer_failures, read_events
from ..report import text
from ..rule import Runs
from ..runs.folder import PREFIX


class Findings(list[Finding]):
    """Findings, and the report in words. It is true if there are any."""

    def __init__(self, examination: Examination | None = None):
        super().__init__()
        self.report, self.unseen = "", list[str]()  # what was not observed or compared
        if examination:
            self.add(examination)

    def add(self, examination: Examination) -> None:
        self += examination.findings
        self.unseen += examination.unseen
        self.report = text.in_words(examination)

    def __repr__(self) -> str:
        lines = [f"{text.place_of(each.location)}  {each.mode}  {each.message}" for each in self]
        nothing = "nothing found" + (", but not everything was seen" if self.unseen else "")
        return f"<{'; '.join(lines) or nothing}>"


@contextmanager
def watching() -> Iterator[Findings]:
    """Yields a list that holds, after the block, the failure modes that the block has shown.

    Devices are those of this process, and an exception leaves the block. What was made before the block is not known:
    make the model in it.
    """
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        events = Path(folder, "events.jsonl")
        observer = Observer(Settings(str(events)))
        outcome, status = Outcome.FINISHED, 0
        observer.start()
        try:
            yield findings
        except BaseException as error:
            outcome, status = Outcome.RAISED, 1
            observer.exception_raised(error)
            raise
        finally:
            observer.end(outcome, status)
            observer.stop()
            recording = Recording(Role.WATCHED, 1, read_events(events), outcome=outcome)
            recording = replace(recording, devices=recording.replicas)
            found = diagnose(Runs([recording]))
            unseen = [*found.unseen, *map(OBSERVER_FAILED.format, observer_failures([recording]))]
            findings.add(Examination("this process", [recording], found.findings, unseen=unseen))
