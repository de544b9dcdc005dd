"""Lanes: what each mode comes to on other versions of TensorFlow and Keras, in its notebook's own setup.

The records of a plain machine are one lane. The file of any other, `lane-NAME.json`, names the code of every mode that it has run
and holds only those verdicts that are otherwise than in its neighbour, the next lane towards those records.
"""

import datetime
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.version import Version

from ..base import files
from ..base.display import say
from ..base.errors import UserError
from ..base.files import write_whole
from ..experiments.version_bounds import PACKAGES
from ..modes.registry import modes as all_declared
from ..processes import pool
from ..rendering import sources
from ..setups import runtime
from .measure import measure_own
from .store import (
    KEY,
    base_of,
    code_of,
    line_by_line,
    name_of,
    read_record,
    records_folder,
    setup_key,
)

OF_VERDICT = ("broken", "fixed", "evidence", "says")


@dataclass
class Lane:
    """Verdicts by (mode, Keras generation), each with what became of the claims; `codes` says of which notebooks."""

    versions: dict
    date: str
    codes: dict = field(default_factory=dict)
    verdicts: dict = field(default_factory=dict)
    seconds: int = 0

    @property
    def name(self) -> str:
        return lane_name(self.versions["tensorflow"])

    @property
    def order(self) -> Version:
        return Version(self.versions["tensorflow"])

    def holds(self, mode: str, code: str) -> bool:
        return self.codes.get(mode) == code


def lane_name(tensorflow: str) -> str:
    """2.19 for 2.19.1; all nightlies are one lane, since each replaces the one before."""
    version = Version(tensorflow)
    return "nightly" if version.is_devrelease else f"{version.major}.{version.minor}"


def versions_here() -> dict:
    return {name: runtime.versions()[name] for name in PACKAGES}


def lane_file(name: str) -> Path:
    return records_folder() / f"lane-{name}.json"


# All lanes, as they are kept


def lanes() -> list[Lane]:
    """Every lane that has been recorded, the oldest version first; each has all of its verdicts."""
    middle = lane_of_records()
    if not middle:
        return []
    found = [json.loads(path.read_text()) for path in records_folder().glob("lane-*.json")]
    kept = sorted(found, key=lambda each: Version(each["versions"]["tensorflow"]))
    older = [each for each in kept if Version(each["versions"]["tensorflow"]) < middle.order]
    newer = [each for each in kept if Version(each["versions"]["tensorflow"]) > middle.order]
    return [*unfolded(middle, older[::-1])[::-1], middle, *unfolded(middle, newer)]


def unfolded(neighbour: Lane, kept: list[dict]) -> list[Lane]:
    """Lanes out of their files, each out of what it says itself and of its neighbour."""
    made = []
    for each in kept:
        own = {(line["mode"], line["keras"]): line for line in each["verdicts"]}
        verdicts = {
            place: without_place(own[place]) if place in own else neighbour.verdicts[place]
            for mode in each["modes"]
            for place in ((mode, keras) for keras in runtime.GENERATIONS)
            if place in own or place in neighbour.verdicts
        }
        neighbour = Lane(each["versions"], each["date"], each["modes"], verdicts, each["seconds"])
        made.append(neighbour)
    return made


def without_place(line: dict) -> dict:
    return {name: value for name, value in line.items() if name not in ("mode", "keras")}


def lane_of_records() -> Lane | None:
    """The records of a plain machine, as far as they are of the notebooks' own setups."""
    kept = {keras: read_record(f"cpu-keras{keras}") for keras in runtime.GENERATIONS}
    if not all(kept.values()):
        return None
    any_of = kept[3]
    versions = {name: any_of["versions"][name] for name in PACKAGES}
    codes = {name: each["code"] for name, each in any_of["modes"].items()}
    found = Lane(versions, any_of["date"], codes)
    for keras, record in kept.items():
        own = {mode.id: own_place(mode, keras) for mode in all_declared()}
        for line in record["verdicts"]:
            if own.get(line["mode"]) == setup_key(line):
                claims = record["modes"][line["mode"]]["claims"]
                found.verdicts[line["mode"], keras] = verdict_of(line, claims)
    return found


def own_place(mode, keras: int) -> tuple:
    """Strategy, devices and save format that a notebook has of itself."""
    return setup_key(base_of(sources.stored_notebook(notebook_file(mode)), keras).as_dict())


def notebook_file(mode) -> Path:
    return files.notebooks() / Path(mode.notebook).name


def verdict_of(line: dict, claims: dict, page: str = "as stored") -> dict:
    """What is kept of one mode under one generation; `page`: whether its notebook says what the stored one says."""
    says = re.sub(r"(?<=[a-z])_\d+\b", "", line["says"])  # which layer of its kind, in one process
    kept = {name: line[name] for name in OF_VERDICT} | {"says": says}
    return kept | {"claims": claims, "page": page}


def write_lanes(listed: list[Lane]):
    """Writes all but the records themselves. Each is folded against its neighbour as that is now."""
    middle = lane_of_records()
    for lane in listed:
        if lane.versions != middle.versions:
            write_whole(lane_file(lane.name), folded(lane, neighbour_of(lane, listed)))


def neighbour_of(lane: Lane, listed: list[Lane]) -> Lane | None:
    """The next lane towards the records, which have none themselves."""
    middle = lane_of_records()
    if lane.order == middle.order:
        return None
    others = [each for each in listed if each.order != middle.order]
    ordered = sorted([*others, middle], key=lambda each: each.order)
    step = 1 if lane.order < middle.order else -1
    return ordered[[each.order for each in ordered].index(lane.order) + step]


def folded(lane: Lane, neighbour: Lane) -> str:
    own = [
        {"mode": mode, "keras": keras} | found
        for (mode, keras), found in sorted(lane.verdicts.items())
        if neighbour.verdicts.get((mode, keras)) != found
    ]
    values = {
        "lane": lane.name,
        "date": lane.date,
        "versions": lane.versions,
        "neighbour": neighbour.versions,
        "seconds": lane.seconds,
        "modes": lane.codes,
        "verdicts": own,
    }
    return line_by_line(values, ("modes", "verdicts"))


# The one to compare with


def nearest_recorded(keras: int) -> tuple[dict | None, Lane | None]:
    """What is recorded of the version nearest to this one: the record of this runtime, or a lane in the same form."""
    name, listed = name_of(keras), lanes() if runtime.kind() == "cpu" else []
    here = Version(versions_here()["tensorflow"])
    lane = min(listed, key=lambda each: how_far(each.order, here), default=None)
    if not lane or lane.order == lane_of_records().order:
        return read_record(name), None
    modes = {mode: {"code": code, "claims": {}} for mode, code in lane.codes.items()}
    lines = []
    for mode in all_declared():
        if found := lane.verdicts.get((mode.id, keras)):
            modes[mode.id]["claims"] = found["claims"]
            place = dict(zip(KEY, own_place(mode, keras)))
            lines.append({"mode": mode.id, **place, "keras": keras, **found})
    record = {"runtime": name, "lane": lane.name, "date": lane.date, "versions": lane.versions}
    return record | {"modes": modes, "verdicts": lines}, lane


def how_far(one: Version, other: Version) -> tuple:
    """Of two that are as far away the released one is nearer, and of two releases the older."""
    parts = [abs(a - b) for a, b in zip(one.release, other.release)]
    return parts, one.is_devrelease != other.is_devrelease, one > other


def pages_that_differ(lane: Lane | None) -> set[str]:
    """The modes whose notebooks are known to say something else on a lane than what is stored."""
    found = lane.verdicts.items() if lane else ()
    return {mode for (mode, _), each in found if each["page"] != "as stored"}


# Recording one


def record_lane(chosen, workers=1, again=False, tell=say):
    """Measures what the lane of this runtime's versions does not hold yet; every mode is kept as soon as it is done."""
    lane = lane_here()
    wanted = {
        mode.id: (mode, path, code_of(sources.stored_notebook(path))) for mode, path in chosen
    }
    left = [each for each in wanted.values() if again or not lane.holds(each[0].id, each[2])]
    if len(left) < len(wanted):
        tell(f"{len(wanted) - len(left)} of {len(wanted)} modes are in lane {lane.name} already")
    tasks = [((mode, code), (mode, path)) for mode, path, code in left]
    began = time.monotonic()
    with ThreadPoolExecutor(workers) as started:
        for number, (what, future) in enumerate(pool.as_ended(started, both_generations, tasks), 1):
            (mode, code), found = what, future.result()
            lane.codes[mode.id] = code
            lane.verdicts |= found
            lane.seconds, began = lane.seconds + time.monotonic() - began, time.monotonic()
            keep_lane(lane)
            words = ", ".join(f"Keras {k} {each['broken']}" for (_, k), each in found.items())
            tell(f"[{number}/{len(left)}] {mode.id}: {words}")
    tell(f"lane {lane.name}: {len(lane.codes)} modes in {lane_file(lane.name).name}")


def lane_here() -> Lane:
    versions = versions_here()
    middle = lane_of_records()
    if not middle or runtime.kind() != "cpu":
        raise UserError(
            "A lane is kept beside the records of a plain machine; run there: clinic record"
        )
    if lane_name(versions["tensorflow"]) == middle.name:
        raise UserError(f"TensorFlow {middle.name} is what the records hold; run: clinic record")
    found = [each for each in lanes() if each.versions == versions]
    return found[0] if found else Lane(versions, datetime.date.today().isoformat())


def keep_lane(lane: Lane):
    others = [each for each in lanes() if each.name != lane.name]
    kept = replace(lane, codes=dict(sorted(lane.codes.items())), seconds=round(lane.seconds))
    write_lanes([*others, kept])


def both_generations(mode, path: Path) -> dict:
    found = {}
    for keras in reversed(runtime.GENERATIONS):
        line, claims, page = measure_own(mode, path, keras)
        found[mode.id, keras] = verdict_of(line, claims, page)
    return found
