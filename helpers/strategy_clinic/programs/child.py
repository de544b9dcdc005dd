"""The process in which one program runs, as `python program.py` would run it, in an empty folder of its own."""

import contextlib
import io
import linecache
import os
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any

from ..processes import cluster, no_network, request_reply


def main() -> None:
    question = request_reply.read_question()
    os.chdir(question["folder"])
    files = no_network.forbid_writing(str(Path.cwd().parent)) if question["isolated"] else ""
    prepare(question["tpu"])
    if question["serve"]:
        cluster.serve()
    network = no_network.begin() if question["isolated"] else ""
    answer = run(question["text"], question["observed"]) | {"network": network, "files": files}
    request_reply.write_answer(question["answer"], answer)
    # Stays until it is killed: another worker may still be fetching this one's part of their last all-reduce.
    threading.Event().wait()


def prepare(described_tpu: bool) -> None:
    from ..base.dataset_iterators import turn_off_autotuning
    from ..setups import runtime

    if described_tpu:  # its cores are CPU devices, and TensorFlow counts GPUs that a program hides
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    runtime.start_tensorflow()
    turn_off_autotuning(setattr)
    if described_tpu:
        from ..setups.described_tpu import describe_tpu

        describe_tpu(setattr, runtime.MOST_DEVICES)


def run(text: str, observed: list[str]) -> dict[str, Any]:
    """Returns what a program prints and raises, and where the variables are of the objects that are named."""
    path = str(Path("program.py").resolve())
    Path(path).write_text(text)  # AutoGraph and tracebacks read it
    linecache.checkcache(path)
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(text, path, "exec"), module.__dict__)
        except Exception as reason:
            error = described(reason, path)
    return {
        "printed": printed.getvalue(),
        "error": error,
        "observations": observations(module, observed),
    }


def described(error: Exception, path: str) -> dict[str, Any]:
    """Returns the class, message and chain of an error, and the last line of the program that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    return {
        "name": type(error).__name__,
        "message": message_of(error),
        "line": lines[-1] if lines else 0,
    }


def message_of(error: Exception) -> str:
    # The text of a KeyError is the repr of its argument, in which line breaks are escaped.
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error)


def observations(module: types.ModuleType, names: list[str]) -> dict[str, dict[str, list[str]]]:
    """Returns the devices that hold a copy of each variable of the objects with these names, as far as they exist."""
    from .variable_copies import copies, short_name

    found: dict[str, dict[str, list[str]]] = {}
    for name in names:
        value = getattr(module, name, None)
        if value is None:
            continue
        variables = getattr(value, "variables", None)
        group = list(variables) if variables is not None and not callable(variables) else [value]
        found[name] = {short_name(each, i): copies(each) for i, each in enumerate(group)}
    return found


if __name__ == "__main__":
    main()
