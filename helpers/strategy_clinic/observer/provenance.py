"""Tells whose code a file is, and finds the lines of the program on the call stack."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
import threading
import traceback
from importlib.machinery import PathFinder
from types import CodeType, FrameType
from typing import Any

from ..base import tf_internals
from .events import Frame, Owner, Stack
from .patching import Call, Patches

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
AUTOGRAPH_COPY = "__autograph_generated_file"  # in the names of files that AutoGraph writes
SITES = "site-packages", "dist-packages"
PACKAGES = "tensorflow", "keras", "tf_keras"
MOST_FRAMES = 8
REPLICA_THREADS = "tensorflow.python.distribute.mirrored_run"  # whose threads run one replica each
# What a path inside of a library says about its purpose; the first that fits counts.
PURPOSES = (
    (Owner.OPTIMIZER, "/optimizers/"),
    (Owner.METRIC, "/metrics/"),
    (Owner.RANDOM, "/random/"),
    (Owner.CHECKPOINT, "/checkpoint/"),
    (Owner.CHECKPOINT, "/saving/"),
    (Owner.LAYER, "/layers/"),
    (Owner.LAYER, "/models/"),
    (Owner.LAYER, "/engine/"),
    (Owner.TRAINER, "/trainer"),
)
CallSite = tuple[str, int]


class Provenance:
    """Answers by the folders of libraries and by paths relative to them, wherever these folders are."""

    def __init__(self) -> None:
        self.script = ""  # which is the program's, even if it lies in this package
        self.package: tuple[str, ...] = ()  # the folders of the package that is run by `-m`
        self.sites = folders(tuple(site_folders()))
        self.standard_library = folders(
            (sysconfig.get_path("stdlib"), os.path.dirname(os.__file__))
        )
        self.origins: dict[str, tuple[bool, Owner | None]] = {}
        self.replica_caller: Stack = ()  # the lines that led to the last `strategy.run`
        # By file and line of a copy that AutoGraph has made, the line of the source.
        self.sources: dict[tuple[str, int], tuple[str, int, str]] = {}

    def watch(self, patches: Patches) -> None:
        """Keeps where the lines come from of each copy that AutoGraph makes."""
        patches.wrap(tf_internals.origin_info, "create_source_map", after=self.copy_made)

    def copy_made(self, origins: Any, _: Call) -> None:
        for copy, origin in origins.items():
            place = copy.filename, copy.lineno
            self.sources[place] = origin.loc.filename, origin.loc.lineno, origin.function_name

    # Files

    def runs(self, program: list[str]) -> None:
        """Learns what is run: a script, or a module, whose package is the program's wherever it is installed."""
        if program[0] != "-m":
            self.script = os.path.abspath(program[0])
            return
        spec = PathFinder.find_spec(program[1].partition(".")[0], [os.getcwd(), *sys.path[1:]])
        if spec is not None and spec.submodule_search_locations:
            self.package = folders(tuple(spec.submodule_search_locations))
        elif spec is not None and spec.origin:
            self.script = os.path.abspath(spec.origin)

    def owner_of(self, filename: str) -> Owner | None:
        """Returns USER for a file of the program; for a library's, the purpose of that part of it, or None."""
        return self.origin_of(filename)[1]

    def is_own(self, filename: str) -> bool:
        return self.origin_of(filename)[1] is Owner.USER

    def modules(self) -> list[tuple[str, dict[str, Any]]]:
        """Returns the files of the program's modules, each with the module's names. One that is loaded lazily has no file."""
        return [
            (path, vars(module))
            for module in list(sys.modules.values())
            if isinstance(path := getattr(module, "__file__", None), str) and self.is_own(path)
        ]

    def origin_of(self, filename: str) -> tuple[bool, Owner | None]:
        """Returns whether this is the program's file or a copy that AutoGraph made of somebody's, and whose file it is."""
        if filename not in self.origins:
            owner = self.look_up(filename)
            self.origins[filename] = owner is Owner.USER or AUTOGRAPH_COPY in filename, owner
        return self.origins[filename]

    def look_up(self, filename: str) -> Owner | None:
        if filename.endswith((".pyx", ".pxi")):
            return None  # of a compiled library, which gives no folder
        if filename.startswith("<") or AUTOGRAPH_COPY in filename:
            return Owner.USER if filename.startswith("<ipython") else None
        if os.path.abspath(filename) == self.script or filename.startswith(self.package):
            return Owner.USER
        packages = folders(package_folders())
        for resolved in (os.path.abspath, os.path.realpath):
            path = resolved(filename)
            roots = [root for root in (*packages, *self.sites) if path.startswith(root)]
            if roots:
                root = max(roots, key=len)
                inside = path[len(root) :].replace(os.sep, "/")
                return purpose_of(inside if root in packages else inside.partition("/")[2])
            if path.startswith(self.standard_library):
                return None
        return Owner.USER

    # Stacks

    def stack(self) -> Stack:
        """Returns the program's lines that led here; lines of AutoGraph's copies are those of their source."""
        in_replica = type(threading.current_thread()).__module__ == REPLICA_THREADS
        frames = [
            Frame(os.path.abspath(filename), line, function)
            for frame in list(tf_internals.tf_stack.extract_stack())[::-1]
            for filename, line, function in [self.source_of(frame) if in_replica else frame[:3]]
            if self.is_own(filename)
        ]
        return (*frames, *(self.replica_caller if in_replica else ()))[:MOST_FRAMES]

    def stack_of(self, operation: Any) -> Stack:
        """Returns the program's lines that made an operation of a graph."""
        lines = [self.source_of(frame) for frame in list(operation.traceback)[::-1]]
        frames = dict.fromkeys(
            Frame(os.path.abspath(filename), line, function)
            for filename, line, function in lines
            if self.is_own(filename)
        )
        caller = self.replica_caller if not {*frames} & {*self.replica_caller} else ()
        return (*frames, *caller)[:MOST_FRAMES]

    def replicas_run(self, stack: Stack) -> None:
        """Keeps what the threads of replicas do not know: the lines that have called them."""
        self.replica_caller = stack

    def source_of(self, frame: Any) -> tuple[str, int, str]:
        """Returns the line that a frame stands for if it is of a copy that AutoGraph has made.

        TensorFlow maps such lines in the thread that traces, and not in those of replicas.
        """
        place = frame.filename, frame.lineno
        return self.sources.get(place) or (*place, frame.name)

    def plain_stack(self) -> Stack:
        """Returns the program's lines that led here, as Python alone knows them: TensorFlow need not be imported."""
        frames = traceback.extract_stack()[::-1]
        own = [
            Frame(os.path.abspath(each.filename), each.lineno or 0, each.name)
            for each in frames
            if self.is_own(each.filename)
        ]
        return tuple(own)[:MOST_FRAMES]

    def call_site(self) -> tuple[CallSite | None, Owner]:
        """Returns the innermost line of the program, and by which part of a library it led here."""
        frame, owner, known = outer_frame(), None, self.origins.get
        while frame is not None:  # eager programs spend most of what watching costs in this loop
            filename = frame.f_code.co_filename
            is_program, whose = known(filename) or self.origin_of(filename)
            if is_program:
                return (frame.f_code.co_filename, frame.f_lineno), owner or Owner.USER
            owner, frame = owner or whose, frame.f_back
        return None, owner or Owner.USER

    def call_path(self) -> tuple[tuple[CodeType, int], ...]:
        """Returns the program's lines that led here as a key; this costs less than `stack`."""
        frame, lines = outer_frame(), []
        while frame is not None:
            if self.is_own(frame.f_code.co_filename):
                lines.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return tuple(lines)

    def called_by_program(self) -> bool:
        """Returns whether the program itself made the call, and not a library."""
        frame = outer_frame()
        return frame is not None and self.origin_of(frame.f_code.co_filename)[0]


def outer_frame() -> FrameType | None:
    """Returns the innermost frame that is not the observer's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame


def purpose_of(path: str) -> Owner | None:
    return next((owner for owner, part in PURPOSES if part in f"/{path}"), None)


def site_folders() -> list[str]:
    """Returns the folders in which packages are installed."""
    on_path = [folder for folder in sys.path if os.path.basename(folder) in SITES]
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return [*installed, *site.getsitepackages(), site.getusersitepackages(), *on_path]


def package_folders() -> tuple[str, ...]:
    """Returns the folders of this package and of the libraries that are watched, as far as they are imported."""
    modules = [sys.modules.get(name) for name in PACKAGES]
    files = [getattr(module, "__file__", None) for module in modules]
    return (os.path.dirname(HERE[:-1]), *(os.path.dirname(file) for file in files if file))


@functools.lru_cache
def folders(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Returns each folder as it is written and with its symbolic links resolved, both ending in a separator."""
    forms = {form for path in paths for form in (os.path.abspath(path), os.path.realpath(path))}
    return tuple(f"{form}{os.sep}" for form in forms)
