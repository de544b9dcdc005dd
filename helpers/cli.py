"""The command: clinic and what it does. A user's mistake is one sentence and exit status 2."""

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# jsonschema would build a grammar of international addresses at import: a second, for what no notebook holds.
sys.modules.setdefault("rfc3987_syntax", None)

from . import (  # noqa: E402
    atlas,
    compiler,
    formats,
    grade,
    handout,
    junit,
    kernels,
    records,
    render,
    runs,
    runtime,
    setups,
    sources,
    strategies,
)
from .refusals import Refused, choose  # noqa: E402


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations and usage blocks: one sentence says what was wrong and what is valid."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def parse_known_args(self, arguments=None, namespace=None):
        """Each command refuses what it does not know itself; argparse would leave that to the top, which knows no options."""
        options, unknown = super().parse_known_args(arguments, namespace)
        if unknown:
            self.error(f"unknown: {' '.join(unknown)}")
        return options, unknown

    def error(self, message):
        options = [
            text
            for action in self._actions
            for text in action.option_strings
            if text.startswith("--")
        ]
        raise Refused(f"{message}; options of {self.prog!r}: {', '.join(options)}.")


def words(text: str) -> list[str]:
    return text.split(",")


def numbers(text: str) -> list:
    """Whole numbers; what is none stays as it is, so that the tables can say what would be valid."""
    return [int(word) if word.lstrip("-").isdigit() else word for word in words(text)]


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parser() -> Parser:
    top = Parser(prog="clinic", description="Runs and renders the notebooks of Strategy Clinic.")
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    add_run(commands)
    add_render(commands)
    add_record(commands)
    add_check(commands)
    add_atlas(commands)
    add_compile(commands)
    add_handout(commands)
    add_grade(commands)
    return top


def add_run(commands):
    run = commands.add_parser("run", help="run notebooks over a grid of setups")
    run.add_argument("modes", nargs="+", help="ids such as fm25, notebooks, or all")
    run.add_argument(
        "--strategy", type=words, help=f"one or more of {', '.join(strategies.TABLE)}, or all"
    )
    run.add_argument(
        "--devices", type=numbers, help="one or more device counts, such as 1,2,4, or all"
    )
    run.add_argument(
        "--save-format", type=words, help=f"one or more of {', '.join(formats.TABLE)}, or all"
    )
    run.add_argument("--keras", type=numbers, default=[3], help="2, 3 or 2,3")
    run.add_argument(
        "-o", "--output", type=Path, default=Path("runs"), help="folder for notebooks and verdicts"
    )
    run.add_argument("--jobs", type=positive, default=1, help="how many runs at once")
    run.add_argument(
        "--limit", type=positive, default=runs.LIMIT, help="seconds after which a run hangs"
    )
    run.add_argument("--again", action="store_true", help="run anew what was finished before")
    run.add_argument("--scheduler", metavar="ADDRESS", help="a dask cluster to run on")
    run.set_defaults(action=run_action)


def add_render(commands):
    rendering = commands.add_parser("render", help="execute sources into notebooks")
    rendering.add_argument("modes", nargs="*", help="ids such as fm25; none means all")
    rendering.add_argument(
        "--check", action="store_true", help="say what is stale, without running anything"
    )
    rendering.add_argument(
        "--pull",
        type=Path,
        metavar="NOTEBOOK",
        help="take edits of a notebook back into its source",
    )
    rendering.set_defaults(action=render_action)


def add_record(commands):
    recording = commands.add_parser("record", help="keep every verdict of this runtime")
    add_measuring(recording)
    recording.add_argument("--again", action="store_true", help="run anew what is recorded already")
    recording.set_defaults(action=record_action)


def add_check(commands):
    checking = commands.add_parser("check", help="compare this runtime with outputs and record")
    add_measuring(checking)
    checking.add_argument("--junit", type=Path, metavar="FILE", help="the same as JUnit XML")
    checking.add_argument(
        "--save", type=Path, metavar="FOLDER", help="keep what was found there, as a record"
    )
    checking.set_defaults(action=check_action)


def add_atlas(commands):
    drawing = commands.add_parser("atlas", help="draw all records as one page")
    drawing.add_argument("page", type=Path, help="the HTML file to write")
    drawing.set_defaults(action=atlas_action)


def add_compile(commands):
    compiling = commands.add_parser("compile", help="ask the TPU compiler about the steps of modes")
    compiling.add_argument("modes", nargs="+", help="ids such as fm24, or all")
    compiling.add_argument(
        "--tpu",
        type=words,
        default=[compiler.USUAL],
        help=f"one or more of {', '.join(compiler.TOPOLOGIES)}, or all",
    )
    compiling.add_argument("--keras", type=numbers, default=[3], help="2, 3 or 2,3")
    compiling.set_defaults(action=compile_action)


def add_handout(commands):
    handing = commands.add_parser("handout", help="notebooks for participants, without solutions")
    handing.add_argument(
        "folder", type=Path, help="a new folder, OUT: give away all of it but OUT/solutions"
    )
    handing.add_argument("modes", nargs="*", help="ids such as fm25; none means all")
    handing.set_defaults(action=handout_action)


def add_grade(commands):
    grading = commands.add_parser(
        "grade", help="run a participant's exercises: green, red or not run"
    )
    grading.add_argument(
        "folder", type=Path, help="a participant's notebooks, or many participants' folders"
    )
    grading.add_argument("--jobs", type=positive, default=1, help="how many exercises at once")
    grading.add_argument(
        "--limit", type=positive, default=grade.LIMIT, help="seconds after which an exercise is red"
    )
    grading.add_argument("--json", type=Path, metavar="FILE", help="the same as JSON")
    grading.add_argument("--junit", type=Path, metavar="FILE", help="the same as JUnit XML")
    grading.set_defaults(action=grade_action)


def add_measuring(command):
    command.add_argument("modes", nargs="*", help="ids such as fm25; none means all")
    command.add_argument("--keras", type=numbers, default=[3], help="2, 3 or 2,3")
    command.add_argument("--jobs", type=positive, default=1, help="how many modes at once")


def record_action(options) -> int:
    chosen = runs.targets(options.modes or ["all"])
    for keras in generations(options):
        records.record(chosen, keras, options.jobs, options.again)
    return 0


def check_action(options) -> int:
    """Stored outputs by nbval, then every verdict against the record of this runtime."""
    chosen = runs.targets(options.modes or ["all"])
    wanted = generations(options)
    junit.require_place(options.junit)
    stored = [path for _, path in chosen] if options.modes else [sources.NOTEBOOKS]
    as_stored, suites = nbval(stored)
    problems = [] if as_stored else ["stored outputs differ: see above what nbval says"]
    for keras in wanted:
        found = records.compare(chosen, keras, options.jobs, save=options.save)
        problems = [each.problem for each in found if each.problem] + problems
        suites.append(junit.suite(f"verdicts-keras{keras}", [each.case() for each in found]))
    if options.junit:
        junit.write(options.junit, suites)
    print("\n".join(problems) or "every output and every verdict is as stored")
    return 1 if problems else 0


def nbval(paths: list[Path]) -> tuple[bool, list]:
    """Strict nbval as anybody would run it, except that pytest, too, starts from what is imported already."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outputs.xml"
        asked = ["-q", "--nbval", "--junitxml", str(report), "-o", "junit_suite_name=outputs"]
        passed = pytest(asked + [str(path) for path in paths])
        return passed, junit.read(report)


def pytest(arguments: list[str]) -> bool:
    process = kernels.start("pytest", dict(os.environ), sys.__stdout__, kernels.warm(), *arguments)
    try:
        return process.wait() == 0
    finally:
        process.kill()
        process.stdin.close()


def atlas_action(options) -> int:
    atlas.write(options.page)
    return 0


def compile_action(options) -> int:
    names = every(options.tpu, compiler.TOPOLOGIES)
    for keras in generations(options):
        compiler.compile_modes(runs.targets(options.modes), names, keras)
    return 0


def handout_action(options) -> int:
    handout.write(options.folder, options.modes or ["all"])
    return 0


def grade_action(options) -> int:
    """Reports are written anew with every grade, so whatever stops the command leaves those that were finished."""
    wanted = {grade.write: options.json, grade.write_junit: options.junit}
    places = {write: path for write, path in wanted.items() if path}
    for path in places.values():
        junit.require_place(path)

    def keep(grades):
        for write, path in places.items():
            write(path, grades)

    grades = grade.grade(options.folder, options.jobs, options.limit, keep)
    return 0 if all(each.result == "green" for each in grades) else 1


def generations(options) -> list[int]:
    return [choose("keras", keras, runtime.GENERATIONS) for keras in options.keras]


def run_action(options) -> int:
    names = every(options.strategy or ["mirrored"], strategies.TABLE)
    counts = every(options.devices or default_counts(names), strategies.COUNTS)
    kept_as = every(options.save_format or ["keras"], formats.TABLE)
    chosen, skipped = setups.grid(names, counts, kept_as, options.keras)
    for reason in skipped:
        print(f"skipped: {reason}")
    pool = (
        runs.cluster(options.scheduler) if options.scheduler else ThreadPoolExecutor(options.jobs)
    )
    agreed = runs.run_grid(
        options.modes, chosen, options.output, pool, options.limit, options.again
    )
    return 0 if agreed else 1


def every(given: list, valid) -> list:
    """The word all stands for every value."""
    return list(valid) if given == ["all"] else given


def default_counts(names: list[str]) -> list[int]:
    """Without --devices each strategy gets two devices, or the one count it has."""
    rows = [strategies.TABLE[choose("strategy", name, strategies.TABLE)] for name in names]
    return sorted({2 if 2 in row.counts else row.counts[0] for row in rows})


def render_action(options) -> int:
    if options.pull:
        sources.pull(options.pull)
        return 0
    if not options.check:
        render.render_all(options.modes)
        return 0
    problems = render.check(options.modes)
    print("\n".join(problems) or "every notebook is what its source says")
    return 1 if problems else 0


def main(arguments=None) -> int:
    try:
        options = parser().parse_args(arguments)
        return options.action(options)
    except Refused as reason:
        print(f"clinic: {reason}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"clinic: {error.strerror}: {str(error.filename)!r}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("clinic: stopped; what had finished is kept", file=sys.stderr)
        return 130
