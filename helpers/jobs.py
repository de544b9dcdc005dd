"""One run of a notebook in a process of its own: it may hang, and it may die, and nothing else is touched."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from . import kernels, sources
from .workers import die_with_parent, write_whole

PAPERMILL = {
    "progress_bar": False,
    "store_widget_state": False,
    "cwd": str(sources.NOTEBOOKS),
    # ipykernel warns about unencrypted sockets, which stay on this machine
    "extra_arguments": ["--log-level=ERROR"],
}
PATIENCE = 10  # seconds for what should end at once
RUNNING: set = set()  # processes to end when the whole command is stopped


def run(text: str, parameters: dict, seconds: float, environment=os.environ) -> dict:
    """Executes a notebook given as text; says how it ended, in which words, and what the notebook then held."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "in.ipynb").write_text(text)
        ended = wait(start(place, parameters, environment), seconds, place)
        executed = place / "out.ipynb"
        return ended | {"notebook": executed.read_text() if executed.exists() else text}


def start(folder: Path, parameters: dict, environment):
    request = {"folder": str(folder), "parameters": parameters}
    with open(folder / "log", "w") as log:
        process = kernels.start("helpers.jobs", dict(environment), log, kernels.warm(environment))
    RUNNING.add(process)
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return process


def wait(process, seconds: float, folder: Path) -> dict:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return {"end": "hangs", "failure": f"no end within {seconds:g} seconds"}
    finally:
        RUNNING.discard(process)
        process.kill()
        process.wait()
        process.stdin.close()
    if (folder / "answer.json").exists():
        return json.loads((folder / "answer.json").read_text())
    last = (folder / "log").read_text().strip().splitlines()[-1:]
    said = "".join(last) or f"status {process.returncode}"
    return {"end": "crashes", "failure": f"the run ended without an answer: {said}"}


def stop_all(pool, asked):
    """Ends what runs and forgets what waits; a run that is just being started is caught in the next round."""
    pool.shutdown(wait=False, cancel_futures=True)
    deadline = time.monotonic() + PATIENCE
    while any(future.running() for future in asked) and time.monotonic() < deadline:
        for process in list(RUNNING):
            process.kill()
        time.sleep(0.05)


# The process's side


def main():
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=die_with_parent, daemon=True).start()
    folder = Path(request["folder"])
    answer = execute(folder / "in.ipynb", folder / "out.ipynb", request["parameters"])
    write_whole(folder / "answer.json", json.dumps(answer))


def execute(path: Path, kept: Path, parameters: dict) -> dict:
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(path, kept, parameters, **PAPERMILL)
    except PapermillExecutionError as error:
        return {"end": "failed", "failure": said(error)}
    except DeadKernelError:
        return {"end": "crashes", "failure": "the kernel died"}
    return {"end": "finished", "failure": ""}


def said(error) -> str:
    """The sentence of a failed cell, and where it stands unless it is one of ours."""
    words = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue)).strip()
    ours = error.ename in ("Refused", "Unavailable", "Disagreement")
    return words if ours else f"cell {error.exec_count} raised {error.ename}: {words}"


if __name__ == "__main__":
    main()
