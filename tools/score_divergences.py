"""Whether the examiner says rightly through whom runs differ: python tools/score_divergences.py [--only PATTERN] [--keras 3]

It examines the programs of divergent_programs.py. Exit status 1 if a correct program is accused.
"""

import argparse
import ast
import re
import sys
import tempfile
import time
from pathlib import Path

from divergent_programs import FRAMEWORK, NOBODY, PROGRAM, PROGRAMS, Program
from strategy_clinic.examiner.findings import Examination
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process

LIMIT = 120  # seconds for a run


def examined(program: Program, keras: int) -> Examination:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        (folder / "train.py").write_text(program.text)
        server = python_process.fork_server()
        spec = ProgramSpec(("train.py",), folder, keras=keras, limit=LIMIT, fork_server=server)
        return plan.examine(spec)


def blamed(examination: Examination) -> str:
    """Returns whose fault the findings say it is."""
    if examination.failure or not examination.findings:
        return f"failed: {examination.failure}" if examination.failure else NOBODY
    return FRAMEWORK if all(each.by_framework for each in examination.findings) else PROGRAM


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--keras", type=int, default=3)
    options = parser.parse_args()
    chosen = [program for program in PROGRAMS if re.search(options.only, program.name)]
    chosen = [program for program in chosen if program.fault_in(options.keras)]
    answers = []
    for program in chosen:
        fault = program.fault_in(options.keras)
        ast.parse(program.text)
        began = time.monotonic()
        examination = examined(program, options.keras)
        answers.append(blamed(examination))
        word = "right" if answers[-1] == fault else "WRONG"
        print(f"{word}  {fault:9} {program.name}: {answers[-1]} {time.monotonic() - began:.0f} s")
        for finding in examination.findings:
            print(f"       {finding.mode} line {finding.line}: {finding.message} ({finding.proof})")
        for note in (*examination.unseen, *examination.notes):
            print(f"       note: {note}")
        sys.stdout.flush()
    faults = [program.fault_in(options.keras) for program in chosen]
    pairs = list(zip(faults, answers))
    faulty = [pair for pair in pairs if pair[0] != NOBODY]
    right = sum(fault == answer for fault, answer in faulty)
    accused = sum(fault == NOBODY != answer for fault, answer in pairs)
    correct = len(pairs) - len(faulty)
    print(
        f"{right} of {len(faulty)} on the right side; {accused} of {correct} correct ones accused"
    )
    return int(accused > 0)


if __name__ == "__main__":
    sys.exit(main())
