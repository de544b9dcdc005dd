"""The warm process as its clients see it: start it, fork from it, wait and kill."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from ..base import files
from ..setups import runtime
from .isolation import GUARDED

IDLE = 300  # seconds without a kernel after which the warm process ends
STARTING = 120  # seconds for it to import TensorFlow
ZYGOTE = "CLINIC_ZYGOTE"  # tells a warm kernel where its own processes can be forked
COLD = "CLINIC_COLD"
IMPORT_TIME = (
    GUARDED,
    "CUDA_",
    "GRPC_",
    "KERAS_",
    "LD_",
    "MKL_",
    "MPL",
    "OMP_",
    "OPENBLAS_",
    "PYTHON",
    "TF_",
    "XLA_",
)
# What an ordinary kernel sets before these libraries are imported, and a run finds set.
USUAL_START = runtime.QUIET_START | {
    "KERAS_BACKEND": "tensorflow",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}
# Read by each process for itself, so that one warm process serves them all.
READ_LATER = ("PYTHONPATH", "TF_CONFIG", "TF_USE_LEGACY_KERAS")


class Cold(Exception):
    """No warm process can be had; its words say why."""


def warm(environment=os.environ) -> str | None:
    """The socket of a warm process, or None, said once, where there can be none."""
    try:
        return ensure(sys.executable, environment)
    except Cold as reason:
        return say_once(f"runs start cold here: {reason}")


@functools.cache
def say_once(words: str):
    print(f"clinic: {words}", file=sys.stderr)


# The warm process


def ensure(python: str = sys.executable, environment=os.environ, idle: float = IDLE) -> str:
    """The socket of the warm process for this interpreter and environment; starts it if need be."""
    if sys.platform != "linux":
        raise Cold(
            f"forking a process that holds TensorFlow needs Linux, and this is {sys.platform}"
        )
    if environment.get(COLD):
        raise Cold(f"{COLD} is set")
    if own := inherited(python, environment):
        return own
    try:
        path = private_folder() / f"{key_of(python, environment)}.sock"
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not answers(path):
                start_zygote(path, python, environment, idle)
    except OSError as error:
        raise Cold(f"the warm process did not start ({error})") from None
    return str(path)


def inherited(python: str, environment) -> str:
    """The warm process that this one was forked from, where it would serve; a guarded run has no other."""
    given = environment.get(ZYGOTE, "")
    if not given or environment.get(GUARDED):
        return given
    serves = Path(given).name.startswith(early_key(python, environment)) and answers(Path(given))
    return given if serves else ""


def private_folder() -> Path:
    """A folder that only this user can enter; one that somebody else has prepared is not used."""
    place = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(place) / f"strategy-clinic-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder


def key_of(python: str, environment) -> str:
    """Changes with what the warm process has read at import, and then with its own source."""
    own = [Path(__file__).with_name("forkserver.py"), Path(__file__).with_name("isolation.py")]
    return f"{early_key(python, environment)}-{digest([each.stat().st_mtime_ns for each in own])}"


def early_key(python: str, environment) -> str:
    """The interpreter, the installed packages and the variables; a folder may be reached through links."""
    early = {
        name: value
        for name, value in (USUAL_START | dict(environment)).items()
        if name.startswith(IMPORT_TIME) and name not in READ_LATER
    }
    places = [os.path.realpath(python), os.path.realpath(os.path.dirname(python))]
    return digest([places, early, Path(sysconfig.get_path("purelib")).stat().st_mtime_ns])


def digest(facts) -> str:
    """Short, since a socket's path may have 107 signs."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def start_zygote(path: Path, python: str, environment, idle: float):
    path.unlink(missing_ok=True)
    command = [python, "-m", "strategy_clinic.processes.forkserver", str(path), str(idle)]
    # In a session of its own, so that Ctrl-C in a terminal ends what runs there and not what stands ready.
    with open(path.with_suffix(".log"), "w") as log:
        zygote = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=files.PACKAGE.parent,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + STARTING
    while not answers(path):
        if zygote.poll() is not None or time.monotonic() > deadline:
            raise ChildProcessError(f"see {path.with_suffix('.log')}")
        time.sleep(0.05)


# Processes forked from it


class Forked:
    """What subprocess.Popen is for a process of our own: this one is the child of the warm process."""

    stdout = stderr = None

    def __init__(self, connection: socket.socket, command: list[str]):
        self.connection, self.args = connection, command
        self.stdin = self.returncode = None
        self.answers = connection.makefile("rb")
        self.pid = self.answer()["pid"]

    def answer(self) -> dict:
        line = self.answers.readline()
        if line:
            return json.loads(line)
        return {
            "returncode": -signal.SIGKILL
        }  # the warm process has died, and its children with it

    def poll(self, seconds: float | None = 0):
        if self.returncode is None and select.select([self.connection], [], [], seconds)[0]:
            self.returncode = self.answer()["returncode"]
            self.answers.close()
            self.connection.close()
        return self.returncode

    def wait(self, timeout: float | None = None):
        if self.poll(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number: int):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """With all that it has started: a forked process leads a group of its own."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


def fork(path: str, command: list[str], environment: dict, folder: str, streams) -> Forked:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        asked = {"argv": list(command), "env": environment | {ZYGOTE: path}, "cwd": folder}
        text = json.dumps(asked).encode() + b"\n"
        sent = socket.send_fds(connection, [text], list(streams))
        connection.sendall(text[sent:])
        return Forked(connection, command)
    except (OSError, KeyError) as error:
        connection.close()
        raise Cold(f"the warm process did not answer ({error})") from None


def start_module(module: str, environment: dict, log, path: str | None, *arguments: str):
    """`python -m module` with a pipe as its standard input: forked from the warm process at `path`, or spawned.

    The folder in which it starts is not searched for modules: what lies there may have the name of one of ours.
    """
    command = [sys.executable, "-P", "-m", module, *arguments]
    environment = environment | {"PYTHONPATH": with_package(environment.get("PYTHONPATH", ""))}
    if path:
        with contextlib.suppress(Cold):  # the warm process may have come to its end just now
            return fork_with_pipe(path, command, environment, log)
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, text=True
    )


def fork_with_pipe(path: str, command: list[str], environment: dict, log) -> Forked:
    reading, writing = os.pipe()
    try:
        streams = (reading, log.fileno(), log.fileno())
        process = fork(path, command, environment, os.getcwd(), streams)
    except Cold:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    process.stdin = os.fdopen(writing, "w")
    return process


def with_package(places: str) -> str:
    own = str(files.PACKAGE.parent)
    return os.pathsep.join(
        [own, *[each for each in places.split(os.pathsep) if each not in ("", own)]]
    )
