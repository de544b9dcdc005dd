"""Watches what is done in this process, between two lines of a test or a notebook: one run, and no other to compare it with."""

import importlib
import itertools
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...base.files import PACKAGE
from ..recording import Examination, Observation, read_facts
from ..report import serialize
from ..rules import findings

COUNTER = itertools.count()


class Found(list):
    """Findings, and the report in words. It is true if there are any."""

    def __init__(self, found: Examination | None = None):
        super().__init__(found.findings if found else ())
        self.report = serialize.in_words(found) if found else ""

    def __repr__(self):
        told = [f"{serialize.place_of(each)}  {each.mode}  {each.says}" for each in self]
        return f"<{'; '.join(told) or 'nothing found'}>"


@contextmanager
def watching() -> Iterator[Found]:
    """What is made and done below is watched; afterwards the result holds the failure modes that this run has shown.

    Devices are those of this process, and an exception goes its way. What was made before is not known: make the model in here.
    """
    found = Found()
    with tempfile.TemporaryDirectory(prefix="clinic-") as folder:
        facts, observe = Path(folder) / "facts.jsonl", fresh_observer()
        begin_watch(observe, facts)
        try:
            yield found
        except BaseException as error:
            observe.guarded(observe.told_error, error)
            observe.told_at_end("raised", 1)
            raise
        else:
            observe.told_at_end("finished", 0)
        finally:
            end_watch(observe)
            tell_found(found, facts)


def fresh_observer():
    """The observer with nothing seen so far: its modules once more, in a package of another name."""
    name = f"strategy_clinic_watch_{next(COUNTER)}"
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [str(PACKAGE)]
    return importlib.import_module(f"{name}.observer.main")


def begin_watch(observe, facts: Path):
    observe.SETTINGS.facts = str(facts)
    observe.note("started", devices=1)
    observe.act_on(dict(observe.WATCHES))


def end_watch(observe):
    """The functions that were watched are what they were; the copy of the observer is forgotten."""
    observe.leave()
    name = observe.__name__.split(".")[0]
    for each in [each for each in sys.modules if each.split(".")[0] == name]:
        del sys.modules[each]


def tell_found(found: Found, facts: Path):
    run = Observation("watched", 1, read_facts(facts))
    run = Observation("watched", run.replicas(), run.facts, ended=run.last("ended").get("how", ""))
    seen = Examination("this process", [run], findings.findings_of([run]))
    found[:] = seen.findings
    found.report = serialize.in_words(seen)
