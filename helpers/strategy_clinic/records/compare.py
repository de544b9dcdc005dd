"""A record made, or held against this run."""

from dataclasses import dataclass
from pathlib import Path

from ..base.display import say
from ..base.errors import UserError
from . import junit
from .measure import measure_all, own_setup, whole_grid
from .store import (
    add,
    empty,
    holds,
    in_setup,
    name_of,
    read_record,
    record_file,
    setup_key,
    write_record,
)
from .version_records import nearest_recorded, pages_that_differ


def record(chosen, keras: int, workers=1, again=False, tell=say):
    """Measures what this runtime's record does not hold yet, and writes it after every mode, so it can be stopped."""
    stored, fresh = read_record(name_of(keras)), empty(keras)
    if not stored or stored["versions"] != fresh["versions"]:
        stored = fresh
    for mode, _ in chosen if again else []:
        stored["modes"].pop(mode.id, None)
    left = [(mode, path) for mode, path in chosen if not holds(stored, mode, path)]
    if len(left) < len(chosen):
        tell(
            f"{len(chosen) - len(left)} of {len(chosen)} modes are recorded already; --again runs them anew"
        )
    for mode, notebook, result in measure_all(left, keras, workers, tell):
        add(stored, mode, notebook, *result())
        write_record(stored | {"date": fresh["date"]})
    tell(
        f"{name_of(keras)}: {len(stored['verdicts'])} verdicts in {record_file(name_of(keras)).name}"
    )


@dataclass(frozen=True)
class Comparison:
    """One verdict of this run beside its record; `problem` says in words how they differ, if they do."""

    mode: str
    what: str
    problem: str = ""
    unavailable: str = ""

    def case(self):
        skipped = "" if self.problem else self.unavailable
        return junit.case(self.mode, self.what, failure=self.problem, skipped=skipped)


def compare(chosen, keras: int, workers=1, tell=say, save: Path | None = None) -> list[Comparison]:
    """What this runtime says now, beside the nearest version that is recorded; `save` keeps it as a record of its own.

    Of this runtime's own version every verdict is recorded, of another those in the notebooks' own setups.
    """
    name, fresh = name_of(keras), empty(keras)
    stored, lane = nearest_recorded(keras)
    tell_versions(name, stored, fresh, tell)
    found, how = [], own_setup if lane else whole_grid
    for mode, notebook, result in measure_all(chosen, keras, workers, tell, how):
        try:
            found += comparisons(stored, mode, *result())
            add(fresh, mode, notebook, *result())
        except UserError as reason:  # a notebook that fails is a difference, and the rest goes on
            found.append(Comparison(mode.id, f"Keras {keras}", str(reason)))
        if save:
            write_record(fresh, save)
    return found


def tell_versions(name: str, stored: dict | None, fresh: dict, tell):
    if stored is None:
        tell(
            f"{name} has not been recorded yet, so its verdicts are compared with what the notebooks declare."
        )
    elif not stored["versions"].items() <= fresh["versions"].items():
        tell(
            f"{name} was recorded with {versions_told(stored['versions'])}; this is {versions_told(fresh['versions'])}"
        )


def versions_told(versions: dict) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def comparisons(stored: dict | None, mode, lines: list[dict], claims: dict) -> list[Comparison]:
    if stored is None or ("lane" in stored and mode.id not in stored["modes"]):
        return [as_declared(mode, line) for line in lines]
    if mode.id not in stored["modes"]:
        keras = lines[0]["keras"]
        missing = f"{mode.id} is not in the record; run: clinic record {mode.id} --keras {keras}"
        return [Comparison(mode.id, f"Keras {keras}", missing)]
    known = {setup_key(line): line for line in stored["verdicts"] if line["mode"] == mode.id}
    found = [beside(mode, known.get(setup_key(line)), line) for line in lines]
    gone = known.keys() - {setup_key(line) for line in lines}
    found += [
        Comparison(
            mode.id, in_setup(line), f"{mode.id} {in_setup(line)}: recorded, and not run now"
        )
        for each, line in known.items()
        if each in gone
    ]
    before = stored["modes"][mode.id]["claims"]
    keras = lines[0]["keras"]
    return found + [claimed(mode, each, keras, before, claims) for each in sorted(before | claims)]


def claimed(mode, name: str, keras: int, before: dict, now: dict) -> Comparison:
    was, found = before.get(name), now.get(name)
    words = f"{mode.id}, claim {name}: the record says {was}, this run says {found}"
    return Comparison(mode.id, f"claim {name}, Keras {keras}", words if was != found else "")


def as_declared(mode, now: dict) -> Comparison:
    """A verdict beside its declaration. Claims need no comparison: the notebook itself fails if one is not as declared."""
    said = f"broken {now['broken']}, fixed {now['fixed']} ({now['says'] or 'no message'})"
    problem = f"{mode.id} {in_setup(now)}: not as declared: {said}"
    return Comparison(mode.id, in_setup(now), "" if now["agrees"] else problem)


def beside(mode, before: dict | None, now: dict) -> Comparison:
    unavailable = now["says"] if now["broken"] == "unavailable" else ""
    return Comparison(mode.id, in_setup(now), other(mode, before, now), unavailable)


def other(mode, before: dict | None, now: dict) -> str:
    """One sentence if a verdict is not the recorded one, and nothing if it is."""
    if before is None:
        return f"{mode.id} {in_setup(now)}: not in the record"
    changed = [
        f"{name} {before[name]}, this run says {now[name]}"
        for name in ("broken", "fixed", "evidence")
        if before[name] != now[name]
    ]
    if before["says"] != now["says"] and not changed:
        changed = ["it in other words"]
    if not changed:
        return ""
    messages = " | ".join(f"{each['says'] or 'no message'}" for each in (before, now))
    return f"{mode.id} {in_setup(now)}: the record says {'; '.join(changed)} ({messages})"


def without_known(outputs: list) -> bool:
    """Whether the stored outputs are as they are known to be on the nearest version that is recorded."""
    return junit.passed(outputs, pages_that_differ(nearest_recorded(3)[1]))


def news(found: list[Comparison]) -> list[str]:
    """One line for each mode that behaves otherwise than it is recorded, the first difference with both messages."""
    problems = {}
    for each in found:
        if each.problem:
            problems.setdefault(each.mode, []).append(each.problem)
    return [
        f"news: {first}{f' (and {len(more)} more)' if more else ''}"
        for first, *more in problems.values()
    ]
