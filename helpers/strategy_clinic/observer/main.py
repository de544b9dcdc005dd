"""Runs a program with an observer in its process.

    python FOLDER/strategy_clinic/observer/__main__.py --events FILE [--devices N] [--seed] ... -- train.py ARGUMENTS
    python FOLDER/strategy_clinic/observer/__main__.py --events FILE ... -- -m package.module ARGUMENTS

FOLDER holds this package and nothing else. It runs in the program's own interpreter, which may be Python 3.9, and needs
nothing but its standard library and TensorFlow.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import atexit
import functools
import json
import os
import random
import runpy
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from ..base import tf_internals
from ..base.dataset_iterators import turn_off_autotuning
from .context import Settings, flush_output
from .events import ChildStarted, Outcome
from .notebook import IN_A_LOOP
from .observer import Observer
from .one_device import use_one_device
from .outside import Outside
from .patching import as_plain
from .processes import CHILD_OPTIONS, LONGEST_COMMAND, missing_in
from .provenance import HERE
from .replica_counts import repeat_batches_of_keras, repeat_examples, use_count
from .restarts import Restarts
from .stacks import write_stacks


def main() -> None:
    place = sys.argv.index("--")
    options, program = sys.argv[1:place], sys.argv[place + 1 :]
    settings = read_settings(options)
    if settings.enter:
        from .entrance import enter_view  # Linux has namespaces

        enter_view(settings.enter)
    write_stacks(settings.events)
    observer = observing(settings, program)
    observe_children(options)
    sys.exit(run_observed(observer, program))


def observing(settings: Settings, program: list[str]) -> Observer:
    """Returns an observer that has begun to watch this process, in which no line of the program has run yet."""
    if settings.seed:
        random.seed(settings.seed)
    if settings.keras:
        os.environ["TF_USE_LEGACY_KERAS"] = str(int(settings.keras == 2))
    observer = Observer(settings)
    if settings.leader:
        words = getattr(sys, "orig_argv", sys.argv)  # of Python 3.9, without the interpreter
        observer.context.heading = ChildStarted(" ".join(words)[:LONGEST_COMMAND])
    observer.context.provenance.runs(program)
    outside = Outside(observer.context)
    outside.start()
    observer.before_exception.append(outside.exception_raised)
    restarts = observer.restarts = Restarts(observer.context)
    observer.start(
        {
            "numpy": functools.partial(prepare_numpy, observer, restarts),
            "tensorflow": functools.partial(prepare_tensorflow, observer, restarts, outside),
            "keras": functools.partial(prepare_keras, observer, restarts, "keras"),
            "tf_keras": functools.partial(prepare_keras, observer, restarts, "tf_keras"),
            "h5py": functools.partial(prepare_h5py, observer, outside),
            "sqlite3": outside.watch_sqlite,
            "multiprocessing.process": observer.processes.watch_multiprocessing,
        }
    )
    # Only in a process that is started to be examined.
    observer.processes.watch()
    observer.kills.watch()
    restarts.watch()
    return observer


# Processes that the program starts


def observe_children(options: list[str]) -> None:
    """Lets each Python that the program starts begin with an observer of its own, with the same options."""
    own = [option for option in options if option != "--stay"]
    os.environ[CHILD_OPTIONS] = json.dumps([*own, "--leader", str(os.getpid())])
    os.environ.update(missing_in(os.environ))


def observe_child() -> None:
    """Observes this process, which an observed program has started, until its end; events get a file of their own."""
    options = os.environ.get(CHILD_OPTIONS)
    if not options:
        return
    settings = read_settings(json.loads(options))
    write_stacks(settings.events, at_fatal_signals=False)
    observer = observing(settings, program_of_child())
    atexit.register(observer.end_of_child)
    hook = sys.excepthook

    def raised(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        observer.exception_raised(error)
        hook(kind, error, trace)

    sys.excepthook = raised


def program_of_child() -> list[str]:
    """Returns what this Python runs, as the observer's command gives it; a module's name is not yet in `sys.argv`."""
    words = getattr(sys, "orig_argv", sys.argv)  # of Python 3.9, without the interpreter
    if sys.argv[:1] == ["-m"] and "-m" in words[:-1]:
        return list(words[words.index("-m") :])
    return sys.argv[:1] if sys.argv[:1] not in ([], ["-m"]) else [""]


def read_settings(arguments: list[str]) -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=os.path.abspath)
    parser.add_argument("--devices", type=int, default=1)
    for name in (
        "--seed",
        "--steps",
        "--reset",
        "--replicas",
        "--die-at-step",
        "--die-in-save",
        "--leader",
    ):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--enter", default="")
    parser.add_argument("--give", type=two_numbers, default=(0, 0))
    parser.add_argument("--begin", type=number_and_value, default=(0, 0.0))
    parser.add_argument("--replace", type=names, default=())
    parser.add_argument("--keras", type=int, default=0)
    parser.add_argument("--view", type=absolute, default="")
    parser.add_argument("--own", type=paths, default=())
    for name in ("--die", "--tell", "--stay", "--hold", "--uncounted", "--reseed"):
        parser.add_argument(name, action="store_true")
    return Settings(**vars(parser.parse_args(arguments)))


def two_numbers(text: str) -> tuple[int, int]:
    first, second = text.split(":")
    return int(first), int(second)


def number_and_value(text: str) -> tuple[int, float]:
    number, value = text.split(":")
    return int(number), float(value)


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def absolute(text: str) -> str:
    return os.path.abspath(text) if text else ""


def paths(text: str) -> tuple[str, ...]:
    return tuple(text.split(os.pathsep))


def prepare_numpy(observer: Observer, restarts: Restarts) -> None:
    if seed := observer.context.settings.seed:
        sys.modules["numpy"].random.seed(seed)
    restarts.watch_numpy()


def prepare_keras(observer: Observer, restarts: Restarts, package: str) -> None:
    restarts.watch_keras(package)
    repeat_batches_of_keras(observer.context, package)


def prepare_h5py(observer: Observer, outside: Outside) -> None:
    outside.watch_h5py()
    observer.kills.watch_h5py()


def prepare_tensorflow(observer: Observer, restarts: Restarts, outside: Outside) -> None:
    """Splits the CPU before the program can start TensorFlow; a program that splits it again has its way."""
    import tensorflow as tf

    outside.watch_tensorflow()
    settings = observer.context.settings
    if settings.devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(settings.devices)]
        tf.config.set_logical_device_configuration(cpu, parts)
    else:
        context = observer.context
        use_one_device(context.patches, context.provenance.called_by_program)
    if settings.replicas:
        context = observer.context
        use_count(context.patches, settings.replicas, context.provenance.called_by_program)
    turn_off_autotuning(observer.context.patches.replace)
    repeat_examples(observer.context)
    if settings.seed:
        tf.random.set_seed(settings.seed)
        keep_given_seeds(observer.context.patches.replace, settings.seed)
    restarts.watch_tensorflow()
    observer.kills.watch_tensorflow()
    # The package that describes a TPU needs a newer Python than 3.9.
    if sys.version_info >= (3, 10):  # noqa: UP036
        observer.context.guard_always(describe_tpu, observer)


def keep_given_seeds(replace: Callable[..., None], ours: int) -> None:
    """Leaves an operation that the program gives a seed as it is without a global seed, where only the observer has set one."""
    module = tf_internals.random_seed
    plain, default = module.get_seed, module.DEFAULT_GRAPH_SEED

    def get_seed(op_seed: Any) -> Any:
        first, second = plain(op_seed)
        return (default if op_seed is not None and first == ours else first), second

    replace(module, "get_seed", as_plain(get_seed, plain))


def describe_tpu(observer: Observer) -> None:
    from ..setups import described_tpu  # needs a newer Python than the rest

    context = observer.context
    described_tpu.describe_tpu(
        context.patches.replace, context.settings.devices, context.guard_always
    )


# The program


def run_observed(observer: Observer, program: list[str]) -> int:
    """Returns the exit status that the program would have had; shows an uncaught exception as Python would without us."""
    try:
        run_program(program)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        observer.end(Outcome.EXITED if status else Outcome.FINISHED, status)
        stay_if_asked(observer)
        raise
    except BaseException as error:
        remove_own_frames(error)
        observer.exception_raised(error)
        observer.end(Outcome.RAISED, 1)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    observer.end(Outcome.FINISHED, 0)
    stay_if_asked(observer)
    return 0


def stay_if_asked(observer: Observer) -> None:
    """Waits to be killed: other processes of a cluster may still need this one."""
    if observer.context.settings.stay:
        flush_output()
        threading.Event().wait()


def run_program(program: list[str]) -> None:
    """Runs a script or a module as `python` would: with its own arguments, path and name."""
    is_module = program[0] == "-m"
    sys.argv = program[1:] if is_module else list(program)
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(program[0]))
    if is_module:
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    main_module = types.ModuleType("__main__")
    path = os.path.abspath(program[0])
    vars(main_module).update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main_module
    with open(program[0], "rb") as file:
        source = file.read()
    if source.partition(b"\n")[0].endswith(IN_A_LOOP.encode()):
        asyncio.run(run_in_loop(source, path, vars(main_module)))
    else:
        exec(compile(source, path, "exec", dont_inherit=True), vars(main_module))


async def run_in_loop(source: bytes, path: str, names: dict[str, Any]) -> None:
    """Runs the cells of a notebook, which may wait at the top level."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    waiting = eval(compile(source, path, "exec", flags, dont_inherit=True), names)
    if waiting is not None:
        await waiting


def remove_own_frames(error: BaseException | None, seen: tuple[BaseException, ...] = ()) -> None:
    """Removes the observer's frames from the tracebacks of an exception, and of those that it came from."""
    while error is not None and error not in seen:
        error.__traceback__ = without_own_frames(error.__traceback__)
        seen = (*seen, error)
        remove_own_frames(error.__cause__, seen)
        error = error.__context__


def without_own_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    while trace:
        if not trace.tb_frame.f_code.co_filename.startswith((HERE, "<frozen runpy")):
            kept.append(trace)
        trace = trace.tb_next
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    return kept[0] if kept else None
