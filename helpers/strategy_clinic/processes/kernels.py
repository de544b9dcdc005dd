"""Warm kernels: Jupyter asks here for a kernel and gets a fork of a process that has imported TensorFlow.

The extension point is jupyter_client's own, a kernel provisioner, named in the kernelspec that `install` writes; so papermill,
nbval, nbclient and JupyterLab use it unchanged. Where nothing can be forked, kernels start as they always do.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from queue import Empty

try:
    from jupyter_client.asynchronous import AsyncKernelClient
    from jupyter_client.provisioning import LocalProvisioner
except ImportError:  # jupyter_client 6 has no provisioners; worker processes need none
    AsyncKernelClient = LocalProvisioner = object

from ..base.files import write_whole
from .forkserver_client import Cold, Forked, ensure, fork, say_once

PROVISIONER = "clinic-warm"
LEAVING = 0.5  # seconds that a kernel is given to end by itself, before it is asked about every tenth of a second


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

    async def shutdown_requested(self, restart=False):
        """Comes back as soon as the kernel has ended."""
        if isinstance(self.process, Forked):
            await asyncio.to_thread(self.process.poll, LEAVING)


class PromptClient(AsyncKernelClient):
    """Begins when a new kernel has answered on both channels; jupyter_client's own then waits for 0.2 s of silence."""

    async def wait_for_ready(self, timeout=None):
        deadline = time.monotonic() + (timeout or float("inf"))
        while not await self.hears_of(self.kernel_info()):
            if not await self.is_alive():
                raise RuntimeError("the kernel died before it was ready")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the kernel was not ready within {timeout} seconds")

    async def hears_of(self, asked: str) -> bool:
        """Whether the answer to a request has come, and a message about it to all who listen."""
        try:
            for read, seconds in ((self.get_shell_msg, 1), (self.get_iopub_msg, 0.2)):
                while (await read(timeout=seconds))["parent_header"].get("msg_id") != asked:
                    continue
        except Empty:
            return False
        return True


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


# The kernelspec


def install():
    """Names the provisioner in this environment's own kernelspec, which every Jupyter tool finds first."""
    from ipykernel.kernelspec import get_kernel_dict

    folder = Path(sys.prefix) / "share" / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True, exist_ok=True)
    described = get_kernel_dict()
    described["metadata"] |= {"kernel_provisioner": {"provisioner_name": PROVISIONER}}
    # A new file: uv links one file into the environments of all projects, and they would all get this one's Python.
    write_whole(folder / "kernel.json", json.dumps(described, indent=1) + "\n")


if __name__ == "__main__":
    install()
