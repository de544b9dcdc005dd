"""The command `clinic`: its arguments. A user's mistake is one sentence and exit status 2."""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any, NoReturn

from . import commands  # isort: skip
from .base import project
from .base.errors import UserError
from .base.quick_imports import without_grammars
from .setups import parameters, tpu

logger = logging.getLogger(__name__)


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations and usage blocks: one sentence says what is wrong and what is valid."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses unknown arguments here; argparse would leave them to the top parser, which does not know the options."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        names = [name for action in self._actions for name in action.option_strings]
        options = ", ".join(name for name in names if name.startswith("--"))
        raise UserError(f"{message}; options of {self.prog!r}: {options}.")


def words(text: str) -> list[str]:
    return text.split(",")


def numbers(text: str) -> list[int | str]:
    """Returns whole numbers; other words stay as they are, so that the error can say what is valid."""
    return [int(word) if word.lstrip("-").isdigit() else word for word in words(text)]


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


Argument = tuple[tuple[str, ...], dict[str, Any]]


def argument(*names: str, **options: Any) -> Argument:
    return names, options


def choice(name: str) -> Argument:
    """Returns an option that takes one or more values of a parameter of the notebooks."""
    valid = parameters.choices()[name]
    return argument(
        f"--{name.replace('_', '-')}",
        type=words if isinstance(valid[0], str) else numbers,
        help=f"one or more of {', '.join(map(str, valid))}, or all",
    )


MODES = argument("modes", nargs="*", help="ids such as fm25; without any: all modes")
PAGES = argument("modes", nargs="*", help="ids such as fm25, or documents; without any: all pages")
SOME = argument("modes", nargs="+", help="ids such as fm25, notebooks, or all")
KERAS = argument("--keras", type=numbers, default=[3], help="version of Keras: 2, 3 or 2,3")
JOBS = argument("--jobs", type=positive, default=1, help="number of runs at the same time")
AGAIN = argument("--again", action="store_true", help="repeat runs that have finished before")
JUNIT = argument("--junit", type=Path, metavar="FILE", help="also write a report in JUnit XML")
LIMIT = argument("--limit", type=positive, metavar="SECONDS", help="time limit of each run")
VERBOSE = argument("-v", "--verbose", action="store_true", help="log to standard error")

# Each command: what it does, its function, and its arguments.
COMMANDS: dict[str, tuple[str, Any, list[Argument]]] = {
    "run": (
        "run notebooks over a grid of setups",
        commands.run_notebooks,
        [
            SOME,
            choice("strategy"),
            choice("devices"),
            choice("save_format"),
            KERAS,
            argument(
                "-o", "--output", type=Path, default=Path("runs"), help="folder for the results"
            ),
            JOBS,
            LIMIT,
            AGAIN,
            argument("--scheduler", metavar="ADDRESS", help="address of a dask cluster"),
        ],
    ),
    "new": (
        "start a new failure mode: its folder, with templates",
        commands.new_mode,
        [
            argument("id", help="id of the mode: the letters fm and two digits"),
            argument("slug", help="name of the mode, such as optimizer_state_lost"),
        ],
    ),
    "render": (
        "run the sources of pages and write their notebooks",
        commands.render_notebooks,
        [
            PAGES,
            argument("--check", action="store_true", help="list outdated notebooks; run nothing"),
            argument(
                "--text",
                action="store_true",
                help="write only text and set-up cells, which need no run",
            ),
            argument(
                "--pull",
                type=Path,
                metavar="NOTEBOOK",
                help="copy the edits of a notebook into its source",
            ),
        ],
    ),
    "record": (
        "store the verdicts of this machine and its versions",
        commands.record_verdicts,
        [MODES, KERAS, JOBS, AGAIN]
        + [
            argument(
                "--lane",
                action="store_true",
                help="store them as the record of another version of TensorFlow",
            )
        ],
    ),
    "check": (
        "compare this machine and its versions with the recorded verdicts",
        commands.check_runtime,
        [MODES, KERAS, JOBS, JUNIT]
        + [
            argument(
                "--quick",
                action="store_true",
                help="run each notebook once, in its own setup, and no other setup",
            ),
            argument(
                "--save",
                type=Path,
                metavar="FOLDER",
                help="folder in which to store the verdicts, too",
            ),
        ],
    ),
    "sweep": (
        "compare every class of Keras on several replicas with one device",
        commands.sweep_keras,
        [
            argument(
                "--only", default="", metavar="PATTERN", help="only the cells whose names match"
            ),
            argument(
                "--keras",
                type=numbers,
                default=[2, 3],
                help="version of Keras: 2, 3 or 2,3; default: both",
            ),
            JOBS,
            AGAIN,
            argument("--check", action="store_true", help="print what differs from the record"),
            argument(
                "--generate",
                type=float,
                default=0.0,
                metavar="MINUTES",
                help="run programs that are drawn at random for so long, and shrink each that differs",
            ),
            argument("--seed", type=int, default=1, help="of the programs that are drawn"),
            argument("--json", default="", metavar="FILE", help="also write the report as JSON"),
            argument(
                "--save",
                type=Path,
                metavar="FOLDER",
                help="folder in which to store the cells of a check, too",
            ),
        ],
    ),
    "atlas": (
        "draw all records as one page",
        commands.draw_atlas,
        [argument("page", type=Path, help="the HTML file to write")],
    ),
    "triage": (
        "name the mode of an error message, and its notebook",
        commands.name_mode,
        [
            argument("file", nargs="?", default="-", help="a text file; default: standard input"),
            argument("--json", action="store_true", help="print one JSON object"),
            argument("--jsonl", action="store_true", help="read and print one object per line"),
        ],
    ),
    "examine": (
        "find failure modes in a training program",
        commands.examine_program,
        [
            argument("program", nargs=argparse.REMAINDER, help="a script and its arguments"),
            argument(
                "-m",
                dest="module",
                nargs=argparse.REMAINDER,
                help="a module and its arguments, in place of a script",
            ),
            argument(
                "--devices", type=numbers, default=[1, 2], help="numbers of devices to compare"
            ),
            argument(
                "--keras",
                type=numbers,
                default=[],
                help="version of Keras: 2 or 3; default: that of the program",
            ),
            argument("--python", default=sys.executable, help="the program's own interpreter"),
            argument(
                "--restart",
                action=argparse.BooleanOptionalAction,
                default=None,
                help="kill and restart the program at three moments, or never; default: once if it looks for its own saves",
            ),
            argument(
                "--mend", action="store_true", help="also offer repairs that runs have proven"
            ),
            argument(
                "--counts",
                action="store_true",
                help="also report what decides about speed and memory: bytes, graph calls, reads",
            ),
            argument("--steps", type=positive, default=0, help="stop each run after these steps"),
            argument(
                "--limit", type=positive, default=600, help="time limit of each run, in seconds"
            ),
            argument(
                "--json",
                metavar="FILE",
                help="also write the findings as JSON; - is standard output",
            ),
            argument("--sarif", type=Path, metavar="FILE", help="also write the findings as SARIF"),
            argument(
                "--show",
                type=Path,
                metavar="FILE",
                help="also write a page with what each replica holds where the runs part",
            ),
            argument(
                "--benchmark",
                action="store_true",
                help="examine the programs of the modes that are named, or of all",
            ),
            argument("--strategy", type=words, default=[], help="strategies of the benchmark"),
        ],
    ),
    "show": (
        "show what each replica holds in the first steps of a program, beside one device",
        commands.show_program,
        [
            argument("program", nargs=argparse.REMAINDER, help="a script and its arguments"),
            argument(
                "-m",
                dest="module",
                nargs=argparse.REMAINDER,
                help="a module and its arguments, in place of a script",
            ),
            argument("--devices", type=positive, default=2, help="number of devices; default: 2"),
            argument("--steps", type=positive, default=6, help="steps that are shown; default: 6"),
            argument("--keras", type=int, help="version of Keras: 2 or 3"),
            argument("--python", default=sys.executable, help="the program's own interpreter"),
            argument(
                "--limit", type=positive, default=600, help="time limit of each run, in seconds"
            ),
            argument("--html", type=Path, metavar="FILE", help="also write all steps as a page"),
        ],
    ),
    "compile": (
        "compile the steps of modes for a TPU",
        commands.compile_steps,
        [
            SOME,
            argument("--tpu", type=words, help=f"one or more of {', '.join(tpu.TPUS)}, or all"),
            KERAS,
        ],
    ),
    "notebooks": (
        "copy the notebooks to a folder",
        commands.copy_notebooks,
        [
            argument(
                "folder", type=Path, help="folder for the copies; no file in it is overwritten"
            ),
            argument("--open", action="store_true", help="and open JupyterLab on the first"),
        ],
    ),
    "wheel": (
        "build a wheel of this clone, to use its notebooks elsewhere, such as in Colab",
        commands.build_wheel,
        [
            argument(
                "folder", type=Path, nargs="?", default=Path("."), help="folder for the wheel"
            ),
            argument(
                "--of",
                type=Path,
                metavar="HANDOUT",
                help="build it of a handout, which has no solutions",
            ),
        ],
    ),
    "handout": (
        "write notebooks for participants, without solutions",
        commands.hand_out,
        [
            argument("folder", type=Path, help="a new folder; give away `for-participants` in it"),
            MODES,
            argument(
                "--nbgrader",
                action="store_true",
                help="write it as the source of an nbgrader course",
            ),
        ],
    ),
    "grade": (
        "grade participants' exercises: green, red, to read or not run",
        commands.grade_folder,
        [
            argument(
                "folder",
                type=Path,
                help="a folder of notebooks, or of one folder for each participant",
            ),
            JOBS,
            argument(
                "--limit", type=positive, metavar="SECONDS", help="time limit of each exercise"
            ),
            argument(
                "--csv",
                type=Path,
                metavar="FILE",
                help="also write the points as a table of participants and exercises",
            ),
            argument("--json", type=Path, metavar="FILE", help="also write the grades as JSON"),
            JUNIT,
        ],
    ),
}


def parser() -> Parser:
    top = Parser(prog="clinic", description="Runs the notebooks and tools of Strategy Clinic.")
    subparsers = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, (purpose, action, arguments) in COMMANDS.items():
        said = f"{purpose[0].upper()}{purpose[1:]}."
        command = subparsers.add_parser(name, help=purpose, description=said)
        for names, options in [*arguments, VERBOSE]:
            command.add_argument(*names, **options)
        command.set_defaults(action=action)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns its exit status."""
    try:
        options = parser().parse_args(arguments)
        if options.verbose:
            logging.basicConfig(format="%(name)s: %(message)s")
            logging.getLogger(__package__).setLevel(logging.DEBUG)
            logger.info("version %s, %s", project.project()["version"], sys.executable)
        with without_grammars():
            return int(options.action(options))
    except UserError as error:
        return failed(str(error))
    except ModuleNotFoundError as error:
        extra = project.extra_with(error.name or "")
        if extra is None:
            raise
        return failed(f"This needs {error.name}; run: {project.install_command(extra)}")
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        return failed(f"{reason}: {str(error.filename)!r}" if error.filename else reason)
    except KeyboardInterrupt:
        print("clinic: stopped; finished results are stored", file=sys.stderr)
        return 130


def failed(sentence: str) -> int:
    print(f"clinic: {sentence}", file=sys.stderr)
    return 2
