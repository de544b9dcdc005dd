"""How the examiner does on programs that were written without it: python tools/score_folder.py FOLDER [--replay]

FOLDER holds a folder for each program: its files, and `faults.toml` with faults to plant:

    command    how it is run: ["train.py", "--epochs", "4"], ["-m", "package.train"] or ["notebook.ipynb"]
    resumes    true if it goes on from what it has saved (false)
    [[fault]]
    name       unique in the program
    mode       the modes that say what is wrong, mostly one
    guilty     the lines that do it: pairs of a file and how the line begins; any line of the same statement counts
    edits      triples of a file, an old text, which stands there once, and a new text
    restart    true if it shows only when the program is started again (false)

Every program is examined on one and on two devices as `clinic examine` does it, a correct one that resumes with all
restarts. A fault is named by a finding of its mode. Every other finding in its program, and every one in a correct program,
is false: the precision is the share of the right ones among all findings. In brackets are 95 % intervals (Clopper and
Pearson).

--record keeps the runs of every examination that is not recorded yet or out of date, and --replay makes none: see
tools/recordings.py. --verify prints how the runs show each fault, by what they print and not by what the examiner says of
them. --check runs nothing: it says what does not fit together. Exit status 1 if a correct program is reported, a fault does
not show or anything does not fit."""

import argparse
import ast
import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import IPython  # noqa: F401 # before threads do: two that import it at the same time fail
import recordings
from strategy_clinic.base.errors import UserError
from strategy_clinic.base.files import ROOT
from strategy_clinic.examiner.benchmark.rates import beside_in_words, precision, rate
from strategy_clinic.examiner.findings import Examination, Finding
from strategy_clinic.examiner.frontends.program_input import with_notebook
from strategy_clinic.examiner.recording import Moment, Recording, Role
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.observer.events import Outcome
from strategy_clinic.processes import python_process

TABLE = "faults.toml"
RECORDINGS = ROOT / "tests" / "recordings"
COUNTS = [1, 2]
LIMIT = 120  # seconds for one run
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|\bnan\b|\binf\b")
ALIKE = 2e-3  # the largest relative difference of two numbers that are printed alike
SMALLEST = 0.05  # below which the difference counts as if the number was this large
# Modes that were split after the faults had been named: what was the one is this one now, too.
SPLIT = {"fm05": ["fm65", "fm66"], "fm54": ["fm77"]}


@dataclass(frozen=True)
class Fault:
    name: str
    mode: list[str]
    guilty: list[list[str]]
    edits: list[list[str]]
    restart: bool = False


@dataclass(frozen=True, eq=False)
class Variant:
    """A program as it is, or with one fault planted."""

    folder: Path
    command: tuple[str, ...]
    resumes: bool
    fault: Fault | None = None

    @property
    def name(self) -> str:
        return f"{self.folder.name} {self.fault.name if self.fault else 'correct'}"

    @property
    def file_name(self) -> str:
        """The name of the file with its recorded runs."""
        return f"{self.name.split()[1]}.json.xz"

    @property
    def modes(self) -> list[str]:
        named = self.fault.mode if self.fault else []
        return [*named, *(new for mode in named for new in SPLIT.get(mode, ()))]

    def lay_out(self, place: Path) -> Path:
        """Writes the files of the program; raises ValueError if an edit or a line does not fit them."""
        leave_out = shutil.ignore_patterns(TABLE, "__pycache__")
        shutil.copytree(self.folder, place, ignore=leave_out)
        for name, old, new in self.fault.edits if self.fault else ():
            text = (place / name).read_text()
            if text.count(old) != 1:
                raise ValueError(
                    f"{self.name}: {text.count(old)} times in {name}, not once: {old!r}"
                )
            (place / name).write_text(text.replace(old, new))
        for name, begins in self.fault.guilty if self.fault else ():
            if not any(line.strip().startswith(begins) for line in lines_of(place / name)):
                raise ValueError(f"{self.name}: no line of {name} begins with {begins!r}")
        return place

    def spec(self, place: Path) -> ProgramSpec:
        """Writes the files of the program, and returns how it is run."""
        folder = self.lay_out(place / "program").resolve()
        server = python_process.fork_server()
        return with_notebook(
            ProgramSpec(self.command, folder, keras=3, limit=LIMIT, fork_server=server)
        )

    def examine(self, place: Path) -> Examination:
        restart = True if self.resumes and not self.fault else None
        return plan.examine(self.spec(place), COUNTS, restart)


@dataclass(frozen=True, eq=False)
class Score:
    """What is said of a program, and for each finding whether it is on a line that is to blame."""

    variant: Variant
    findings: tuple[Finding, ...]
    on_lines: tuple[bool, ...]
    ended: str
    runs: tuple[Recording, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def named(self) -> list[Finding]:
        """Returns the findings of the fault's mode, whoever is wrong by its page: the program, or Keras."""
        return [each for each in self.findings if each.mode in self.variant.modes]

    @property
    def false(self) -> list[Finding]:
        """Returns what is found beside the fault, or in a correct program."""
        return [each for each in self.findings if each not in self.named]

    @property
    def on_line(self) -> bool:
        found = zip(self.findings, self.on_lines)
        return any(on_line and each in self.named for each, on_line in found)

    @property
    def first(self) -> bool:
        return bool(self.named) and self.findings[0] in self.named

    @property
    def noted(self) -> bool:
        """Tells whether a note names the mode that no finding names; in a correct program, any mode."""
        modes = self.variant.modes if self.variant.fault else [r"fm\d+"]
        return not self.named and any(
            re.search(rf"\({mode}\)", note) for mode in modes for note in self.notes
        )

    @property
    def word(self) -> str:
        if not self.variant.fault:
            failed = f"ENDED {self.ended}" if self.ended != "finished" else "correct"
            return "FALSE POSITIVE" if self.findings else failed
        words = {"on the line": self.on_line, "named": bool(self.named), "in a note": self.noted}
        word = next((word for word, holds in words.items() if holds), "missed")
        beside = f", {len(self.false)} false" if self.named and self.false else ""
        return word + (", not first" if self.named and not self.first else "") + beside


# The programs


def variants(folder: Path) -> list[Variant]:
    """Returns every program, followed by its faults."""
    found = []
    for table in sorted(folder.glob(f"*/{TABLE}")):
        told = tomllib.loads(table.read_text())
        correct = Variant(table.parent, tuple(told["command"]), told.get("resumes", False))
        faults = [Fault(**each) for each in told.get("fault", [])]
        names = [each.name for each in faults]
        if len(set(names)) < len(names):
            raise ValueError(f"{table.parent.name}: a name is given to two faults")
        found.append(correct)
        found += [
            Variant(correct.folder, correct.command, correct.resumes, each) for each in faults
        ]
    return found


def problems(folder: Path) -> list[str]:
    """Returns what does not fit: texts and lines that are not there, and edits after which a file is no Python."""
    try:
        every = variants(folder)
    except (OSError, KeyError, TypeError, ValueError) as error:
        return [str(error)]
    if not every:
        return [f"no program with {TABLE} in {folder}"]
    return [problem for variant in every for problem in problems_of(variant)]


def problems_of(variant: Variant) -> list[str]:
    with tempfile.TemporaryDirectory() as place:
        try:
            for path in variant.lay_out(Path(place) / "program").rglob("*.py"):
                ast.parse(path.read_text())
        except (OSError, ValueError, SyntaxError) as error:
            return [f"{variant.name}: {error}"]
    return []


def lines_of(path: Path) -> list[str]:
    """Returns the lines of a module, or those of all cells of a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text().splitlines()
    cells = json.loads(path.read_text())["cells"]
    return [line for cell in cells for line in "".join(cell["source"]).splitlines()]


def is_guilty(finding: Finding, variant: Variant, place: Path) -> bool:
    """Tells whether a finding is on a line that is to blame, or on another one of the same statement."""
    guilty = variant.fault.guilty if variant.fault else []
    here = [begins for name, begins in guilty if Path(finding.file) == place / name]
    if finding.location.code:
        return finding.location.code.startswith(tuple(here))
    path = Path(finding.file)
    lines = enumerate(lines_of(path) if here else [], 1)
    numbers = [n for n, line in lines if line.strip().startswith(tuple(here))]
    return any(finding.line in statement_at(path, number) for number in numbers)


def statement_at(path: Path, line: int) -> range:
    """Returns the lines of the smallest statement on a line; the header only, of one with a body."""
    spans = [
        range(node.lineno, node.body[0].lineno if hasattr(node, "body") else node.end_lineno + 1)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.stmt)
    ]
    return min((span for span in spans if line in span), key=len, default=range(line, line + 1))


# Their scores


def score(variant: Variant, place: Path) -> Score:
    found = variant.examine(place)
    findings = tuple(found.findings)
    folder = (place / "program").resolve()
    on_lines = tuple(is_guilty(each, variant, folder) for each in findings)
    runs, notes = tuple(found.recordings), tuple(found.notes)
    return Score(variant, findings, on_lines, ended(found), runs, notes)


def ended(found: Examination) -> str:
    outcomes = [run.outcome.value for run in found.recordings if not run.finished]
    unseen = ["not all was seen"] if found.unseen else []
    return found.failure or next(iter([*outcomes, *unseen]), "finished")


def scores_of(chosen: list[Variant], folder: Path, mode: str, jobs: int) -> Iterator[Score]:
    """Examines programs, `jobs` of them at the same time, whose runs are made, recorded or replayed."""

    def scored(variant: Variant) -> Score:
        path = folder / variant.folder.name / variant.file_name
        try:
            return scored_in(variant, path)
        except recordings.NotRecorded:
            if mode == "replay":
                raise
            again.add(path)  # a rule asks for other runs than before
            return scored_in(variant, path)

    def scored_in(variant: Variant, path: Path) -> Score:
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary).resolve()
            paths[place] = path
            return score(variant, place)

    def sandbox(program: ProgramSpec) -> plan.Sandbox:
        path = next(paths[each] for each in program.folder.parents if each in paths)
        if mode == "replay" or path not in again and not recordings.stale(path, program):
            return recordings.replay(path, program)
        return recordings.RecordingSandbox(program, path)

    paths: dict[Path, Path] = {}
    again: set[Path] = set()
    with ThreadPoolExecutor(jobs) as pool:
        if mode == "live":
            yield from pool.map(scored, chosen)
            return
        with recordings.sandboxes(sandbox):
            yield from pool.map(scored, chosen)


def pack(every: list[Variant], folder: Path) -> None:
    """Makes one archive for each program with new recordings, without those of faults that it no longer has."""
    names: dict[str, set[str]] = defaultdict(set)
    for variant in every:
        names[variant.folder.name].add(Path(variant.file_name).stem)
    for program in sorted(path for path in folder.glob("*") if path.is_dir()):
        recordings.pack(program, names[program.name])


def line_of(score: Score) -> str:
    said = ", ".join(
        f"{each.mode} at {Path(each.file).name}:{each.line}" for each in score.findings
    )
    fault = " or ".join(score.variant.modes) or "as it is"
    return (
        f"{score.variant.name:44} {fault:13} {score.word:24} {said or 'nothing'}  [{score.ended}]"
    )


def totals(scores: list[Score]) -> str:
    """Returns the shares with their 95 % intervals, and what is found beside the faults."""
    broken = [each for each in scores if each.variant.fault]
    well = [each for each in scores if not each.variant.fault]
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
            f"notes name {sum(each.noted for each in broken)} more, "
            f"and a mode in {sum(each.noted for each in well)} of {len(well)} correct",
        ]
    )


# How the runs show a fault


def shown(correct: Score, other: Score) -> list[str]:
    """Returns in which runs a fault changes how a program ends or the last numbers that it prints."""
    whole, changed = printed(correct), printed(other)
    found = ["raises"] if any(run.outcome in BADLY for run in other.runs if counts(run)) else []
    found += ["result"] if differ(changed[Role.WATCHED], whole[Role.WATCHED]) else []
    found += ["devices"] if differ(changed[Role.WATCHED], changed[Role.COMPARED]) else []
    found += ["restart"] if differ(changed[Role.WATCHED], changed[Role.RESTARTED]) else []
    return found


BADLY = (Outcome.RAISED, Outcome.HANGS, Outcome.EXITED)


def counts(run: Recording) -> bool:
    """Tells whether what a run prints is compared: what half a file does is another matter."""
    return (
        run.role in (Role.WATCHED, Role.COMPARED, Role.RESTARTED)
        and run.moment is not Moment.DURING
    )


def printed(score: Score) -> dict[Role, list[list[str]]]:
    """Returns for each role the numbers of the last line with any, of each of its runs."""
    found: dict[Role, list[list[str]]] = {Role.WATCHED: [], Role.COMPARED: [], Role.RESTARTED: []}
    for run in filter(counts, score.runs):
        lines = [NUMBER.findall(line) for line in run.output.splitlines()]
        found[run.role].append(next((each for each in lines[::-1] if each), []))
    return found


def differ(some: list[list[str]], others: list[list[str]]) -> bool:
    return any(not are_alike(one, other) for one in some for other in others)


def are_alike(one: list[str], other: list[str]) -> bool:
    pairs = [(float(a), float(b)) for a, b in zip(one, other)]
    return len(one) == len(other) and all(
        a == b or str(a) == str(b) or abs(a - b) <= ALIKE * max(abs(a), abs(b), SMALLEST)
        for a, b in pairs
    )


def verified(scores: list[Score]) -> list[str]:
    """Prints how each fault shows, and returns the names of those that do not, or of correct programs that show one."""
    correct = {each.variant.folder: each for each in scores if not each.variant.fault}
    wrong = []
    for each in scores:
        found = shown(correct[each.variant.folder], each)
        fault = each.variant.fault
        fits = found == ["restart"] if fault and fault.restart else bool(found) == bool(fault)
        wrong += [] if fits else [each.variant.name]
        print(f"{each.variant.name:44} {', '.join(found) or 'nothing'}{'' if fits else '  WRONG'}")
    print(
        f"{len(wrong)} of {len(scores)} do not show what they should{': ' if wrong else ''}{', '.join(wrong)}"
    )
    return wrong


def main(words: list[str]) -> int:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    reader.add_argument("folder", type=Path)
    reader.add_argument("--only", default="", help="a pattern for a name and its modes")
    for name in ("replay", "record", "verify", "check"):
        reader.add_argument(f"--{name}", action="store_true")
    reader.add_argument("--jobs", type=int, default=1, help="examinations at the same time")
    options = reader.parse_args(words)
    wrong = problems(options.folder)
    print(*wrong, sep="\n" if wrong else "")
    if wrong or options.check:
        return bool(wrong)
    chosen = [
        each
        for each in variants(options.folder)
        if re.search(options.only, " ".join((each.name, *each.modes)))
    ]
    mode = "replay" if options.replay else "record" if options.record else "live"
    scores = []
    try:
        for each in scores_of(chosen, RECORDINGS / options.folder.name, mode, options.jobs):
            scores.append(each)
            if not options.verify:
                print(line_of(each), flush=True)
    except (UserError, recordings.NotRecorded) as error:
        raise SystemExit(f"{error}") from None
    if options.record:
        pack(variants(options.folder), RECORDINGS / options.folder.name)
    if options.verify:
        return bool(verified(scores))
    print(totals(scores))
    return int(any(each.findings for each in scores if not each.variant.fault))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
