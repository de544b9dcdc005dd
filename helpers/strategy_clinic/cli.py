"""The command: clinic, its arguments and their meaning. A user's mistake is one sentence and exit status 2."""

import argparse
import sys
from pathlib import Path

from .base import lean  # noqa: F401, first: it spares what follows a second

from . import commands  # isort: skip
from .base.errors import UserError
from .setups import parameters, tpu


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
        raise UserError(f"{message}; options of {self.prog!r}: {', '.join(options)}.")


def several(text: str) -> list[str]:
    return text.split(",")


def several_numbers(text: str) -> list:
    """Whole numbers; what is none stays as it is, so that the tables can say what would be valid."""
    return [int(word) if word.lstrip("-").isdigit() else word for word in several(text)]


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def one_or_more(name: str) -> dict:
    """An option with several values of a parameter, which the tables know."""
    valid = ", ".join(map(str, parameters.choices()[name]))
    kind = several if isinstance(parameters.choices()[name][0], str) else several_numbers
    return {"type": kind, "help": f"one or more of {valid}, or all"}


def argument(*names, **options) -> tuple:
    return names, options


MODES = argument("modes", nargs="*", help="ids such as fm25; none means all")
SOME = argument("modes", nargs="+", help="ids such as fm25, notebooks, or all")
KERAS = argument("--keras", type=several_numbers, default=[3], help="2, 3 or 2,3")
JOBS = argument("--jobs", type=positive, default=1, help="how many at once")
AGAIN = argument("--again", action="store_true", help="run anew what was finished before")
JUNIT = argument("--junit", type=Path, metavar="FILE", help="the same as JUnit XML")
LIMIT = argument("--limit", type=positive, metavar="SECONDS", help="after which a run hangs")

# What every command is for, its action, and what it takes.
COMMANDS = {
    "run": (
        "run notebooks over a grid of setups",
        commands.run_notebooks,
        [
            SOME,
            argument("--strategy", **one_or_more("strategy")),
            argument("--devices", **one_or_more("devices")),
            argument("--save-format", **one_or_more("save_format")),
            KERAS,
            argument("-o", "--output", type=Path, default=Path("runs"), help="a folder"),
            JOBS,
            LIMIT,
            AGAIN,
            argument("--scheduler", metavar="ADDRESS", help="a dask cluster to run on"),
        ],
    ),
    "render": (
        "execute sources into notebooks",
        commands.render_notebooks,
        [
            MODES,
            argument("--check", action="store_true", help="say what is stale; run nothing"),
            argument("--pull", type=Path, metavar="NOTEBOOK", help="take its edits back"),
        ],
    ),
    "record": (
        "keep every verdict of this runtime",
        commands.record_verdicts,
        [MODES, KERAS, JOBS, AGAIN]
        + [argument("--lane", action="store_true", help="of another version, in own setups only")],
    ),
    "check": (
        "compare this runtime with outputs and record",
        commands.check_runtime,
        [MODES, KERAS, JOBS, JUNIT]
        + [argument("--save", type=Path, metavar="FOLDER", help="keep what was found there")],
    ),
    "atlas": (
        "draw all records as one page",
        commands.draw_atlas,
        [argument("page", type=Path, help="the HTML file to write")],
    ),
    "triage": (
        "say which mode an error shows, and its notebook",
        commands.name_mode,
        [
            argument("file", nargs="?", default="-", help="a text; without it, the input"),
            argument("--json", action="store_true", help="answer with one JSON object"),
            argument("--jsonl", action="store_true", help="one object per line, and back"),
        ],
    ),
    "examine": (
        "say what is wrong with a program of yours",
        commands.examine_program,
        [
            argument("program", nargs=argparse.REMAINDER, help="a script with its arguments"),
            argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module instead"),
            argument("--devices", type=several_numbers, default=[1, 2], help="such as 1,2,4"),
            argument("--keras", type=several_numbers, default=[], help="2 or 3"),
            argument("--python", default=sys.executable, help="the program's own interpreter"),
            argument("--restart", action="store_true", help="kill it once, and start it again"),
            argument("--steps", type=positive, default=0, help="after which a run is stopped"),
            argument("--limit", type=positive, default=600, help="seconds for each run"),
            argument("--json", metavar="FILE", help="the same as JSON; - is standard output"),
            argument("--sarif", type=Path, metavar="FILE", help="the same for code scanning"),
            argument("--benchmark", action="store_true", help="examine the programs of all modes"),
            argument("--strategy", type=several, default=[], help="of the benchmark: mirrored,..."),
        ],
    ),
    "compile": (
        "ask the TPU compiler about the steps of modes",
        commands.compile_steps,
        [
            SOME,
            argument("--tpu", type=several, help=f"one or more of {', '.join(tpu.TPUS)}, or all"),
            KERAS,
        ],
    ),
    "notebooks": (
        "lay the notebooks out in a folder of yours",
        commands.lay_out_notebooks,
        [argument("folder", type=Path, help="a folder; files that are in it stay as they are")],
    ),
    "handout": (
        "notebooks for participants, without solutions",
        commands.hand_out,
        [
            argument("folder", type=Path, help="a new folder, OUT: give all but OUT/solutions"),
            MODES,
        ],
    ),
    "grade": (
        "run participants' exercises: green, red or not run",
        commands.grade_folder,
        [
            argument("folder", type=Path, help="a participant's notebooks, or many folders"),
            JOBS,
            argument("--limit", type=positive, metavar="SECONDS", help="after which it is red"),
            argument("--json", type=Path, metavar="FILE", help="the same as JSON"),
            JUNIT,
        ],
    ),
}


def parser() -> Parser:
    top = Parser(prog="clinic", description="Runs and renders the notebooks of Strategy Clinic.")
    added = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, (purpose, action, taken) in COMMANDS.items():
        command = added.add_parser(name, help=purpose)
        for names, options in taken:
            command.add_argument(*names, **options)
        command.set_defaults(action=action)
    return top


def main(given=None) -> int:
    try:
        options = parser().parse_args(given)
        return options.action(options)
    except UserError as reason:
        print(f"clinic: {reason}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"clinic: {error.strerror}: {str(error.filename)!r}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("clinic: stopped; what had finished is kept", file=sys.stderr)
        return 130
