"""Version records: the verdicts of each mode, in its notebook's own setup, on other versions of TensorFlow and Keras.

The records of a plain machine give one more, of the versions that they are of. A command's user calls a version record a lane.
"""

import datetime
import json
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from ..base.files import write_whole
from ..base.json_lines import line_by_line
from ..base.package_versions import version_name
from ..modes import registry
from ..modes.failure_mode import FailureMode
from ..processes import pool
from ..programs.version_bounds import PACKAGES
from ..rendering import sources
from ..rendering.mode_notebooks import ModeNotebook
from ..setups import runtime
from ..setups.parameters import Setup
from . import measure
from .store import (
    Measured,
    Record,
    code_of,
    own_setup,
    read_record,
    records_folder,
    runtime_name,
    stored_record,
)


@dataclass(frozen=True)
class VersionVerdict:
    """The verdicts of a mode on one version of Keras; `page` says whether its notebook shows what is stored."""

    broken: str
    fixed: str
    evidence: str
    says: str
    page: str

    @classmethod
    def of(cls, measured: Measured) -> "VersionVerdict":
        (own,) = measured.verdicts
        says = re.sub(r"(?<=[a-z])_\d+\b", "", own.says)  # the number of a layer differs by process
        return cls(own.broken, own.fixed, own.evidence, says, measured.page)


@dataclass
class VersionRecord:
    """Verdicts by mode and version of Keras; `codes` says of which code of each notebook they are."""

    versions: dict[str, str]
    date: str
    seconds: int = 0
    codes: dict[str, str] = field(default_factory=dict)
    verdicts: dict[tuple[str, int], VersionVerdict] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return version_name(self.versions["tensorflow"])

    @property
    def version(self) -> Version:
        return Version(self.versions["tensorflow"])

    def of_mode(self, mode: FailureMode, keras: int) -> dict[Setup, VersionVerdict]:
        verdict = self.verdicts.get((mode.id, keras))
        return {own_setup_of(mode, keras): verdict} if verdict else {}

    def different_pages(self) -> set[str]:
        """Returns the modes whose notebooks show something else on these versions than what is stored."""
        return {mode for (mode, _), verdict in self.verdicts.items() if verdict.page != "as stored"}


def versions_here() -> dict[str, str]:
    return {name: runtime.versions()[name] for name in PACKAGES}


def own_setup_of(mode: FailureMode, keras: int) -> Setup:
    return own_setup(sources.stored_notebook(files.ROOT / mode.notebook), keras)


# As files


def version_file(name: str) -> Path:
    return records_folder() / f"tensorflow-{name}.json"


def write_version_record(record: VersionRecord) -> None:
    values = asdict(record) | {
        "verdicts": [
            {"mode": mode, "keras": keras, **asdict(verdict)}
            for (mode, keras), verdict in sorted(record.verdicts.items())
        ]
    }
    write_whole(version_file(record.name), line_by_line(values))


def parse_version_record(text: str) -> VersionRecord:
    stored = json.loads(text)
    verdicts = {(line["mode"], line["keras"]): parse_verdict(line) for line in stored["verdicts"]}
    return VersionRecord(**stored | {"verdicts": verdicts})


def parse_verdict(line: dict[str, Any]) -> VersionVerdict:
    """Returns a stored verdict; records from before the documents had notebooks of their own have claims, too."""
    return VersionVerdict(**{each.name: line[each.name] for each in fields(VersionVerdict)})


def version_records() -> list[VersionRecord]:
    """Returns all version records, the oldest version first; none where a plain machine has no records.

    A verdict on a page that has changed since then is left out, and a record without any other.
    """
    recorded = of_plain_machine()
    records = [recorded, *of_other_versions()] if recorded else []
    return sorted(records, key=lambda record: record.version)


def of_other_versions() -> list[VersionRecord]:
    now = codes_now()
    paths = records_folder().glob(version_file("*").name)
    stored = [current(parse_version_record(path.read_text()), now) for path in paths]
    return [record for record in stored if record.verdicts]


def codes_now() -> dict[str, str]:
    return {
        mode.id: code_of(sources.stored_notebook(files.ROOT / mode.notebook))
        for mode in registry.modes()
    }


def current(record: VersionRecord, now: Mapping[str, str]) -> VersionRecord:
    """Returns a record with the verdicts on pages as they are now."""
    codes = {mode: code for mode, code in record.codes.items() if now.get(mode) == code}
    verdicts = {place: each for place, each in record.verdicts.items() if place[0] in codes}
    return replace(record, codes=codes, verdicts=verdicts)


def of_plain_machine() -> VersionRecord | None:
    """Returns the version record that the records of a plain machine give."""
    merged: VersionRecord | None = None
    own = {mode.id: own_setup_of(mode, runtime.KERAS_VERSIONS[0]) for mode in registry.modes()}
    for keras in runtime.KERAS_VERSIONS:
        record = stored_record(f"cpu-keras{keras}")
        if not record:
            return None
        versions = {name: record.versions[name] for name in PACKAGES}
        codes = {mode: recorded.code for mode, recorded in record.modes.items()}
        merged = merged or VersionRecord(versions, record.date, codes=codes)
        own = {mode: setup.but(keras=keras) for mode, setup in own.items()}
        for each in record.verdicts:
            if each.setup == own.get(each.mode):
                merged.verdicts[each.mode, keras] = VersionVerdict.of(Measured([each]))
    return merged


# The one to compare with


def nearest(keras: int) -> Record | VersionRecord | None:
    """Returns the record of this runtime, or the version record of the nearest version if that is another one."""
    recorded = of_plain_machine() if runtime.kind() == "cpu" else None
    if not recorded:
        return read_record(runtime_name(keras))
    here = Version(versions_here()["tensorflow"])
    records = [recorded, *of_other_versions()]
    found = min(records, key=lambda record: distance(record.version, here))
    return read_record(runtime_name(keras)) if found is recorded else found


def distance(one: Version, other: Version) -> tuple[Any, ...]:
    """Orders versions by their distance; of two equally distant a release comes first, and then the older."""
    parts = [abs(a - b) for a, b in zip(one.release, other.release)]
    return parts, one.is_devrelease != other.is_devrelease, one > other


# Recording


def record_versions(
    chosen: list[ModeNotebook],
    workers: int = 1,
    again: bool = False,
    tell: Callable[[str], None] = say,
) -> None:
    """Measures what the record of these versions does not hold yet, and writes it after every mode."""
    record = version_record_here()
    codes = {each.mode.id: code_of(each.notebook) for each in chosen}
    left = [
        each for each in chosen if again or record.codes.get(each.mode.id) != codes[each.mode.id]
    ]
    if len(left) < len(chosen):
        tell(
            f"{len(chosen) - len(left)} of {len(chosen)} modes are in the record of {record.name} already"
        )
    began, before = time.monotonic(), record.seconds
    with ThreadPoolExecutor(workers) as started:
        tasks = [(each, (each,)) for each in left]
        for number, (each, future) in enumerate(
            pool.as_ended(started, both_keras_versions, tasks), 1
        ):
            mode, verdicts = each.mode.id, future.result()
            record.codes = dict(sorted((record.codes | {mode: codes[mode]}).items()))
            record.verdicts |= {(mode, keras): verdict for keras, verdict in verdicts.items()}
            record.seconds = before + round(time.monotonic() - began)
            write_version_record(record)
            words = ", ".join(f"Keras {keras} {verdicts[keras].broken}" for keras in verdicts)
            tell(f"[{number}/{len(left)}] {mode}: {words}")
    tell(f"TensorFlow {record.name}: {len(record.codes)} modes in {version_file(record.name).name}")


def version_record_here() -> VersionRecord:
    """Returns what is stored of these versions, also on pages that have changed since.

    Raises UserError where the records of a plain machine are of these versions.
    """
    versions, recorded = versions_here(), of_plain_machine()
    if not recorded or runtime.kind() != "cpu":
        raise UserError(
            "There are no records of a plain machine to compare a version with; run there first: clinic record"
        )
    if version_name(versions["tensorflow"]) == recorded.name:
        raise UserError(f"TensorFlow {recorded.name} is what the records hold; run: clinic record")
    path = version_file(version_name(versions["tensorflow"]))
    stored = parse_version_record(path.read_text()) if path.exists() else None
    if stored and stored.versions == versions:
        return stored
    return VersionRecord(versions, datetime.date.today().isoformat())


def both_keras_versions(wanted: ModeNotebook) -> dict[int, VersionVerdict]:
    return {
        keras: VersionVerdict.of(measure.measure_own(wanted, keras))
        for keras in reversed(runtime.KERAS_VERSIONS)
    }
