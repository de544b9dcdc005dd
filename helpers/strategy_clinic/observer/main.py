"""Runs a program and watches it from inside its process: what it does is written as facts, one a line.

It comes as one file, a zip with these modules in it, that needs nothing but what the program has; it runs in their interpreter:

    python observer.pyz --facts FILE [--devices N] [--seed] [--steps N] [--library FOLDER] ... -- train.py ARGUMENTS
    python observer.pyz --facts FILE -- -m package.module ARGUMENTS

Nothing is decided here. What facts mean is for the rules to say, in another process.
"""

import argparse
import os
import random
import re
import runpy
import sys
import threading
import time
import traceback
import types

from . import checkpoints, keras_models, learning_rates, tracing, training, variables
from .notes import HERE, SETTINGS, acted, flush, guarded, is_own, note
from .patching import Finder, unhook

SEED = 87654321  # TensorFlow's own for operations that name another: what those draw stays as it is
FRAME_IN_MESSAGE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
MOST_TEXT = 60_000  # signs of a traceback that are told
BEGAN = time.monotonic()
PROCESS = os.getpid()
ENDED: list = []
FINDERS: list = []


def main():
    place = sys.argv.index("--")
    read_settings(sys.argv[1:place])
    random.seed(SEED) if SETTINGS.seed else None
    act_on_imports()
    training.AT_END.append(lambda how: told_at_end(how, 0))
    note("started", devices=SETTINGS.devices)
    sys.exit(watched_run(sys.argv[place + 1 :]))


def act_on_imports():
    """At once where a module is there already, as in a process that was forked from one that has it."""
    act_on(WATCHES | {"tensorflow": tensorflow_is_here, "numpy": numpy_is_here})


def act_on(actions: dict):
    for name in [name for name in actions if name in sys.modules]:
        acted(actions.pop(name))
    FINDERS.append(Finder(actions))
    sys.meta_path.insert(0, FINDERS[-1])


def leave():
    """For who watches a part of a process only: nothing is seen from here on."""
    unhook()
    while FINDERS:
        sys.meta_path.remove(FINDERS.pop())


def read_settings(given: list):
    parser = argparse.ArgumentParser()
    parser.add_argument("--facts", type=os.path.abspath)
    for name in ("--devices", "--steps", "--reset"):
        parser.add_argument(name, type=int, default=vars(SETTINGS)[name[2:]])
    for name in ("--give", "--begin"):
        parser.add_argument(name, default="")
    for name in ("--seed", "--die", "--tell", "--stay"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--library", action="append", type=os.path.realpath, default=[])
    parser.parse_args(given, SETTINGS)


def numpy_is_here():
    if SETTINGS.seed:
        sys.modules["numpy"].random.seed(SEED)
    checkpoints.watch_numpy()


def tensorflow_is_here():
    """Splits the machine before the program can start TensorFlow up; a program that splits it anew has its own way."""
    import tensorflow as tf

    if SETTINGS.devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(SETTINGS.devices)]
        tf.config.set_logical_device_configuration(cpu, parts)
    if SETTINGS.seed:
        tf.random.set_seed(SEED)
    watch_tensorflow()
    acted(tpu_if_asked_for)
    note("tensorflow", version=tf.__version__)


def watch_tensorflow():
    variables.watch_variables()
    training.watch_training()
    tracing.watch_tracing()
    checkpoints.watch_checkpoints()
    learning_rates.watch_checkpoint_rates()


# What is watched in a package, once it is imported.
WATCHES = {
    "tensorflow": watch_tensorflow,
    "keras": lambda: keras_models.watch_keras("keras"),
    "tf_keras": lambda: keras_models.watch_keras("tf_keras"),
    "numpy": checkpoints.watch_numpy,
}


def tpu_if_asked_for():
    from . import described_tpu  # here, since it needs a newer Python than the rest

    described_tpu.describe_tpu()


# The program


def watched_run(program: list) -> int:
    """The exit status that the program would have had; an uncaught exception is shown as Python shows it, without us."""
    try:
        run_program(program)
        end("finished", 0)
        stay_if_asked()
        return 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
        end("finished" if not status else "left", status)
        stay_if_asked()
        raise
    except BaseException as error:
        without_us(error)
        guarded(told_error, error)
        end("raised", 1)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def stay_if_asked():
    """One of several processes waits to be ended, until the others need it no more."""
    if SETTINGS.stay:
        flush()
        threading.Event().wait()


def run_program(program: list):
    """As `python` would: with its own arguments, path and name."""
    named = program[0] == "-m"
    sys.argv = program[1:] if named else list(program)
    sys.path[0] = os.getcwd() if named else os.path.dirname(os.path.abspath(program[0]))
    if named:
        return runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    main_module = types.ModuleType("__main__")
    main_module.__dict__.update(__file__=os.path.abspath(program[0]), __builtins__=__builtins__)
    sys.modules["__main__"] = main_module
    with open(program[0], "rb") as file:
        exec(compile(file.read(), main_module.__file__, "exec"), main_module.__dict__)


def told_error(error):
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    chain, frames = error, []
    while chain is not None and not frames:
        listed = traceback.extract_tb(chain.__traceback__)[::-1]
        frames = [
            [os.path.abspath(f.filename), f.lineno, f.name] for f in listed if is_own(f.filename)
        ]
        chain = chain.__cause__ or chain.__context__
    inside = [
        [path, int(line), name]
        for path, line, name in FRAME_IN_MESSAGE.findall(str(error))
        if is_own(path)
    ]
    note(
        "raised", error=type(error).__name__, text=text[-MOST_TEXT:], at=frames, inside=inside[::-1]
    )


def without_us(error, known=()):
    """The error, and those that it came from, as they would be if nobody watched: our frames are in none of their tracebacks."""
    while error is not None and error not in known:
        error.__traceback__ = frames_of_others(error.__traceback__)
        known = (*known, error)
        without_us(error.__cause__, known)
        error = error.__context__


def frames_of_others(trace):
    frames = []
    while trace:
        if not trace.tb_frame.f_code.co_filename.startswith((HERE, "<frozen runpy")):
            frames.append(trace)
        trace = trace.tb_next
    for frame, following in zip(frames, [*frames[1:], None]):
        frame.tb_next = following
    return frames[0] if frames else None


def end(how: str, status: int):
    if os.getpid() == PROCESS and not ENDED:  # a forked child has another story
        ENDED.append(how)
        told_at_end(how, status)


def apart_with_layers() -> list:
    found = variables.apart()
    return [each | {"layer": keras_models.layer_of(each["number"])} for each in found]


def told_at_end(how: str, status: int):
    looks = {
        "values": variables.values,
        "apart": apart_with_layers,
        "late": checkpoints.late,
    }
    seen = {name: acted(look) for name, look in looks.items() if "tensorflow" in sys.modules}
    seconds = round(time.monotonic() - BEGAN, 3)
    note("ended", how=how, status=status, seconds=seconds, **{k: v for k, v in seen.items() if v})
