"""Which repairs are written and proven: `python tools/score_repairs.py [MODE ...]` mends the programs of the modes.

The broken program and the exercise of each mode are examined as a reader's, on the devices of their setup and on one. For
each finding a line says what became of its repair, with the lines that it changes; the last line has the totals.

    python tools/score_repairs.py --programs FOLDER [--only PATTERN] [--totals]

mends the programs of tools/score_folder.py: their first examinations are recorded, and the runs that prove a repair are made.
The last line has the share of the findings of the planted faults that no exception shows, and that have a proven repair.
`--totals` prints no other line."""

import argparse
import ast
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import recordings
import score_folder
from strategy_clinic.base import files
from strategy_clinic.examiner.benchmark import programs
from strategy_clinic.examiner.benchmark.rates import rate
from strategy_clinic.examiner.findings import Evidence
from strategy_clinic.examiner.runs import mend, plan

SUBJECTS = "broken", "exercise"
KERAS = 3


def attempts_of(page: Path, subject: str) -> list[mend.Attempt]:
    """Returns what became of the repairs of a program."""
    setup = programs.setup_in(ast.parse(page.read_text()), KERAS, "")
    mode = files.page_id(page)
    text = programs.as_written(files.program_text(mode, subject), setup)
    program = programs.BenchmarkProgram(mode, subject, setup, text)
    counts = sorted({1, setup.devices})
    with tempfile.TemporaryDirectory() as place:
        spec = programs.lay_out(program, Path(place).resolve())
        examination = plan.examine(spec, counts)
        return mend.mend(spec, examination, counts)


def state(attempt: mend.Attempt) -> str:
    return "proven" if attempt.proven else "refuted" if attempt.reasons else "not written"


def changed_lines(attempt: mend.Attempt) -> list[str]:
    diff = attempt.proven.diff("").splitlines()[2:] if attempt.proven else []
    return [f"    {line}" for line in diff if line[0] in "+-"]


def attempts_in(variant: score_folder.Variant, folder: Path) -> Iterator[mend.Attempt]:
    """Yields what became of the repairs of a planted fault that raises no exception."""
    path = folder / variant.folder.name / variant.file_name
    with tempfile.TemporaryDirectory() as temporary:
        spec = variant.spec(Path(temporary).resolve())
        with recordings.sandboxes(lambda program: recordings.replay(path, program)):
            examination = plan.examine(spec, score_folder.COUNTS)
        silent = [each for each in examination.findings if each.evidence is not Evidence.RAISED]
        for finding in silent:
            if finding.mode in variant.modes:
                yield mend.attempt_of(spec, examination, finding, score_folder.COUNTS)


def mend_programs(folder: Path, only: str, totals: bool) -> None:
    recorded = score_folder.RECORDINGS / folder.name
    faults = [
        each for each in score_folder.variants(folder) if each.fault and re.search(only, each.name)
    ]
    states: Counter[str] = Counter()
    for variant in faults:
        for attempt in attempts_in(variant, recorded):
            states[state(attempt)] += 1
            if not totals:
                tell(variant.name, attempt)
    print(rate(states["proven"], states.total(), "silent findings have a proven repair"))


def mend_modes(modes: list[str]) -> None:
    totals: Counter[str] = Counter()
    for mode, page in files.mode_pages().items():
        for subject in SUBJECTS if not modes or mode in modes else ():
            attempts = attempts_of(page, subject)
            totals.update(map(state, attempts) if attempts else ["programs without a finding"])
            for attempt in attempts:
                tell(f"{mode} {subject}", attempt)
    print(", ".join(f"{count} {name}" for name, count in sorted(totals.items())))


def tell(program: str, attempt: mend.Attempt) -> None:
    print(f"{program:40} {state(attempt):11} {attempt}", flush=True)
    print("\n".join(changed_lines(attempt)), end="\n" if attempt.proven else "", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--totals", action="store_true")
    arguments = parser.parse_args()
    if arguments.programs:
        mend_programs(arguments.programs.resolve(), arguments.only, arguments.totals)
    else:
        mend_modes(arguments.modes)


if __name__ == "__main__":
    main()
