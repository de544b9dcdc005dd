"""Warm kernels are true forks: each with its own devices, Keras, random state and death."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from queue import Empty

import psutil
import pytest
from conftest import ROOT
from jupyter_client.kernelspec import KernelSpecManager
from kernels import gone, kernel, said
from strategy_clinic.processes import forkserver_client, kernels

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only"),
]


def zygote_of(manager) -> psutil.Process:
    return psutil.Process(manager.provisioner.pid).parent()


def test_set_up_has_named_the_provisioner():
    metadata = KernelSpecManager().get_kernel_spec("python3").metadata
    assert metadata["kernel_provisioner"]["provisioner_name"] == kernels.PROVISIONER


def test_set_up_leaves_the_kernels_of_other_environments_alone(tmp_path, monkeypatch):
    """As uv installs: the same file in both."""
    own, other = tmp_path / "share/jupyter/kernels/python3/kernel.json", tmp_path / "other.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}\n")
    other.hardlink_to(own)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    kernels.install()
    assert kernels.PROVISIONER in own.read_text() and other.read_text() == "{}\n"


def test_a_kernel_is_a_fork_that_holds_tensorflow_and_nothing_of_the_project():
    with kernel() as (manager, client):
        assert "strategy_clinic.processes.forkserver" in " ".join(zygote_of(manager).cmdline())
        loaded = said(client, "import sys; print('tensorflow' in sys.modules)")
        ours = said(client, "print([n for n in sys.modules if n.split('.')[0] == 'helpers'])")
        started = said(
            client,
            "from tensorflow.python.eager import context as c; print(c.context()._initialized)",
        )
    assert (loaded, ours, started) == ("True", "[]", "False")


ENTER = """
    from strategy_clinic.setups.parameters import Setup, prepare_kernel
    setup = Setup("mirrored", {devices}, keras={keras})
    prepare_kernel(setup)
    from strategy_clinic import build_strategy
    import tensorflow as tf
    print(build_strategy(setup).num_replicas_in_sync, tf.keras.Model.__module__.split(".")[0])
"""


def test_each_has_its_own_devices_keras_and_random_state():
    with kernel() as (_, one), kernel() as (_, two):
        draw = "import numpy as np; print(np.random.rand())"
        assert said(one, draw) != said(two, draw)
        assert said(one, ENTER.format(devices=2, keras=3)) == "2 keras"
        assert said(two, ENTER.format(devices=8, keras=2)) == "8 tf_keras"


def test_interrupt_and_restart():
    with kernel() as (manager, client):
        before = manager.provisioner.pid
        # After an error a kernel drops what reaches it in the next moment, unless it is told to go on.
        asked = client.execute("import time; time.sleep(120)", stop_on_error=False)
        time.sleep(1)
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=30)
        while (
            reply["parent_header"]["msg_id"] != asked
        ):  # a slow kernel was asked twice if it is ready
            reply = client.get_shell_msg(timeout=30)
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert said(client, "print(1 + 1)") == "2"
        said(client, "kept = 1")
        manager.restart_kernel()
        client.wait_for_ready(timeout=60)
        assert manager.provisioner.pid != before and gone(before)
        assert said(client, "print('kept' in globals())") == "False"


@pytest.mark.parametrize("death", ["os.abort()", "os.kill(os.getpid(), 9)", "os._exit(3)"])
def test_a_crash_is_its_own(death):
    with kernel() as (first, dying), kernel() as (_, other):
        dying.execute(f"import os; {death}")
        first.provisioner.process.wait(20)  # the warm process tells of it a moment after
        assert gone(first.provisioner.pid) and not first.is_alive()
        assert said(other, "print('alive')") == "alive"


def test_kill_takes_all_that_a_kernel_has_started():
    with kernel() as (manager, client):
        child = said(client, "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)")
        pid = manager.provisioner.pid
        manager.shutdown_kernel(now=True)
    assert gone(pid) and gone(int(child))


CLIENT = """
    import time
    from jupyter_client.manager import start_new_kernel
    manager, client = start_new_kernel(kernel_name="python3")
    client.execute("import subprocess; subprocess.Popen(['sleep', '600'])")
    time.sleep(2)
    print(manager.provisioner.pid, flush=True)
    time.sleep(600)
"""


def test_a_dead_client_leaves_no_orphan():
    command = [sys.executable, "-c", textwrap.dedent(CLIENT)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    pid = int(client.stdout.readline())
    children = psutil.Process(pid).children()
    assert len(children) == 1
    client.kill()
    client.wait()
    client.stdout.close()
    assert gone(pid) and gone(children[0].pid)


def test_a_dead_warm_process_leaves_no_orphan_and_is_replaced(short_folder):
    with kernel() as (manager, _):
        pid = manager.provisioner.pid
        zygote_of(manager).kill()
        assert gone(pid) and not manager.is_alive()
    with kernel() as (manager, client):
        assert said(client, "print('alive')") == "alive"
        zygote_of(manager).kill()


def test_an_idle_warm_process_ends(short_folder):
    path = Path(forkserver_client.ensure(idle=1))
    deadline = time.monotonic() + 20
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not path.exists()


def test_its_socket_is_in_a_folder_of_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.delenv(forkserver_client.ZYGOTE, raising=False)
    assert forkserver_client.private_folder().stat().st_mode & 0o077 == 0
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"strategy-clinic-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(forkserver_client.Cold, match="open to others"):
        forkserver_client.ensure()


COLD = [
    (lambda patch: patch.setattr(sys, "platform", "darwin"), "needs Linux"),
    (lambda patch: patch.setenv(forkserver_client.COLD, "1"), f"{forkserver_client.COLD} is set"),
]


@pytest.mark.parametrize("prevent, reason", COLD)
def test_without_a_fork_kernels_start_cold_and_it_is_said_once(
    prevent, reason, monkeypatch, capsys
):
    forkserver_client.say_once.cache_clear()
    with monkeypatch.context() as patch:
        prevent(patch)
        for _ in range(2):
            with kernel() as (_, client):
                assert said(client, "import sys; print('tensorflow' in sys.modules)") == "False"
    words = [line for line in capsys.readouterr().err.splitlines() if line.startswith("clinic:")]
    assert len(words) == 1 and reason in words[0]


def test_a_change_of_what_is_read_at_import_asks_for_another_warm_process():
    here = {"TF_ENABLE_ONEDNN_OPTS": "0"}
    one = forkserver_client.key_of(sys.executable, here)
    assert one != forkserver_client.key_of(sys.executable, {"TF_ENABLE_ONEDNN_OPTS": "1"})
    assert one == forkserver_client.key_of(
        sys.executable, here | {"TF_CONFIG": json.dumps({}), "HOME": "/"}
    )


def test_what_is_no_request_is_turned_away():
    import socket

    path = forkserver_client.ensure()
    for nonsense in (b"", b"nonsense\n", b"[]\n", b'{"argv": 3}\n', b"{" * 100_000 + b"\n"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            with contextlib.suppress(OSError):
                client.sendall(nonsense)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(10)
            with contextlib.suppress(ConnectionError):
                assert b'returncode": 0' not in client.recv(1000)
    with kernel() as (_, client):
        assert said(client, "print('alive')") == "alive"


def test_signals_reach_a_forked_process(tmp_path):
    with open(tmp_path / "log", "w") as log:
        process = forkserver_client.start_module(
            "timeit", dict(os.environ), log, forkserver_client.ensure()
        )
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
    process.stdin.close()


class Talks:
    """A kernel as its client hears it: who answers to which request on which channel."""

    def __init__(self, shell: list, iopub: list, alive: bool = True):
        self.answers, self.alive, self.asked = {"shell": shell, "iopub": iopub}, alive, 0

    def kernel_info(self) -> str:
        self.asked += 1
        return str(self.asked)

    async def is_alive(self) -> bool:
        return self.alive

    async def hears_of(self, asked: str) -> bool:
        return await kernels.PromptClient.hears_of(self, asked)

    async def next_of(self, channel: str) -> dict:
        """No answer comes before it was asked for."""
        waiting = self.answers[channel]
        if not waiting or int(waiting[0].get("msg_id", 0)) > self.asked:
            raise Empty
        return {"parent_header": waiting.pop(0)}

    async def get_shell_msg(self, timeout) -> dict:
        return await self.next_of("shell")

    async def get_iopub_msg(self, timeout) -> dict:
        return await self.next_of("iopub")


def ready(talks: Talks, timeout: float = 60):
    asyncio.run(kernels.PromptClient.wait_for_ready(talks, timeout))


FIRST, SECOND = {"msg_id": "1"}, {"msg_id": "2"}


def test_a_client_begins_when_both_channels_have_answered_to_one_request():
    for shell, iopub, times in [
        ([FIRST], [{}, FIRST], 1),
        ([FIRST, SECOND], [SECOND], 2),  # nobody listened yet when the first was answered
        ([{}, FIRST, SECOND], [{}, {}, SECOND], 2),
    ]:
        talks = Talks(shell, iopub)
        ready(talks)
        assert talks.asked == times and talks.answers["iopub"] == []


def test_a_client_does_not_wait_for_ever():
    with pytest.raises(RuntimeError, match="died before it was ready"):
        ready(Talks([FIRST], [], alive=False))
    with pytest.raises(RuntimeError, match="not ready within 0.01 seconds"):
        ready(Talks([], []), timeout=0.01)


def test_whoever_shuts_a_kernel_down_hears_at_once_that_it_has_ended():
    with kernel() as (manager, _):
        began = time.monotonic()
        manager.request_shutdown()
        assert not manager.is_alive() or time.monotonic() - began >= kernels.LEAVING
