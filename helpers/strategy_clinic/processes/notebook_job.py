"""One run of a notebook in a process for that run alone: it may hang or die, and nothing else is touched."""

import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base import files
from ..base.quick_imports import without_grammars
from . import pool, python_process, request_reply

JOB = "strategy_clinic.processes.notebook_job"
CLIENT = "strategy_clinic.processes.ready_client.ReadyClient"
OUR_ERRORS = ("UserError", "Unavailable", "Disagreement")  # errors whose message needs no more


def papermill_options(folder: Path) -> dict[str, Any]:
    """Returns options for papermill. Its kernel is reached by files in the folder, and needs no port.

    A port that is free when it is chosen may be taken when the kernel wants it, and then the kernel dies.
    The client does not wait after the kernel is ready.
    """
    from traitlets.config import Config

    by_files = {"transport": "ipc", "ip": str(folder / "kernel")} if sys.platform != "win32" else {}
    return {
        "progress_bar": False,
        "store_widget_state": False,
        "cwd": str(files.notebooks()),
        "config": Config(KernelManager={"client_class": CLIENT} | by_files),
    }


def run_notebook(
    text: str,
    parameters: Mapping[str, Any],
    seconds: float,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Executes a notebook; returns how it ended (`end`), in which words (`failure`), and the `notebook` as it then was."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "in.ipynb").write_text(text)
        outcome = run_in(folder, parameters, seconds, environment)
        executed = folder / "out.ipynb"
        return outcome | {"notebook": executed.read_text() if executed.exists() else text}


def run_in(
    folder: Path, parameters: Mapping[str, Any], seconds: float, environment: Mapping[str, str]
) -> dict[str, str]:
    """Runs the notebook in a folder, where its temporary files are as well, so that they go with it even if it is killed."""
    question = {"folder": str(folder), "parameters": parameters}
    log, server = folder / "log", python_process.fork_server(environment)
    deadline = time.monotonic() + seconds  # the start of a fork server is not the run's time
    own = {"TMPDIR": str(folder)} | (python_process.warm_kernels() if server else {})
    process = request_reply.ask(JOB, question, dict(environment) | own, log, server)
    pool.RUNNING.add(process)
    try:
        answer: dict[str, str] = request_reply.wait_for_answer(
            process, folder / "answer.json", deadline, log, "the run"
        )
        return answer
    except TimeoutError:
        return {"end": "hangs", "failure": f"no end within {seconds:g} seconds"}
    except ChildProcessError as error:
        return {"end": "crashes", "failure": str(error)}
    finally:
        pool.RUNNING.discard(process)
        request_reply.end(process)


# The process's side


def main() -> None:
    question = request_reply.read_question()
    folder = Path(question["folder"])
    with without_grammars():
        answer = execute(folder / "in.ipynb", folder / "out.ipynb", question["parameters"])
    request_reply.write_answer(folder / "answer.json", answer)


def execute(path: Path, executed: Path, parameters: dict[str, Any]) -> dict[str, str]:
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(path, executed, parameters, **papermill_options(path.parent))
    except PapermillExecutionError as error:
        return {"end": "failed", "failure": failure(error)}
    except DeadKernelError:
        return {"end": "crashes", "failure": "the kernel died"}
    return {"end": "finished", "failure": ""}


def failure(error: Any) -> str:
    """Returns the sentence of a failed cell, with the cell unless the error is one of ours."""
    words = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue)).strip()
    cell = f"cell {error.exec_count} raised {error.ename}: "
    return words if error.ename in OUR_ERRORS else cell + words


if __name__ == "__main__":
    main()
