"""How the examiner does on programs that nobody here wrote: python tools/score_folder.py FOLDER [--keras 2,3] [--only PATTERN]

FOLDER holds other people's programs, and so lies outside of this repository: NAME.py, whose first lines say its source, its
licence and its copyright, and `faults.toml` with faults to plant, each a table [[fault]] of

    program   the NAME
    mode      the modes that say what is wrong, mostly one; none for a program that is correct so
    guilty    how the lines begin that do it
    edits     pairs of old and new text; each old one stands in the program once; none if it was published with the fault
    restart   true if it shows only when the program is started again (false)
    keras     the versions of Keras that have the fault (both)

A fault is named by a finding of its mode. Every other finding in its program, and every one in a correct program, is false: the
precision is the share of the right ones among all findings. In brackets are 95 % intervals (Clopper and Pearson).

With --check nothing runs: it says what does not fit together. Exit status 1 if that is anything, or if a correct one is reported.
"""

import argparse
import ast
import itertools
import re
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from strategy_clinic.examiner.benchmark.rates import beside_in_words, precision, rate
from strategy_clinic.examiner.findings import FRAMEWORK, Finding
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process

HEADING = ("Source:", "Licence:", "Copyright", "Changed:")
LICENCES = ("Apache-2.0", "MIT", "BSD")
COUNTS = [1, 2]
LIMIT = 300  # seconds for one run


@dataclass(frozen=True)
class OtherProgram:
    """A program as it is, or with one fault planted."""

    name: str
    text: str
    modes: tuple[str, ...] = ()
    guilty: tuple[int, ...] = ()
    restart: bool = False


@dataclass(frozen=True)
class Score:
    other: OtherProgram
    keras: int
    findings: tuple[Finding, ...]
    ended: str
    seconds: float

    @property
    def named(self) -> list[Finding]:
        """Returns the findings of the fault's mode that do not say that the program is right."""
        return [
            each for each in self.findings if each.mode in self.other.modes and self.blames(each)
        ]

    def blames(self, finding: Finding) -> bool:
        return not finding.by_framework or FRAMEWORK in self.other.modes

    @property
    def false(self) -> list[Finding]:
        """Returns what is found beside the fault, or in a correct program."""
        return [each for each in self.findings if each not in self.named]

    @property
    def on_line(self) -> bool:
        return any(each.line in self.other.guilty for each in self.named)

    @property
    def first(self) -> bool:
        return bool(self.named) and self.findings[0] in self.named

    @property
    def word(self) -> str:
        if not self.other.modes:
            failed = f"ENDED {self.ended}" if self.ended != "finished" else "correct"
            return "FALSE POSITIVE" if self.findings else failed
        word = "on the line" if self.on_line else "named" if self.named else "missed"
        beside = f", {len(self.false)} false" if self.named and self.false else ""
        return word + (", not first" if self.named and not self.first else "") + beside


def programs(folder: Path, keras: int) -> list[OtherProgram]:
    """Every program, followed by what its faults make of it on this version of Keras."""
    faults = tomllib.loads((folder / "faults.toml").read_text()).get("fault", [])
    found = []
    for path in sorted(folder.glob("*.py")):
        mine = [each for each in faults if each["program"] == path.stem]
        mine = [each for each in mine if keras in each.get("keras", (2, 3))]
        if all(each["edits"] for each in mine):
            found.append(OtherProgram(path.stem, path.read_text(), restart=True))
        found += [planted(path, each) for each in mine]
    return found


def planted(path: Path, fault: dict) -> OtherProgram:
    text = path.read_text()
    for old, new in fault["edits"]:
        if text.count(old) != 1:
            raise ValueError(f"{path.name}: {text.count(old)} times there, and not once: {old!r}")
        text = text.replace(old, new)
    modes, lines, numbers = tuple(fault["mode"]), text.splitlines(), []
    for guilty in fault["guilty"]:
        alike = [n for n, line in enumerate(lines, 1) if line.strip().startswith(guilty)]
        if not alike:
            raise ValueError(f"{path.name}, {', '.join(modes)}: no line begins with {guilty!r}")
        numbers += alike
    restart = fault.get("restart", not modes)
    return OtherProgram(path.stem, text, modes, tuple(numbers), restart)


def problems(folder: Path) -> list[str]:
    """What does not fit: texts that are not there, lines that are not one, programs that say not whose they are."""
    found = []
    for path in sorted(folder.glob("*.py")):
        heading = "\n".join(path.read_text().splitlines()[:12])
        found += [
            f"{path.name}: no {word!r} in its heading" for word in HEADING if word not in heading
        ]
        if not any(each in heading for each in LICENCES):
            found.append(f"{path.name}: none of the licences {', '.join(LICENCES)}")
    try:
        for each in itertools.chain(programs(folder, 2), programs(folder, 3)):
            ast.parse(each.text)
    except (OSError, KeyError, ValueError, SyntaxError) as error:
        found.append(str(error))
    return found


def examine(other: OtherProgram, keras: int) -> Score:
    """As a reader's program is: in a folder with nothing else, on two devices and on one."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "program"
        folder.mkdir()
        (folder / "train.py").write_text(other.text)
        options = {"keras": keras, "limit": LIMIT}
        server = python_process.fork_server()
        program = ProgramSpec(("train.py",), folder, fork_server=server, **options)
        found = plan.examine(program, COUNTS, other.restart)
    seconds = time.monotonic() - began
    return Score(other, keras, tuple(found.findings), ended(found), seconds)


def ended(found) -> str:
    outcomes = [run.outcome.value for run in found.recordings if not run.finished]
    unseen = ["not all was seen"] if found.unseen else []
    return found.failure or next(iter([*outcomes, *unseen]), "finished")


def line_of(score: Score) -> str:
    said = ", ".join(f"{each.mode} at line {each.line}" for each in score.findings) or "nothing"
    other = score.other
    fault = " or ".join(other.modes) or "as it is"
    lines = f" (guilty: {', '.join(map(str, other.guilty))})" if other.guilty else ""
    seconds = f"{score.seconds:.0f} s"
    return f"{other.name:16} {fault:13} Keras {score.keras}  {score.word:24} {said}{lines}  [{score.ended}, {seconds}]"


def totals(scores: list[Score]) -> str:
    """Returns the shares with their 95 % intervals, and what is found beside the faults."""
    broken = [each for each in scores if each.other.modes]
    well = [each for each in scores if not each.other.modes]
    return "; ".join(
        [
            rate(sum(bool(each.named) for each in broken), len(broken), "faults named"),
            rate(sum(each.on_line for each in broken), len(broken), "on the line"),
            f"{sum(each.first for each in broken)} likeliest first",
            beside_in_words([each.false for each in broken]),
            precision(
                sum(len(each.named) for each in scores), sum(len(each.findings) for each in scores)
            ),
            rate(sum(bool(each.findings) for each in well), len(well), "correct accused"),
        ]
    )


def main(words: list[str]) -> int:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    reader.add_argument("folder", type=Path)
    reader.add_argument("--keras", default="3", help="2, 3 or 2,3")
    reader.add_argument("--only", default="", help="a pattern for a name and its modes, or correct")
    reader.add_argument("--check", action="store_true")
    options = reader.parse_args(words)
    wrong = problems(options.folder)
    print(*wrong, sep="\n" if wrong else "")
    if wrong or options.check:
        return bool(wrong)
    scores = []
    for keras in map(int, options.keras.split(",")):
        for each in programs(options.folder, keras):
            if re.search(options.only, " ".join((each.name, *(each.modes or ("correct",))))):
                scores.append(examine(each, keras))
                print(line_of(scores[-1]), flush=True)
        print(f"Keras {keras}: {totals([each for each in scores if each.keras == keras])}")
    return int(any(each.findings for each in scores if not each.other.modes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
