"""The fork server: a process that has imported TensorFlow and initialised nothing of it. Each request forks one process.

A connection is one process. The client sends a line of JSON, {"argv", "env", "cwd"}, with the descriptors of standard input,
output and error. The server answers {"pid"} and, when the process has ended, {"returncode"}. It kills the process of a
client that disconnects.
"""

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import MutableSequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ..base import tf_internals
from ..base.quick_imports import without_grammars
from ..setups import runtime
from .client import ISOLATED, KERNEL, KERNEL_ENVIRONMENT, LEGACY_KERAS, PLAIN, signal_group
from .isolation import isolate, kill_children
from .temp_files import delete_folder, delete_folders_of_dead_servers, new_folder

# What kernels and notebooks import. matplotlib.pyplot is left out: it sets up its backend for the shell that it finds.
PRELOAD = (
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.magics.pylab",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "faulthandler",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "ipywidgets",
    "tornado.platform.asyncio",
    "jinja2",
    "matplotlib.backends.backend_agg",
    "numpy.random",
    "packaging.requirements",
    "papermill",
    "PIL.PngImagePlugin",
    "psutil",
    "pytest",
    "sqlite3",
    "symtable",
    "tomllib",
    "tensorflow.python.data.ops.from_tensors_op",
    "tensorflow.python.data.ops.range_op",
    "tensorflow.python.data.ops.rebatch_op",
    "tensorflow.python.data.ops.zip_op",
)
PR_SET_PDEATHSIG = 1  # of prctl(2)
REQUEST_SECONDS = 5  # for a client to send its request
CONTROL_SECONDS = 1  # for a kernel's thread of this name, which ends by itself at a shutdown
CONTROL_THREAD = "Control"


@dataclass(frozen=True, eq=False)
class Child:
    """A forked process, the client that it belongs to, and its folder for temporary files."""

    pid: int
    client: socket.socket
    folder: Path | None
    handle: int  # becomes readable when the process has ended


class Server:
    """Forks for every client, and ends when nobody has asked for `idle` seconds while no child and no process `beside` ran."""

    def __init__(self, path: str, idle: float, beside: int = 0):
        self.idle, self.beside, self.children = idle, Path(f"/proc/{beside}"), list[Child]()
        Path(path).unlink(missing_ok=True)  # of a server that was killed
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)

    def serve(self) -> None:
        last_used = time.monotonic()
        while time.monotonic() - last_used < self.idle:
            ready = self.selector.select(timeout=0.5)
            for selected, _ in ready:
                selected.data()
            if ready or self.children or self.beside.exists():
                last_used = time.monotonic()

    def accept(self) -> None:
        """Answers one client; whatever is wrong with its request, the server goes on."""
        client, _ = self.listener.accept()
        client.settimeout(REQUEST_SECONDS)
        streams: list[int] = []
        try:
            self.fork(receive(client, streams), client, streams)
        except Exception as error:
            client.close()
            if not isinstance(error, EOFError):
                log(f"a request was refused: {type(error).__name__}: {error}")
        finally:
            for stream in streams:
                os.close(stream)

    def fork(self, request: dict[str, Any], client: socket.socket, streams: list[int]) -> None:
        # A plain one has nothing of its own: AutoGraph's files are where they would be in a process that is not forked.
        folder = None if os.environ.get(PLAIN) else new_folder(request["env"])
        pid = os.fork()
        if pid == 0:
            self.close()
            client.close()
            if folder:
                request["env"]["TMPDIR"] = str(folder)
            run_child(request, streams)
        child = Child(pid, client, folder, os.pidfd_open(pid))
        self.children.append(child)
        self.selector.register(child.handle, selectors.EVENT_READ, partial(self.remove, child))
        self.selector.register(client, selectors.EVENT_READ, partial(self.kill, child))
        send(client, pid=pid)

    def remove(self, child: Child) -> None:
        """Tells the client of a process that has ended how it ended."""
        _, status = os.waitpid(child.pid, 0)
        if child.folder:
            delete_folder(child.folder)
        send(child.client, returncode=os.waitstatus_to_exitcode(status))
        self.selector.unregister(child.handle)
        if child.client in self.selector.get_map():
            self.selector.unregister(child.client)
        child.client.close()
        os.close(child.handle)
        self.children.remove(child)
        if os.environ.get(ISOLATED):
            kill_children(but={child.pid for child in self.children})

    def kill(self, child: Child) -> None:
        """Kills the process of a client that has gone: all that can be read after a request is the end of the connection."""
        if child in self.children:  # it may have ended at the same moment
            self.selector.unregister(child.client)
            signal_group(child.pid, signal.SIGKILL)

    def close(self) -> None:
        """Closes what belongs to the parent; called in a new child."""
        for child in self.children:
            child.client.close()
            os.close(child.handle)
        self.selector.close()
        self.listener.close()


def send(client: socket.socket, **reply: int) -> None:
    with contextlib.suppress(OSError):  # the client has gone, which the selector tells next
        client.sendall(json.dumps(reply).encode() + b"\n")


def receive(client: socket.socket, streams: list[int]) -> dict[str, Any]:
    """Returns a request, and adds the descriptors that came with it to `streams`. Raises EOFError if nothing was sent."""
    text, received, _, _ = socket.recv_fds(client, 1 << 16, 3)
    streams += received
    if not text:
        raise EOFError
    while not text.endswith(b"\n"):
        more = client.recv(1 << 16)
        if not more:
            raise ValueError("it has no end")
        text += more
    if len(streams) != 3:
        raise ValueError("it comes without three descriptors")
    request: dict[str, Any] = json.loads(text)
    return request


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# The child's side


def run_child(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Turns a new child into `python -m module`."""
    code = 1
    try:
        enter(request, streams)
        code = run_as_main(request["argv"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the exit handlers of the server are not the child's


def enter(request: dict[str, Any], streams: list[int]) -> None:
    is_plain = os.environ.get(PLAIN)  # whose TensorFlow is as it was asked for
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    # Modules of this project are imported again, so that the next kernel has them as they are then.
    for name in [name for name in sys.modules if name.split(".")[0] == "strategy_clinic"]:
        del sys.modules[name]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path and path not in sys.path]
    tempfile.tempdir = None  # read again from the new environment
    sys.modules["numpy"].random.seed()
    if not is_plain:
        find_keras(sys.modules["tensorflow"].__path__)


def find_keras(places: MutableSequence[str]) -> None:
    """Lets `from tensorflow.keras import …` find the Keras of the new environment: TensorFlow looks it up when it is imported."""
    legacy = os.environ.get(LEGACY_KERAS) in ("1", "true", "True")  # as TensorFlow reads it
    spec = importlib.util.find_spec("tf_keras" if legacy else "keras")
    of_keras = os.path.join("api", "_v2")
    if spec and spec.submodule_search_locations and places[0].endswith(of_keras):
        places[0] = os.path.join(spec.submodule_search_locations[0], of_keras)


def run_as_main(argv: list[str]) -> int:
    """Runs `python -m module`, as argv says, and returns its exit status."""
    sys.argv = argv[argv.index("-m") + 1 :]
    if sys.argv[0] == KERNEL:
        show_tf_print()
    code: object = 0
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    let_control_thread_end()
    atexit._run_exitfuncs()  # noqa: SLF001 - a fork ends as an ordinary process would
    return code if isinstance(code, int) else int(code is not None)


def let_control_thread_end() -> None:
    """Waits until a kernel has answered the message that shut it down.

    Its answer is flushed by a thread that an exit function stops: at the wrong moment, ipykernel waits for that 10 seconds.
    """
    for thread in threading.enumerate():
        if thread.name == CONTROL_THREAD:
            thread.join(CONTROL_SECONDS)


def show_tf_print() -> None:
    """Lets tf.print write into a notebook's cells. TensorFlow does so itself only where a notebook has imported it."""
    try:
        tf_internals.logging_ops.enable_interactive_logging()
    except AttributeError as error:
        log(f"tf.print will not be seen in notebooks: {error}")


# The start


def preload() -> None:
    """Imports what kernels import; a module that is not there, or is no longer there, is left out."""
    os.environ |= KERNEL_ENVIRONMENT | dict(os.environ)
    runtime.start_tensorflow()
    with without_grammars():
        for name in PRELOAD:
            try:
                importlib.import_module(name)
            except Exception as error:
                log(f"{name} is not preloaded: {type(error).__name__}: {error}")


def main() -> None:
    path, idle, lock, beside = sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:])
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder that it was started in
    if os.environ.get(ISOLATED):
        isolate()
    os.environ["JPY_PARENT_PID"] = str(
        os.getpid()
    )  # ipykernel reads it at import: whom a kernel watches
    delete_folders_of_dead_servers()
    if os.environ.get(PLAIN):
        importlib.import_module("tensorflow")
    else:
        preload()
    gc.collect()
    gc.freeze()
    server = Server(path, idle, beside)
    fcntl.flock(lock, fcntl.LOCK_UN)  # whoever waits for this server may go on
    os.close(lock)
    server.serve()
    os.unlink(path)


if __name__ == "__main__":
    main()
