"""Warm kernels: Jupyter asks here for a kernel and gets a fork of a process that has imported TensorFlow.

The extension point is jupyter_client's own, a kernel provisioner, named in the kernelspec that `install` writes; so papermill,
nbval, nbclient and JupyterLab use it unchanged. Where nothing can be forked, kernels start as they always do.
"""

import asyncio
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

from jupyter_client.provisioning import LocalProvisioner

from . import guard

PROVISIONER = "clinic-warm"
IDLE = 300  # seconds without a kernel after which the warm process ends
PATIENCE = 120  # seconds for it to import TensorFlow
VARIABLE = "CLINIC_ZYGOTE"  # tells a warm kernel where its own processes can be forked
COLD = "CLINIC_COLD"
IMPORT_TIME = (
    guard.VARIABLE,
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
READ_LATER = ("TF_CONFIG", "TF_USE_LEGACY_KERAS")  # so one warm process serves them all


class Cold(Exception):
    """No warm process can be had; its words say why."""


class WarmProvisioner(LocalProvisioner):
    """jupyter_client's own provisioner, except that the process is forked instead of spawned."""

    async def launch_kernel(self, cmd, **options):
        try:
            self.process = await asyncio.to_thread(kernel, cmd, options)
        except Cold as reason:
            say_once(f"kernels start cold here: {reason}")
            return await super().launch_kernel(cmd, **options)
        self.pid = self.pgid = self.process.pid
        self.cwd = options.get("cwd") or Path.cwd()
        return self.connection_info


def kernel(command: list[str], options: dict):
    """A warm kernel for jupyter_client's launch options; anything out of the ordinary is left to an ordinary launch."""
    if options.get("independent") or "-m" not in command:
        raise Cold("this kernel is to outlive its client, or is no Python module")
    environment = dict(options.get("env") or os.environ)
    path = ensure(command[0], environment)
    # Not every tool gives an absolute folder.
    folder = os.path.abspath(options.get("cwd") or os.getcwd())
    with open(os.devnull, "r+") as nothing:
        given = [options.get(name) for name in ("stdin", "stdout", "stderr")]
        given[0] = given[0] or nothing
        streams = [descriptor(stream, place) for place, stream in enumerate(given)]
        return fork(path, command, environment, folder, streams)


def descriptor(stream, inherited: int) -> int:
    """The number of an open file; what subprocess would have to make first, such as a pipe, is left to it."""
    if stream is None:
        return inherited
    number = stream if isinstance(stream, int) else stream.fileno()
    if number < 0:
        raise Cold("this kernel asks for a pipe of its own")
    return number


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
    if environment.get(guard.VARIABLE) and VARIABLE in environment:
        return environment[VARIABLE]  # a guarded run and its kernel share one network
    try:
        path = private_folder() / f"{key(python, environment)}.sock"
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not answers(path):
                start_zygote(path, python, environment, idle)
    except OSError as error:
        raise Cold(f"the warm process did not start ({error})") from None
    return str(path)


def private_folder() -> Path:
    """A folder that only this user can enter; one that somebody else has prepared is not used."""
    place = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(place) / f"strategy-clinic-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder


def key(python: str, environment) -> str:
    """Changes with what the warm process has read at import: variables, installed packages, its own source."""
    early = {
        name: value
        for name, value in environment.items()
        if name.startswith(IMPORT_TIME) and name not in READ_LATER
    }
    own = [Path(__file__).with_name(name) for name in ("zygote.py", "guard.py")]
    packages = [Path(sysconfig.get_path("purelib")), *own]
    times = [path.stat().st_mtime_ns for path in packages]
    text = json.dumps([python, early, times], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def start_zygote(path: Path, python: str, environment, idle: float):
    path.unlink(missing_ok=True)
    command = [python, "-m", "helpers.zygote", str(path), str(idle)]
    # In a session of its own, so that Ctrl-C in a terminal ends what runs there and not what stands ready.
    with open(path.with_suffix(".log"), "w") as log:
        zygote = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + PATIENCE
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
        asked = {"argv": list(command), "env": environment | {VARIABLE: path}, "cwd": folder}
        text = json.dumps(asked).encode() + b"\n"
        sent = socket.send_fds(connection, [text], list(streams))
        connection.sendall(text[sent:])
        return Forked(connection, command)
    except (OSError, KeyError) as error:
        connection.close()
        raise Cold(f"the warm process did not answer ({error})") from None


def start(module: str, environment: dict, log, path: str | None, *arguments: str):
    """`python -m module` with a pipe as its standard input: forked from the warm process at `path`, or spawned."""
    command = [sys.executable, "-m", module, *arguments]
    if not path:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, text=True
        )
    reading, writing = os.pipe()
    try:
        process = fork(
            path, command, environment, os.getcwd(), (reading, log.fileno(), log.fileno())
        )
    finally:
        os.close(reading)
    process.stdin = os.fdopen(writing, "w")
    return process


# The kernelspec


def install():
    """Names the provisioner in this environment's own kernelspec, which every Jupyter tool finds first."""
    from ipykernel.kernelspec import get_kernel_dict

    folder = Path(sys.prefix) / "share" / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True, exist_ok=True)
    described = get_kernel_dict()
    described["metadata"] |= {"kernel_provisioner": {"provisioner_name": PROVISIONER}}
    (folder / "kernel.json").write_text(json.dumps(described, indent=1) + "\n")


if __name__ == "__main__":
    install()
