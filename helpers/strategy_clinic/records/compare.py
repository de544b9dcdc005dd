"""Records the verdicts of this runtime, or compares them with those that are recorded."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from ..base.display import say
from ..base.errors import UserError
from ..modes.failure_mode import FailureMode
from ..rendering.mode_notebooks import ModeNotebook
from ..setups.parameters import Setup
from . import junit
from .measure import PAGES, measure_all, measure_grid, measure_own
from .store import (
    Measured,
    Record,
    RecordedVerdict,
    new_record,
    read_record,
    record_file,
    runtime_name,
    write_record,
)
from .version_records import VersionRecord, VersionVerdict, nearest

Tell = Callable[[str], None]


def record(
    chosen: list[ModeNotebook], keras: int, workers: int = 1, again: bool = False, tell: Tell = say
) -> None:
    """Measures what this runtime's record does not hold yet, and writes it after every mode."""
    name, new = runtime_name(keras), new_record(keras)
    stored = read_record(name)
    if not stored or stored.versions != new.versions:
        stored = new
    stored.date = new.date
    left = [each for each in chosen if again or not stored.holds(each)]
    if len(left) < len(chosen):
        done = len(chosen) - len(left)
        tell(f"{done} of {len(chosen)} modes are recorded already; --again runs them anew")
    for wanted, result in measure_all(left, keras, workers, tell):
        stored.add(result(), wanted)
        write_record(stored)
    tell(f"{name}: {len(stored.verdicts)} verdicts in {record_file(name).name}")


@dataclass(frozen=True)
class Comparison:
    """A verdict of this run beside its record; `problem` says how they differ, if they do."""

    mode: str
    what: str
    problem: str = ""
    unavailable: str = ""

    def case(self) -> Element:
        skipped = "" if self.problem else self.unavailable
        return junit.case(self.mode, self.what, failure=self.problem, skipped=skipped)


def compare(
    chosen: list[ModeNotebook],
    keras: int,
    workers: int = 1,
    tell: Tell = say,
    save: Path | None = None,
    own: bool = False,
) -> Iterator[list[Comparison]]:
    """Compares this runtime with the nearest version that is recorded; yields what belongs to each mode as it is measured.

    Of this runtime's own version every setup is compared, of another one the notebooks' own setups.

    Args:
        save: A folder for a record of this run.
        own: Compares the notebooks' own setups only, and what they show with what is stored.
    """
    stored, new = nearest(keras), new_record(keras)
    tell_versions(runtime_name(keras), stored, new.versions, tell)
    for wanted, result in measure_all(chosen, keras, workers, tell, how(stored, own)):
        try:
            measured = result()
        except UserError as error:  # a notebook that fails is a difference, and the rest goes on
            yield [Comparison(wanted.mode.id, f"Keras {keras}", str(error))]
        else:
            new.add(measured, wanted)
            pages = [of_page(stored, wanted.mode, measured)] if own and keras == PAGES else []
            yield compared(stored, wanted.mode, keras, measured, own) + pages
        if save:
            write_record(new, save)


def how(stored: Record | VersionRecord | None, own: bool) -> Callable[..., Measured]:
    return measure_own if own or isinstance(stored, VersionRecord) else measure_grid


def tell_versions(
    name: str, stored: Record | VersionRecord | None, here: dict[str, str], tell: Tell
) -> None:
    if stored is None:
        tell(
            f"{name} has not been recorded yet, so its verdicts are compared with what the notebooks declare."
        )
    elif not stored.versions.items() <= here.items():
        tell(f"{name} was recorded with {in_words(stored.versions)}; this is {in_words(here)}")


def in_words(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def compared(
    stored: Record | VersionRecord | None,
    mode: FailureMode,
    keras: int,
    measured: Measured,
    own: bool = False,
) -> list[Comparison]:
    """Compares a mode with its record, or with its declaration where these versions have no record of it.

    Args:
        own: Only its notebook's own setup was to be measured.
    """
    if isinstance(stored, VersionRecord) and (mode.id, keras) in stored.verdicts:
        return differences(mode, stored.of_mode(mode, keras), measured)
    if not isinstance(stored, Record):
        return [as_declared(mode, verdict) for verdict in measured.verdicts]
    if mode.id in stored.modes:
        now = {each.setup for each in measured.verdicts}
        recorded = stored.of_mode(mode.id).items()
        before = {setup: verdict for setup, verdict in recorded if not own or setup in now}
        return differences(mode, before, measured)
    missing = f"{mode.id} is not in the record; run: clinic record {mode.id} --keras {keras}"
    return [Comparison(mode.id, f"Keras {keras}", missing)]


def differences(
    mode: FailureMode,
    before: Mapping[Setup, RecordedVerdict | VersionVerdict],
    measured: Measured,
) -> list[Comparison]:
    """Compares each verdict of a mode, those that are only recorded included."""
    comparisons = [with_recorded(mode, before.get(now.setup), now) for now in measured.verdicts]
    for setup in before.keys() - {now.setup for now in measured.verdicts}:
        problem = f"{mode.id} {setup}: recorded, and not run now"
        comparisons.append(Comparison(mode.id, str(setup), problem))
    return comparisons


def as_declared(mode: FailureMode, now: RecordedVerdict) -> Comparison:
    """Compares a verdict with its declaration."""
    outcomes = f"broken {now.broken}, fixed {now.fixed} ({now.says or 'no message'})"
    problem = f"{mode.id} {now.setup}: not as declared: {outcomes}"
    return Comparison(mode.id, str(now.setup), "" if now.agrees else problem)


def with_recorded(
    mode: FailureMode, before: RecordedVerdict | VersionVerdict | None, now: RecordedVerdict
) -> Comparison:
    unavailable = now.says if now.broken == "unavailable" else ""
    if before is None:
        problem = f"{mode.id} {now.setup}: not in the record"
        return Comparison(mode.id, str(now.setup), problem, unavailable)
    changes = [
        f"{name} {getattr(before, name)}, this run says {getattr(now, name)}"
        for name in ("broken", "fixed", "evidence")
        if getattr(before, name) != getattr(now, name)
    ]
    if before.says != now.says and not changes:
        changes = ["it in other words"]
    messages = f"{before.says or 'no message'} | {now.says or 'no message'}"
    problem = f"{mode.id} {now.setup}: the record says {'; '.join(changes)} ({messages})"
    return Comparison(mode.id, str(now.setup), problem if changes else "", unavailable)


def of_page(
    stored: Record | VersionRecord | None, mode: FailureMode, measured: Measured
) -> Comparison:
    """Compares what a notebook shows with what is stored, by the run of its own setup."""
    differs = measured.page != "as stored" and mode.id not in excused(stored)
    problem = f"{mode.id}: its notebook shows something else than what is stored"
    return Comparison(mode.id, "stored outputs", problem if differs else "")


def pages_as_stored(suites: list[Element]) -> bool:
    """Returns whether every page shows what is stored, or differs as the nearest version record says it does."""
    return junit.passed(suites, excused(nearest(PAGES)))


def excused(stored: Record | VersionRecord | None) -> set[str]:
    """Returns the modes whose notebooks are known to show something else on the recorded version."""
    return stored.different_pages() if isinstance(stored, VersionRecord) else set()


def news(comparisons: list[Comparison]) -> list[str]:
    """Returns a line for each mode that behaves otherwise than recorded: its first difference, and how many more."""
    problems: dict[str, list[str]] = {}
    for comparison in comparisons:
        if comparison.problem:
            problems.setdefault(comparison.mode, []).append(comparison.problem)
    return [
        f"news: {first}{f' (and {len(more)} more)' if more else ''}"
        for first, *more in problems.values()
    ]
