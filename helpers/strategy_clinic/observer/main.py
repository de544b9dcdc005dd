"""Runs a program with an observer in its process.

    python FOLDER/strategy_clinic/observer/__main__.py --events FILE [--devices N] [--seed] ... -- train.py ARGUMENTS
    python FOLDER/strategy_clinic/observer/__main__.py --events FILE ... -- -m package.module ARGUMENTS

FOLDER holds this package and nothing else. It runs in the program's own interpreter, which may be Python 3.9, and needs
nothing but its standard library and TensorFlow.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import runpy
import sys
import threading
import types

from ..base.dataset_iterators import turn_off_autotuning
from .context import Settings, flush_output
from .events import Outcome
from .observer import Observer
from .one_device import use_one_device
from .outside import Outside
from .provenance import HERE
from .replica_counts import repeat_examples, use_count
from .restarts import Restarts
from .stacks import write_stacks

SEED = 87654321  # TensorFlow's own for operations with a seed of their own: what those draw does not change


def main() -> None:
    place = sys.argv.index("--")
    settings, program = read_settings(sys.argv[1:place]), sys.argv[place + 1 :]
    if settings.seed:
        random.seed(SEED)
    write_stacks(settings.events)
    if settings.keras:
        os.environ["TF_USE_LEGACY_KERAS"] = str(int(settings.keras == 2))
    observer = Observer(settings)
    observer.context.provenance.script = os.path.abspath(program[0])
    outside = Outside(observer.context)
    outside.start()
    restarts = observer.restarts = Restarts(observer.context)
    observer.start(
        {
            "numpy": functools.partial(prepare_numpy, observer, restarts),
            "tensorflow": functools.partial(prepare_tensorflow, observer, restarts, outside),
            "keras": functools.partial(restarts.watch_keras, "keras"),
            "tf_keras": functools.partial(restarts.watch_keras, "tf_keras"),
            "h5py": functools.partial(prepare_h5py, observer, outside),
            "sqlite3": outside.watch_sqlite,
        }
    )
    # Only in a process that is started to be examined.
    observer.processes.watch()
    observer.kills.watch()
    restarts.watch()
    sys.exit(run_observed(observer, outside, program))


def read_settings(arguments: list[str]) -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=os.path.abspath)
    parser.add_argument("--devices", type=int, default=1)
    for name in ("--steps", "--reset", "--replicas", "--die-at-step", "--die-in-save"):
        parser.add_argument(name, type=int, default=0)
    parser.add_argument("--give", type=two_numbers, default=(0, 0))
    parser.add_argument("--begin", type=number_and_value, default=(0, 0.0))
    parser.add_argument("--replace", type=names, default=())
    parser.add_argument("--keras", type=int, default=0)
    parser.add_argument("--view", type=absolute, default="")
    parser.add_argument("--own", type=paths, default=())
    for name in ("--seed", "--die", "--tell", "--stay", "--hold", "--uncounted"):
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
    if observer.context.settings.seed:
        sys.modules["numpy"].random.seed(SEED)
    restarts.watch_numpy()


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
        tf.random.set_seed(SEED)
    restarts.watch_tensorflow()
    observer.kills.watch_tensorflow()
    # The package that describes a TPU needs a newer Python than 3.9.
    if sys.version_info >= (3, 10):  # noqa: UP036
        observer.context.guard_always(describe_tpu, observer)


def describe_tpu(observer: Observer) -> None:
    from ..setups import described_tpu  # needs a newer Python than the rest

    context = observer.context
    described_tpu.describe_tpu(
        context.patches.replace, context.settings.devices, context.guard_always
    )


# The program


def run_observed(observer: Observer, outside: Outside, program: list[str]) -> int:
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
        outside.exception_raised(error)
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
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, vars(main_module))


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
