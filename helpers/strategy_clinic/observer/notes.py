"""What an observer writes, and from where in the program it was called. Runs in the reader's process: see watch.py."""

import argparse
import contextlib
import functools
import json
import os
import sys
import sysconfig
import threading

from ..base import tf_internals

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # all of the examiner
while not os.path.isdir(HERE) and not os.path.isfile(HERE):
    HERE = os.path.dirname(HERE)  # up to the zip that this is in
COPIES = "__autograph_generated_file"  # what AutoGraph calls the files of its copies
FRAMES = 8  # of the program's own lines, the innermost
# By which part of a library a variable is made or written; the first that is met on the way to the program counts.
ROADS = (
    ("optimizer", "/optimizers/"),
    ("metric", "/metrics/"),
    ("seed", "/random/"),
    ("file", "/checkpoint/"),
    ("file", "/saving/"),
    ("layer", "/layers/"),
    ("layer", "/models/"),
    ("layer", "/engine/"),
    ("trainer", "/trainer"),
)
THREAD = threading.local()
SETTINGS = argparse.Namespace(
    facts="",
    devices=1,
    steps=0,
    reset=0,
    give="",
    begin="",
    seed=False,
    die=False,
    tell=False,
    stay=False,
    library=[],
)
TOLD = set()
COUNTS: dict = {}
RUN_FROM: list = []  # the lines that led to the last `strategy.run`, whose replicas have threads of their own


def note(kind: str, **facts):
    """One line at a time, whole or not at all, whatever becomes of the process afterwards."""
    with open(SETTINGS.facts, "ab", buffering=0) as file:
        file.write(json.dumps({"fact": kind, **facts}, default=str).encode() + b"\n")


def once(*key) -> bool:
    """Whether this is new: most of what a program does, it does many times."""
    new = key not in TOLD
    TOLD.add(key)
    return new


def count(*key) -> int:
    """How often this has been told by now."""
    COUNTS[key] = COUNTS.get(key, 0) + 1
    return COUNTS[key]


@contextlib.contextmanager
def looking_away():
    """What is done to look at the program is not the program's doing."""
    before, THREAD.away = getattr(THREAD, "away", False), True
    try:
        yield
    finally:
        THREAD.away = before


def guarded(function, *arguments):
    """A mistake of ours is a fact too, and never the program's trouble."""
    if function is None or getattr(THREAD, "away", False):
        return None
    with looking_away():
        try:
            return function(*arguments)
        except Exception as error:
            if once("trouble", function.__name__, type(error)):
                note(
                    "trouble",
                    where=function.__name__,
                    says=f"{type(error).__name__}: {error}"[:300],
                )


def acted(action):
    """What is done once, whatever is being looked at meanwhile."""
    before, THREAD.away = getattr(THREAD, "away", False), False
    found = guarded(action)
    THREAD.away = before
    return found


def flush():
    """What the program has said; it may have closed its output, or put something else in its place."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()


# Where it happens


@functools.cache
def libraries() -> tuple:
    paths = sysconfig.get_paths()
    folders = [paths[word] for word in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(os.path.realpath(each) + os.sep for each in [*folders, HERE, *SETTINGS.library])


@functools.cache
def is_own(name: str) -> bool:
    """Whether a file is the program's: no library's, no copy that AutoGraph made, none of ours."""
    if name.startswith("<") or COPIES in name:
        return name.startswith("<ipython")
    path = os.path.realpath(name) if os.path.exists(name) else name
    return not path.startswith(libraries()) and "-packages" + os.sep not in path


def where() -> list:
    """The program's own lines that led here, the innermost first; lines of a copy that is traced are those of its source."""
    frames = [each for each in tf_internals.tf_stack.extract_stack() if is_own(each.filename)]
    found = [[os.path.abspath(f.filename), f.lineno, f.name] for f in frames[::-1]]
    in_replica = threading.current_thread() is not threading.main_thread()
    return [*found, *(RUN_FROM if in_replica else [])][:FRAMES]


def way() -> tuple:
    """The innermost line of the program, or of AutoGraph's copy, and by which part of a library it led here."""
    frame, part = sys._getframe(2), ""
    while frame is not None:
        name = frame.f_code.co_filename
        if COPIES in name or is_own(name):
            return (name, frame.f_lineno), part or "user"
        part = part or next((word for word, place in ROADS if place in name), "")
        frame = frame.f_back
    return None, part or "user"


def chain() -> tuple:
    """The program's lines on the way here, as a key that costs little."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def asked_by_program() -> bool:
    """Whether the program itself asks, and not a library on its behalf."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    name = frame.f_code.co_filename if frame else "<"
    return COPIES in name or is_own(name)
