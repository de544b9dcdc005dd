"""The warm process: TensorFlow is imported, nothing of it is initialised, and every request forks one process.

A connection is one process. The client sends a line of JSON, {"argv", "env", "cwd"}, with three descriptors for standard
input, output and error; it is answered {"pid"} and, at the end, {"returncode"}. A client that goes takes its process along.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

from ..setups import runtime
from .forkserver_client import USUAL_START
from .isolation import GUARDED, isolate, sweep
from .temp_files import folder_for_child, tidy, tidy_after_the_dead

# What kernels and notebooks import. matplotlib.pyplot is left out: it sets up its backend for the shell it finds.
PRELOAD = (
    "IPython.core.completerlib",
    "IPython.core.magics.pylab",
    "IPython.extensions.storemagic",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "ipywidgets",
    "jinja2",
    "matplotlib.backends.backend_agg",
    "numpy.random",
    "packaging.requirements",
    "papermill",
    "PIL.PngImagePlugin",
    "pytest",
    "sqlite3",
    "symtable",
    "tomllib",
    "tornado.platform.asyncio",
    "tensorflow.python.data.ops.from_tensors_op",
    "tensorflow.python.data.ops.range_op",
    "tensorflow.python.data.ops.rebatch_op",
    "tensorflow.python.data.ops.zip_op",
)
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
GRACE = 2  # seconds between the polite signal and the last one
ASKING = 5  # seconds for a client to send its request


class Child:
    """One forked process and the client that it belongs to."""

    def __init__(self, pid: int, client: socket.socket, folder: Path):
        self.pid, self.client, self.folder, self.overdue = pid, client, folder, None
        self.handle = os.pidfd_open(pid)


class Zygote:
    """Forks for whoever connects; leaves when it has had no child for `idle` seconds."""

    def __init__(self, path: str, idle: float):
        self.idle, self.last, self.children = idle, time.monotonic(), []
        self.selector = selectors.DefaultSelector()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(64)
        self.selector.register(self.server, selectors.EVENT_READ, self.accept)

    def serve(self):
        while self.children or time.monotonic() - self.last < self.idle:
            for key, _ in self.selector.select(timeout=0.5):
                key.data()
            self.kill_overdue()

    def accept(self):
        client, _ = self.server.accept()
        client.settimeout(ASKING)
        try:
            request, streams = receive(client)
        except (OSError, ValueError):
            return client.close()
        folder = folder_for_child(request["env"])
        pid = os.fork()
        if pid == 0:
            self.close()
            client.close()
            request["env"]["TMPDIR"] = str(folder)
            become(request, streams)
        for stream in streams:
            os.close(stream)
        self.adopt(Child(pid, client, folder))

    def adopt(self, child: Child):
        self.children.append(child)
        self.selector.register(child.handle, selectors.EVENT_READ, partial(self.ended, child))
        self.selector.register(child.client, selectors.EVENT_READ, partial(self.abandoned, child))
        tell(child, pid=child.pid)

    def ended(self, child: Child):
        _, status = os.waitpid(child.pid, 0)
        tidy(child.folder)
        tell(child, returncode=os.waitstatus_to_exitcode(status))
        self.selector.unregister(child.handle)
        if child.client in self.selector.get_map():
            self.selector.unregister(child.client)
        child.client.close()
        os.close(child.handle)
        self.children.remove(child)
        self.last = time.monotonic()
        if os.environ.get(GUARDED):
            sweep({child.pid for child in self.children})

    def abandoned(self, child: Child):
        """Ends the process of a client that has gone: it sends nothing after its request, so what can be read is the end."""
        self.selector.unregister(child.client)
        signal_group(child, signal.SIGTERM)
        child.overdue = time.monotonic() + GRACE

    def kill_overdue(self):
        for child in self.children:
            if child.overdue and time.monotonic() > child.overdue:
                signal_group(child, signal.SIGKILL)

    def close(self):
        """Lets go of everything that belongs to the parent; called in a new child."""
        for child in self.children:
            child.client.close()
            os.close(child.handle)
        self.selector.close()
        self.server.close()


def tell(child: Child, **facts):
    with contextlib.suppress(OSError):  # the client has gone; `abandoned` deals with its process
        child.client.sendall(json.dumps(facts).encode() + b"\n")


def signal_group(child: Child, number: int):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def receive(client: socket.socket):
    """One line of JSON and the three descriptors that came with it."""
    text, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
    while text and not text.endswith(b"\n"):
        text += client.recv(1 << 16)
    request = json.loads(text)
    if len(streams) == 3 and isinstance(request, dict) and isinstance(request.get("env"), dict):
        return request, streams
    for stream in streams:
        os.close(stream)
    raise ValueError("this is no request")


# The child's side


def become(request: dict, streams: list[int]):
    """Turns a new child into `python -m module`; does not return."""
    code = 1
    try:
        settle_in(request, streams)
        code = run_as_main(request["argv"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # what the warm process would do at its own exit is not the child's to do


def settle_in(request: dict, streams: list[int]):
    os.setsid()
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    forget()


def forget():
    """Nothing of this project is inherited, so that an edit is seen by the next kernel; the rest is as at a start."""
    for name in [name for name in sys.modules if name.split(".")[0] == "strategy_clinic"]:
        del sys.modules[name]
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [place for place in places if place and place not in sys.path]
    tempfile.tempdir = None  # asked for again, where the new environment says
    sys.modules["numpy"].random.seed()


def run_as_main(argv: list[str]) -> int:
    import atexit

    module = argv.index("-m") + 1
    sys.argv = argv[module:]
    try:
        runpy.run_module(argv[module], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    atexit._run_exitfuncs()  # noqa: SLF001 - a fork ends as an ordinary process would
    return code


def main():
    path, idle = sys.argv[1], float(sys.argv[2])
    if not sys.flags.safe_path:
        del sys.path[
            0
        ]  # the folder that it was started in; an installed clinic may name the same one further on
    if os.environ.get(GUARDED):
        isolate()
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # whom a kernel watches; read at import
    os.environ |= USUAL_START | dict(os.environ)
    tidy_after_the_dead()
    runtime.start_tensorflow()
    for name in PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    Zygote(path, idle).serve()
    os.unlink(path)


if __name__ == "__main__":
    main()
