"""Runs programs of TensorFlow, each in a process forked after one import: `python run_forked.py PROGRAM ...` prints JSON.

It needs TensorFlow alone, so that the Python of every lane can run it. The last line of an output is what its program raised.
"""

import contextlib
import importlib.metadata
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback

LONGEST = 120  # seconds of one program


def run(program: str, output: str):
    """Runs a program in this process, which ends with it."""
    signal.alarm(LONGEST)
    with open(output, "w") as file, contextlib.redirect_stdout(file):
        try:
            runpy.run_path(program, run_name="__main__")
        except BaseException:
            print(traceback.format_exc().splitlines()[-1])
    os._exit(0)


def main(programs: list[str]) -> dict:
    import tensorflow as tf

    assert tf.keras.layers  # imported here, once
    if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        sys.modules["keras"] = sys.modules["tf_keras"]  # what the programs import
    outputs = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            output = os.path.join(folder, "output")
            if not (process := os.fork()):
                run(program, output)
            _, status = os.waitpid(process, 0)
            with open(output) as file:
                outputs[program] = file.read() if not status else f"ended with status {status}\n"
    keras = "tf_keras" if os.environ.get("TF_USE_LEGACY_KERAS") == "1" else "keras"
    try:
        version = importlib.metadata.version(keras)
    except importlib.metadata.PackageNotFoundError:
        version = importlib.metadata.version(f"{keras}-nightly")
    return {"tensorflow": tf.__version__, keras: version, "outputs": outputs}


if __name__ == "__main__":
    # TensorFlow writes to the standard output as well.
    printed, sys.stdout = sys.stdout, sys.stderr
    json.dump(main(sys.argv[1:]), printed)
