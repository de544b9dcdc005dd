"""An examination as a person reads it: the location of each finding, its mode, its proof and its fix."""

import os
from collections import Counter

from ..blame import code_at
from ..cells import location_in, location_in_file
from ..edits import Repair
from ..findings import Examination, Finding, Location, RunCounts, RunMade, counted
from ..rule import place_in_words
from ..runs.progress import FindingKnown, Progress, RunEnded, RunStarted
from .explanation import explanation_of


def code_of(location: Location) -> str:
    return location.code or code_at(location.file, location.line)


def fix_of(finding: Finding) -> str:
    return finding.fix or explanation_of(finding.mode).fix


def exit_status(examination: Examination) -> int:
    """0 nothing found, 1 findings, 3 a failure that is none of the modes; 130 if it was stopped before any of these.

    4 nothing found, and not everything was seen.
    """
    if examination.findings:
        return 1
    if examination.failure:
        return 3
    return 130 if examination.stopped else 4 if examination.unseen else 0


def printable(text: str) -> str:
    """Replaces characters that control a terminal: what an exception says is the program's own text."""
    return "".join(character if character.isprintable() else " " for character in text)


# Findings


def in_words(examination: Examination, counts: bool = False) -> str:
    """Returns the report; with the counts of speed and memory, if they are asked for."""
    findings = map(finding_in_words, examination.findings)
    repairs = map(repair_in_words, examination.repairs)
    of_runs = map(counts_in_words, shown_counts(examination)) if counts else ()
    return "\n\n".join([*findings, *repairs, *of_runs, *rest_in_words(examination)])


def finding_in_words(finding: Finding) -> str:
    lines = [f"{place_of(finding.location)}  {finding.mode}  {finding.message}"]
    lines += [f"    {line}" for line in details_of(finding)]
    return "\n".join(map(printable, lines))


def details_of(finding: Finding) -> list[str]:
    """Returns what is below a finding's first line: the code of the program, and what to do."""
    code, explanation = code_of(finding.location), explanation_of(finding.mode)
    return [
        *([code] if code else []),
        f"proof     {finding.proof}",
        f"fix       {fix_of(finding)}",
        *([f"notebook  {explanation.path}"] if explanation.path else []),
    ]


def repair_in_words(repair: Repair) -> str:
    return "\n".join(map(printable, [repair_heading(repair), *diff_of(repair)]))


def repair_heading(repair: Repair) -> str:
    place = shown_path(repair.file)
    place += f", {location_in(repair.cell, repair.line)}" if repair.cell else f":{repair.line}"
    return f"repair of {repair.mode} at {place}, proven by the same runs of a copy:"


def diff_of(repair: Repair) -> list[str]:
    return whole_diff(repair).splitlines()


def whole_diff(repair: Repair) -> str:
    """Returns the diff with the ends of lines that the file has, so that it can be applied."""
    cell = f" cell {repair.edited_cell}" if repair.cell else ""
    return repair.diff(f"{shown_path(repair.path)}{cell}")


def place_of(location: Location) -> str:
    if not location:
        return "(no line of the program)"
    path = shown_path(location.file)
    if location.cell:
        return location_in_file(path, location.cell, location.line)
    return f"{path}:{location.line}"


def shown_path(path: str) -> str:
    return os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path


# Counts


def shown_counts(examination: Examination) -> list[RunCounts]:
    return [each for each in examination.counts if each.shown]


def counts_in_words(counts: RunCounts) -> str:
    return "\n".join([counts.title, *(f"    {line}" for line in lines_of_counts(counts))])


def lines_of_counts(counts: RunCounts) -> list[str]:
    return [printable(f"{name:9} {words}") for name, words in counts.lines]


# What is said beside the findings


def rest_in_words(examination: Examination) -> list[str]:
    parts = []
    if examination.failure:
        parts.append(
            f"the program failed in a way that is none of the modes: {failure_of(examination)}"
        )
    elif not examination.findings:
        parts.append(nothing_found(examination))
    parts += [f"not seen: {each}" for each in examination.unseen]
    parts += [f"note: {note}" for note in examination.notes]
    if examination.runs:
        parts.append(f"{times_in_words(examination)}: {'; '.join(runs_in_words(examination))}")
    return [printable(part) for part in parts]


def failure_of(examination: Examination) -> str:
    """Returns how the program failed, with the line if one is known."""
    location = examination.failed_at
    if not location:
        return examination.failure
    # A program of cells is named already.
    place = str(location) if location.code else place_of(location)
    return f"{examination.failure} ({place})"


def nothing_found(examination: Examination) -> str:
    """Returns the words for an examination without a finding: they give a clean bill only if everything was seen."""
    but = ", but not everything was seen" if examination.unseen else ""
    places = " and ".join(dict.fromkeys(map(place_in_words, examination.recordings)))
    return f"nothing found {places}{but}"


def times_in_words(examination: Examination) -> str:
    """Returns how often the program ran: what it does outside of its folder has happened as often."""
    return f"the program ran {counted(len(examination.runs), 'time')}"


def runs_in_words(examination: Examination) -> list[str]:
    """Returns all runs, those that are alike together."""
    made = Counter(map(run_in_words, examination.runs))
    return [f"{words}, {count} times" if count > 1 else words for words, count in made.items()]


def run_in_words(run: RunMade) -> str:
    task = f", {run.task}" if run.task else ""
    return f"{run.words}{task}" + (", discarded" if run.discarded else "")


# Progress


def progress_in_words(step: Progress, seconds: bool = True) -> str:
    """Returns a line about a run or a finding. A stored notebook leaves out the seconds, which differ each time."""
    if isinstance(step, FindingKnown):
        return known_in_words(step)
    if isinstance(step, RunStarted):
        return f"{start_in_words(step)} ..."
    return f"  {end_in_words(step, seconds)}"


def known_in_words(step: FindingKnown) -> str:
    finding = step.finding
    return printable(
        f"known so far: {place_of(finding.location)}  {finding.mode}  {finding.message}"
    )


def start_in_words(step: RunStarted) -> str:
    return f"running {step.description}"


def end_in_words(step: RunEnded, seconds: bool = True) -> str:
    task = f"{step.task} " if step.task else ""
    return f"{task}{step.outcome.value}" + (f" after {step.seconds:.1f} s" if seconds else "")
