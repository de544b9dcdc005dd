"""What `clinic examine` does with its words: a program is examined, or the clinic's own patients are."""

import contextlib
import json
import shutil
import signal
from pathlib import Path

from ...base.display import say
from ...base.errors import UserError, choose
from ...base.files import write_whole
from ...setups import runtime
from ..benchmark import programs, score
from ..report import serialize, terminal
from ..runs.sandbox import Case
from . import program_input


def examine_words(words: tuple[str, ...], options) -> int:
    """Progress goes to standard error where the report, as JSON, has standard output."""
    if not words or words == ("-m",):
        raise UserError(
            "Which program? Such as: clinic examine train.py, or clinic examine -m package.train"
        )
    if len(options.keras) > 1:
        raise UserError(
            "A program is examined on one generation of Keras at a time: give --keras 2 or --keras 3."
        )
    for place in (options.json, options.sarif):
        if place and not Path(place).absolute().parent.is_dir():
            raise UserError(f"There is no folder to write {str(place)!r} into.")
    program = Case(
        words,
        Path.cwd(),
        interpreter(options.python),
        next(iter(options.keras), None),
        options.limit,
        options.steps,
    )
    with ended_like_ctrl_c(), terminal.progress() as tell:
        found = program_input.examine_words_of(program, options.devices, options.restart, tell)
    hand_over(found, program, options)
    return serialize.exit_status(found)


@contextlib.contextmanager
def ended_like_ctrl_c():
    """Whoever ends the examiner ends the program under examination with it, and hears what is known."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interpreter(given: str) -> str:
    """A path that still holds in a copy of the folder; symbolic links stay, since a virtual environment is one."""
    found = shutil.which(given)
    if not found:
        raise UserError(f"{given!r} is no Python that can be run here: give another --python.")
    return str(Path.cwd() / found)


def hand_over(found, program: Case, options):
    told = json.dumps(serialize.as_plain_object(found), indent=2)
    if options.json == "-":
        say(told)
    else:
        terminal.show_report(found)
        if options.json:
            write_whole(Path(options.json), told + "\n")
    if options.sarif:
        write_whole(
            options.sarif, json.dumps(serialize.as_sarif(found, program.folder), indent=2) + "\n"
        )


def examine_patients(modes: list[str], generations: list[int], strategies: list[str]) -> int:
    """Says what becomes of each as soon as it is known; exit status 1 if a healthy one is accused, or fails.

    The score of all modes, each under its own setup, is kept.
    """
    for mode in modes:
        choose("mode", mode, programs.patient_sources())
    whole = [choose("keras", each, runtime.GENERATIONS) for each in generations]
    found = [examine_all(modes, keras, name) for keras in whole for name in strategies or [""]]
    return (
        1 if any(each.word in ("ACCUSED", "FAILED") for scores in found for each in scores) else 0
    )


def examine_all(modes: list[str], keras: int, strategy: str) -> list[score.Score]:
    scores = []
    for patient in programs.chosen_patients(modes, keras, strategy):
        scores.append(score.score_of(patient, programs.examine_patient(patient)))
        say(score.score_line(scores[-1]))
    say(f"Keras {keras}{f', {strategy}' if strategy else ''}: {score.score_totals(scores)}")
    if not modes and not strategy:
        score.keep_score(keras, scores)
    return scores
