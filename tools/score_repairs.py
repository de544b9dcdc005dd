"""Which repairs are written and proven: `python tools/score_repairs.py [MODE ...]` mends the programs of the modes.

The broken program and the exercise of each mode are examined as a reader's, on the devices of their setup and on one. For
each finding a line says what became of its repair, with the lines that it changes; the last line has the totals.
"""

import ast
import sys
import tempfile
from collections import Counter
from pathlib import Path

from strategy_clinic.base import files
from strategy_clinic.examiner.benchmark import programs
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


def main(modes: list[str]) -> None:
    totals: Counter[str] = Counter()
    for mode, page in files.mode_pages().items():
        for subject in SUBJECTS if not modes or mode in modes else ():
            attempts = attempts_of(page, subject)
            totals.update(map(state, attempts) if attempts else ["programs without a finding"])
            for attempt in attempts:
                print(f"{mode} {subject:8} {state(attempt):11} {attempt}", flush=True)
                print("\n".join(changed_lines(attempt)), end="\n" if attempt.proven else "")
    print(", ".join(f"{count} {name}" for name, count in sorted(totals.items())))


if __name__ == "__main__":
    main(sys.argv[1:])
