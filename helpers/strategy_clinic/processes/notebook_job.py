"""One run of a notebook in a process of its own: it may hang, and it may die, and nothing else is touched."""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

from ..base import files
from . import forkserver_client, pool, request_reply

JOB = "strategy_clinic.processes.notebook_job"
OUR_ERRORS = ("UserError", "Unavailable", "Disagreement")  # errors whose message is the whole story


def papermill_options(folder: Path) -> dict:
    """What papermill is told. Its kernel is reached by files in the folder, and needs no port.

    A port that is free when it is chosen may be taken when the kernel wants it, and then the kernel dies.
    """
    from traitlets.config import Config

    from .kernels import PromptClient

    by_files = {"transport": "ipc", "ip": str(folder / "kernel")}
    by_files = {} if sys.platform == "win32" else by_files
    return {
        "engine_name": sparing_engine(),
        "progress_bar": False,
        "store_widget_state": False,
        "cwd": str(files.notebooks()),
        "config": Config(KernelManager=by_files | {"client_factory": PromptClient}),
    }


def sparing_engine() -> str:
    """papermill's own engine, except that the notebook is written once for each cell that has said something.

    Otherwise it is written at the beginning and at the end of each cell, also of text: a fifth of a second in a run.
    """
    from papermill.engines import NBClientEngine, papermill_engines

    class Sparing(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, manager, *given, **named):
            write, complete = manager.save, manager.cell_complete

            def completed(cell, **options):
                complete(cell, **options)
                if cell.get("outputs"):
                    write()

            manager.save, manager.cell_complete = lambda **_: None, completed
            try:
                return super().execute_managed_notebook(manager, *given, **named)
            finally:
                manager.save = write

    papermill_engines.register("clinic-sparing", Sparing)
    return "clinic-sparing"


def run_notebook(text: str, parameters: dict, seconds: float, environment=os.environ) -> dict:
    """Executes a notebook given as text; says how it ended, in which words, and what the notebook then held."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        (place / "in.ipynb").write_text(text)
        ended = outcome(place, parameters, seconds, dict(environment))
        executed = place / "out.ipynb"
        return ended | {"notebook": executed.read_text() if executed.exists() else text}


def outcome(place: Path, parameters: dict, seconds: float, environment: dict) -> dict:
    """How a run ended; what it leaves in the folder for temporary files goes with it, even if it is killed."""
    question = {"folder": str(place), "parameters": parameters}
    log, path = place / "log", forkserver_client.warm(environment)
    # Not before: a warm process that starts is not the run's own time.
    deadline = time.monotonic() + seconds
    process = request_reply.asked(JOB, question, environment | {"TMPDIR": str(place)}, log, path)
    pool.RUNNING.add(process)
    try:
        return request_reply.answer_of(process, place / "answer.json", deadline, log, "the run")
    except TimeoutError:
        return {"end": "hangs", "failure": f"no end within {seconds:g} seconds"}
    except ChildProcessError as error:
        return {"end": "crashes", "failure": str(error)}
    finally:
        pool.RUNNING.discard(process)
        request_reply.put_down(process)


# The process's side


def main():
    question = request_reply.question()
    folder = Path(question["folder"])
    answer = execute(folder / "in.ipynb", folder / "out.ipynb", question["parameters"])
    request_reply.reply(folder / "answer.json", answer)


def execute(path: Path, kept: Path, parameters: dict) -> dict:
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(path, kept, parameters, **papermill_options(path.parent))
    except PapermillExecutionError as error:
        return {"end": "failed", "failure": failure(error)}
    except DeadKernelError:
        return {"end": "crashes", "failure": "the kernel died"}
    return {"end": "finished", "failure": ""}


def failure(error) -> str:
    """The sentence of a failed cell, and where it stands unless it is one of ours."""
    words = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue)).strip()
    return (
        words
        if error.ename in OUR_ERRORS
        else f"cell {error.exec_count} raised {error.ename}: {words}"
    )


if __name__ == "__main__":
    main()
