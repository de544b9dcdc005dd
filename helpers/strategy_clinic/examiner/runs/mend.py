"""Proves repairs: the program is examined once more in a copy of its folder in which a repair is made."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...base.files import source_text
from ...observer.events import Owner, VariableValue
from ..divergence import by_key, distance, first_divergence, tolerance
from ..edits import Repair, inside, newline_of
from ..findings import Examination, Finding
from ..history import values_at_end
from ..recording import Recording, Role
from ..repair import places_told, repairers, told_by, written_repairs
from ..restarts import OTHER_END
from ..rule import mode_rules
from .plan import NOT_DISTRIBUTED, examine
from .program_spec import ProgramSpec
from .progress import FindingKnown, Progress, Reporter, RunStarted, ignore

Values = list[VariableValue]
MOST_TRIED = 5  # repairs of one finding, each of which takes as long as an examination


@dataclass(frozen=True)
class Attempt:
    """What became of the repair of a finding: the reasons against each that was tried, and the one that is proven."""

    finding: Finding
    reasons: tuple[str, ...]
    proven: Repair | None = None

    def __str__(self) -> str:
        place = f"{self.finding.mode} at {self.finding.location}"
        if self.proven:
            return f"{place}: a repair is proven"
        if self.finding.mode not in repairers():
            return f"{place}: no repair can be written for this mode"
        if not self.reasons:
            return f"{place}: no repair can be written for this form of the program"
        return f"{place}: a repair was tried, and is not offered: {self.reasons[-1]}"


def mend(
    program: ProgramSpec,
    examination: Examination,
    counts: Sequence[object],
    restart: bool | None = None,
    report: Reporter = ignore,
) -> list[Attempt]:
    """Tries the repairs of all findings, each by itself, and adds those that are proven to the examination."""
    attempts = []
    for finding in examination.findings:
        if examination.stopped:
            break
        attempt = attempt_of(program, examination, finding, counts, restart, report)
        attempts.append(attempt)
        if attempt.proven:
            examination.repairs.append(attempt.proven)
        else:
            examination.notes.append(str(attempt))
    return attempts


def mend_if(
    wanted: bool,
    option: str,
    program: ProgramSpec,
    examination: Examination,
    counts: Sequence[object],
    restart: bool | None = None,
    report: Reporter = ignore,
) -> None:
    """Tries all repairs if that is wanted, and else notes the option that asks for it, if there are repairs to try."""
    if wanted:
        mend(program, examination, counts, restart, report)
    else:
        examination.notes += repairs_to_try(program, examination, option)


def repairs_to_try(
    program: ProgramSpec, examination: Examination, option: str = "--mend"
) -> list[str]:
    """Returns a note for the findings of which `mend` would try repairs, with the option that asks for it."""
    found = [each for each in examination.findings if next(candidates(program, each), None)]
    modes = ", ".join(dict.fromkeys(each.mode for each in found))
    note = f"{option} tries repairs of {modes} in copies, and shows those that are proven"
    return [note] if found else []


def attempt_of(
    program: ProgramSpec,
    examination: Examination,
    finding: Finding,
    counts: Sequence[object],
    restart: bool | None = None,
    report: Reporter = ignore,
) -> Attempt:
    reasons: list[str] = []
    for repair, edited in candidates(program, finding):
        after = examine(edited, counts, restart, of_repair(repair, report))
        examination.runs += [
            replace(each, words=words_of(repair, each.words)) for each in after.runs
        ]
        reason = objection(examination, finding, after)
        if after.stopped:
            examination.stopped = True
        if not reason:
            return Attempt(finding, tuple(reasons), repair)
        reasons.append(reason)
        if after.stopped:
            break
    return Attempt(finding, tuple(reasons))


def candidates(program: ProgramSpec, finding: Finding) -> Iterator[tuple[Repair, ProgramSpec]]:
    """Yields the repairs that can be written, each with the program that has it; none for files outside of the folder."""
    written = in_cells if program.listing and finding.file == program.listing.file else in_file
    yield from itertools.islice(written(program, finding), MOST_TRIED)


def in_file(program: ProgramSpec, finding: Finding) -> Iterator[tuple[Repair, ProgramSpec]]:
    """Yields repairs of the file of a finding, and then of the other files from which its line is called, or that it tells."""
    frames = () if finding.location.cell else finding.location.frames
    lines: dict[str, int] = {}
    for frame in (
        *frames,
        *(frame for each in told_by(finding) for frame in each.frames if not each.cell),
    ):
        lines.setdefault(frame.path, frame.line)
    for file, line in lines.items():
        path = Path(file)
        if path.is_relative_to(program.folder):
            places = [each for each in places_told(finding, file) if not each.cell]
            numbers = dict.fromkeys(each.line for place in places for each in place.frames)
            for repair in written_repairs(finding, line, source_text(path), [*numbers], file):
                name = str(path.relative_to(program.folder))
                repair = replace(repair, newline=newline_of(path))
                yield repair, replace(program, edited=((name, repair.after),))


def in_cells(program: ProgramSpec, finding: Finding) -> Iterator[tuple[Repair, ProgramSpec]]:
    """Yields the repairs that change one cell of a notebook, which is a script in the copy of the folder.

    The line of a finding is counted in its cell already.
    """
    listing = program.listing
    if listing is None:
        return
    told = [number for each in told_by(finding) for number in listing.numbers_of(each)]
    # The lines from which one of a cell is called are still those of the script.
    frames = [frame for each in told_by(finding) for frame in each.frames[1:]]
    told += [each.line for each in frames if Path(each.path).name == listing.file_name]
    for line in listing.numbers_of(finding.location)[:1]:
        for whole in written_repairs(finding, line, listing.text, told):
            first = listing.line(min(each.start[0] for each in whole.edits))
            lines = listing.lines_of_cell(first.cell) if first.number else range(0)
            repair = inside(whole, first.cell, lines, listing.shown_in(first.cell))
            if repair:
                repair = replace(repair, cell=finding.location.cell)
                yield repair, replace(program, listing=replace(listing, text=whole.after))


def of_repair(repair: Repair, report: Reporter) -> Reporter:
    """Returns a reporter that says of each run that the repair is in it, and nothing of what the repaired copy shows."""

    def reported(step: Progress) -> None:
        if isinstance(step, RunStarted):
            step = RunStarted(words_of(repair, step.description))
        if not isinstance(step, FindingKnown):
            report(step)

    return reported


def words_of(repair: Repair, run: str) -> str:
    return f"with {repair.mode} repaired, {run}"


# The proof


def objection(before: Examination, finding: Finding, after: Examination) -> str:
    """Returns why an examination does not prove a repair, an empty string if it does."""
    if after.stopped:
        return "it was stopped"
    modes = Counter(each.mode for each in after.findings)
    allowed = Counter(each.mode for each in before.findings)
    allowed[finding.mode] -= 1
    if modes[finding.mode] > allowed[finding.mode]:
        return "the finding is still there with it"
    if new := modes - allowed:
        return f"{', '.join(sorted(new))} is found with it"
    if after.failure or not all(each.finished for each in after.recordings):
        return f"the program fails with it ({after.failure or 'on another number of devices'})"
    known = {*before.notes, *before.unseen, *after.agreeing, NOT_DISTRIBUTED}
    others = [each for each in (*after.unseen, *after.notes) if each not in known]
    if any(each.startswith(OTHER_END) for each in before.notes):  # in other words, maybe
        others = [each for each in others if not each.startswith(OTHER_END)]
    if others:
        return f"it is not sure ({others[0]})"
    if repairers()[finding.mode].keeps_training and (changed := changed_alone(before, after)):
        return f"{min(changed)} is another with it on one device"
    apart = set() if after.agreeing else disagreeing(after.recordings)
    # Another fault, or what is none, may be why the runs differ before and after.
    if after.findings or finding.mode in mode_rules().of_other_promises:
        apart -= disagreeing(before.recordings)
    return f"{min(apart)} differs with it between numbers of devices" if apart else ""


def disagreeing(recordings: Sequence[Recording]) -> set[str]:
    """Returns the variables that differ between runs on several numbers of devices: in training, or at the end."""
    watched = [each for each in recordings if each.role is Role.WATCHED]
    matched = [each for each in recordings if each.role is Role.MATCHED]
    replaced = {each.plain for each in matched}
    others = [each for each in recordings if each.role is Role.COMPARED and each not in replaced]
    others += matched
    found: set[str] = set()
    for one in watched:
        for other in others:
            divergence = first_divergence(other, one)
            found |= {divergence.name} if divergence else set()
            found |= differing_at_end(other, one)
    return found


def changed_alone(before: Examination, after: Examination) -> list[str]:
    """Returns the variables that a run on the fewest devices ends with other values of than before the repair.

    What the run loads with the repair, and did not without it, is another by that.
    """
    one, other = (fewest(each.recordings) for each in (before, after))
    if one is None or other is None or one.devices != other.devices:
        return []
    groups, other_groups = values_by_form(one), values_by_form(other)
    return [
        one.name_of(value.number)
        for form in groups.keys() & other_groups.keys()
        for value, changed in counterparts(one, groups[form], other, other_groups[form])
        if distance(value.sample, changed.sample) > tolerance(one)
        if value.number in one.loaded or changed.number not in other.loaded
    ]


def counterparts(
    one: Recording, values: Values, other: Recording, others: Values
) -> list[tuple[VariableValue, VariableValue]]:
    """Returns the values of two runs in pairs, or only those that are trained if not as many are known of both.

    More variables are kept to the end where a repair is tried.
    """
    if len(values) != len(others):
        values = [each for each in values if each.number in one.trained]
        others = [each for each in others if each.number in other.trained]
    return [*zip(values, others)] if len(values) == len(others) else []


def values_by_form(recording: Recording) -> dict[object, Values]:
    """Returns the last values of the variables that are made alike, in their order; a repair moves the lines that make them."""
    found: dict[object, Values] = {}
    for value in sorted(values_at_end(recording), key=lambda each: each.number):
        made = recording.variable(value.number)
        if made and made.maker in (Owner.USER, Owner.LAYER):
            form = made.maker, made.name, made.shape, made.dtype
            found.setdefault(form, []).append(value)
    return found


def fewest(recordings: Sequence[Recording]) -> Recording | None:
    unchanged = [each for each in recordings if each.is_unchanged]
    return min(unchanged, key=lambda each: each.devices, default=None)


def differing_at_end(one: Recording, other: Recording) -> set[str]:
    """Returns the variables of the program or of a layer that end with another value; each replica has a part of some.

    A file may be loaded in another order on other devices: what has another name is another variable.
    """
    values, others = (by_key(each, values_at_end(each)) for each in (one, other))
    return {
        one.name_of(number)
        for key, (number, sample) in values.items()
        if one.maker_of(number) in (Owner.USER, Owner.LAYER)
        and key in others
        and one.name_of(number) == other.name_of(others[key][0])
        and getattr(one.variable(number), "synchronization", "") != "ON_READ"
        and distance(sample, others[key][1]) > tolerance(one)
    }
