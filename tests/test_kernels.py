"""Warm kernels are true forks: each with its own devices, Keras, random state and death. The first kernel waits for none."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
from conftest import ROOT, copy_project
from jupyter_client.kernelspec import KernelSpecManager
from kernels import (
    end_servers,
    first_kernel,
    gone,
    is_server,
    kernel,
    process_of,
    said,
    servers,
    until,
)
from strategy_clinic.forkserver import client as forkserver
from strategy_clinic.forkserver import kernelspec, server
from strategy_clinic.processes import python_process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only"),
]


# The kernelspec


def test_set_up_has_installed_the_kernelspec():
    assert kernelspec.MODULE in KernelSpecManager().get_kernel_spec("python3").argv


def test_install_and_uninstall_leave_the_kernels_of_other_environments_alone(tmp_path, monkeypatch):
    """As uv installs: the same file in both."""
    own, other = tmp_path / "share/jupyter/kernels/python3/kernel.json", tmp_path / "other.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}\n")
    other.hardlink_to(own)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for options, module in (([], kernelspec.MODULE), (["--uninstall"], "ipykernel_launcher")):
        monkeypatch.setattr(sys, "argv", ["kernelspec", *options])
        kernelspec.main()
        spec = json.loads(own.read_text())
        at = spec["argv"].index("-m")
        assert spec["argv"][at + 1 :] == [module, "-f", "{connection_file}"]
        assert spec["argv"][0] == sys.executable
    assert "strategy_clinic" not in own.read_text() and other.read_text() == "{}\n"


def test_the_clinic_s_own_runs_are_warm_without_that(monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", "/theirs")
    monkeypatch.setenv("JUPYTER_PATH", python_process.warm_kernels()["JUPYTER_PATH"])
    assert kernelspec.MODULE in KernelSpecManager().get_kernel_spec("python3").argv
    assert os.environ["JUPYTER_PATH"].endswith(f"{os.pathsep}/theirs")


# The first kernel


@pytest.fixture
def own_servers(short_folder):
    """A folder for fork servers of this test alone, with a TensorFlow that is imported at once."""
    yield short_folder
    end_servers(short_folder)


def test_the_first_kernel_does_not_wait_for_the_fork_server(own_servers, tmp_path):
    """TensorFlow's import has no end here; the kernel is an ordinary one, and the fork server is not its child."""
    (tmp_path / "empty/tensorflow/__init__.py").write_text("import time\ntime.sleep(600)\n")
    with first_kernel() as (manager, client):
        first = process_of(client)
        assert first.pid == manager.provisioner.pid and "ipykernel_launcher" in first.cmdline()
        (starting,) = servers(own_servers)
        assert is_server(starting) and first.children() == []
    assert forkserver.running(os.environ) is None


def test_the_kernels_after_it_are_forked(own_servers):
    with first_kernel() as (_, first):
        assert not is_server(process_of(first).parent())
        assert until(lambda: forkserver.running(os.environ))
        with first_kernel() as (_, second):
            assert is_server(process_of(second).parent())


def test_a_fork_server_that_starts_with_a_command_is_no_child_of_it(own_servers):
    """The command, such as a Jupyter server, would have to wait for its end."""
    command = [sys.executable, "-m", "strategy_clinic.forkserver.beside", "sleep", "60"]
    with subprocess.Popen(command) as process:
        assert until(lambda: psutil.Process(process.pid).name() == "sleep")
        (started,) = until(lambda: servers(own_servers))
        assert started.ppid() != process.pid
        with first_kernel() as (_, first):  # of the empty TensorFlow that own_servers has
            assert until(lambda: forkserver.running(os.environ)) and process_of(first)
        process.kill()


def test_a_command_that_is_not_there_is_one_sentence(own_servers):
    command = [sys.executable, "-m", "strategy_clinic.forkserver.beside", "no-such-command"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert servers(own_servers) == [] and done.returncode == 1
    assert done.stderr == "There is no command 'no-such-command'.\n"


def test_tf_print_is_seen_in_a_forked_kernel_as_in_any_other():
    with kernel() as (_, client):
        assert is_server(process_of(client).parent())
        code = "import tensorflow as tf; tf.print('seen', tf.constant(1))"
        assert said(client, code) == "seen 1"


def test_without_the_folder_of_the_fork_server_everything_works_cold(tmp_path, monkeypatch):
    """What it would run is a notebook: `print` in a plain kernel, from a plain process."""
    shutil.rmtree(copy_project(tmp_path) / "helpers" / "strategy_clinic" / "forkserver")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    plain = kernelspec.install(warm=False).parents[2]
    cell = {
        "cell_type": "code",
        "source": "print(1 + 1)",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    names = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    text = json.dumps({"cells": [cell], "metadata": names, "nbformat": 4, "nbformat_minor": 4})
    script = (
        "import json, sys\nfrom strategy_clinic.processes import notebook_job, python_process\n"
        "assert python_process.fork_server() is None and python_process.running_fork_server() is None\n"
        "assert 'JUPYTER_PATH' not in python_process.isolated({})\n"
        "ended = notebook_job.run_notebook(sys.stdin.read(), {}, 60)\n"
        "print(ended['end'], json.loads(ended['notebook'])['cells'][0]['outputs'][0]['text'])\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "helpers"), "JUPYTER_PATH": str(plain)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "finished ['2\\n']\n", done.stderr


# Forked kernels


def test_a_kernel_is_a_fork_that_holds_tensorflow_and_nothing_of_the_project():
    with kernel() as (_, client):
        assert is_server(process_of(client).parent())
        loaded = said(client, "import sys; print('tensorflow' in sys.modules)")
        ours = "print([name for name in sys.modules if name.split('.')[0] == 'strategy_clinic'])"
        started = said(
            client,
            "from tensorflow.python.eager import context as c; print(c.context()._initialized)",
        )
        assert (loaded, said(client, ours), started) == ("True", "[]", "False")
        assert said(client, f"import strategy_clinic.base.files\n{ours}") != "[]"


@pytest.mark.skipif(
    f"ipython=={version('ipython')}" not in (ROOT / "requirements.lock").read_text().split(),
    reason="another IPython imports other modules",
)
def test_a_forked_kernel_has_nothing_left_to_import(own_servers, tmp_path):
    (tmp_path / "lists.py").write_text("import sys\nprint(*sys.modules)\n")
    command = [sys.executable, "-m", "lists"]
    path = forkserver.ensure(os.environ)
    with open(tmp_path / "log", "w") as log:
        streams = (0, log.fileno(), log.fileno())
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        assert forkserver.fork(path, command, environment, str(tmp_path), streams).wait(20) == 0
    with kernel() as (_, client):
        assert is_server(process_of(client).parent())
        imported = set(said(client, "import sys; print(*sys.modules)").split())
    assert imported - set((tmp_path / "log").read_text().split()) == set()


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
        before = process_of(client).pid
        # After an error a kernel drops what reaches it in the next moment, unless it is told to go on.
        request = client.execute(
            "print('begun')\nimport time; time.sleep(120)", stop_on_error=False
        )
        while client.get_iopub_msg(timeout=30)["content"].get("text") != "begun\n":
            continue
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=30)
        while reply["parent_header"]["msg_id"] != request:  # it was asked twice if it is ready
            reply = client.get_shell_msg(timeout=30)
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert said(client, "print(1 + 1)") == "2"
        said(client, "kept = 1")
        manager.restart_kernel()
        client.wait_for_ready(timeout=60)
        assert process_of(client).pid != before and gone(before)
        assert said(client, "print('kept' in globals())") == "False"


@pytest.mark.parametrize("death", ["os.abort()", "os.kill(os.getpid(), 9)", "os._exit(3)"])
def test_a_crash_is_its_own(death):
    with kernel() as (first, dying), kernel() as (_, other):
        pid = process_of(dying).pid
        dying.execute(f"import os; {death}")
        assert gone(pid) and until(lambda: not first.is_alive())
        assert said(other, "print('alive')") == "alive"


def test_kill_takes_all_that_a_kernel_has_started():
    with kernel() as (manager, client):
        child = said(client, "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)")
        pid = process_of(client).pid
        manager.shutdown_kernel(now=True)
    assert gone(pid) and gone(int(child))


def test_a_kernel_that_is_asked_to_ends_by_itself():
    with kernel() as (manager, _):
        manager.request_shutdown()
        assert manager.provisioner.process.wait(20) == 0


SLOW_ANSWER = """
    import atexit, sys, threading, time
    def flush():
        time.sleep(0.3 if threading.current_thread().name == "Control" else 0)
    def names():
        open({log!r}, "w").write(" ".join(thread.name for thread in threading.enumerate()))
    sys.stdout.flush = flush
    atexit.register(names)
"""


def test_a_kernel_has_answered_a_shutdown_before_its_exit_functions_run(own_servers, tmp_path):
    """One of them stops the thread that sends the answer, for which ipykernel may then wait 10 seconds."""
    log = tmp_path / "threads"
    with kernel() as (manager, client):
        said(client, SLOW_ANSWER.format(log=str(log)))
        manager.request_shutdown()
        assert manager.provisioner.process.wait(20) == 0
    names = log.read_text().split()
    assert "MainThread" in names and server.CONTROL_THREAD not in names


CLIENT = """
    import time
    from kernels import kernel, process_of, said
    with kernel() as (_, client):
        said(client, "import subprocess; subprocess.Popen(['sleep', '600'])")
        print(process_of(client).pid, flush=True)
        time.sleep(600)
"""


def test_a_dead_client_leaves_no_orphan():
    command = [sys.executable, "-c", textwrap.dedent(CLIENT)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT / "tests")
    pid = int(client.stdout.readline())
    children = psutil.Process(pid).children()
    assert len(children) == 1
    client.kill()
    client.wait()
    client.stdout.close()
    assert gone(pid) and gone(children[0].pid)


# The fork server


def test_a_dead_fork_server_leaves_no_orphan_and_is_replaced(own_servers):
    with kernel() as (manager, client):
        process = process_of(client)
        process.parent().kill()
        assert gone(process.pid) and until(lambda: not manager.is_alive())
    with kernel() as (_, client):
        assert is_server(process_of(client).parent())


def test_a_client_and_its_process_may_end_at_the_same_moment(own_servers, tmp_path):
    path = forkserver.ensure(os.environ)
    (tmp_path / "waits.py").write_text("import sys, time\ntime.sleep(float(sys.argv[1]))\n")

    def waiting(seconds):
        command = [sys.executable, "-m", "waits", seconds]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return forkserver.fork(path, command, environment, str(tmp_path), (0, 1, 2))

    process = waiting("600")
    child = psutil.Process(process.pid)
    fork_server = child.parent()
    fork_server.suspend()  # it then learns of both ends at once
    child.kill()
    assert until(lambda: child.status() == psutil.STATUS_ZOMBIE)
    process.replies.close()
    process.connection.close()
    fork_server.resume()
    assert gone(child.pid) and waiting("0").wait(timeout=60) == 0


def test_an_idle_fork_server_ends(own_servers):
    path = Path(forkserver.ensure(os.environ, idle=0.5))
    assert until(lambda: not path.exists())


def test_a_fork_server_stays_as_long_as_the_kernel_that_started_it(own_servers):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as beside:
        forkserver.start(os.environ, idle=0.1, beside=beside.pid)
        path = Path(forkserver.ensure(os.environ))
        time.sleep(2)  # that it does not end takes time to see
        assert forkserver.running(os.environ)
    assert until(lambda: not path.exists())


def test_a_fork_server_stays_as_long_as_somebody_asks_for_it(own_servers):
    path = Path(forkserver.ensure(os.environ, idle=1.0))
    for _ in range(6):
        time.sleep(0.4)
        assert forkserver.running(os.environ)
    assert until(lambda: not path.exists())


def test_its_socket_is_in_a_folder_of_this_user_alone(tmp_path, monkeypatch):
    assert forkserver.private_folder(os.environ).stat().st_mode & 0o077 == 0
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"strategy-clinic-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(forkserver.NoForkServer, match="open to others"):
        forkserver.ensure(os.environ)


def test_a_plain_one_is_for_the_variables_that_are_set_and_for_no_defaults():
    plain, without = {forkserver.PLAIN: "1"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}
    assert forkserver.key(plain) != forkserver.key(plain | without)
    assert forkserver.key({}) == forkserver.key(without)  # the default of a kernel


def test_a_link_is_no_private_folder(tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / f"strategy-clinic-{os.getuid()}").symlink_to(tmp_path / "private")
    with pytest.raises(PermissionError):
        forkserver.private_folder({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_one_that_does_not_start_says_where_its_log_is(own_servers, tmp_path):
    (tmp_path / "empty/tensorflow/__init__.py").write_text("raise SystemError('broken')\n")
    with pytest.raises(forkserver.NoForkServer, match=r"did not start, see (\S+\.log)") as reason:
        forkserver.ensure(os.environ)
    assert "broken" in Path(str(reason.value).split()[-1]).read_text()


COLD = [
    (lambda patch: patch.setattr(sys, "platform", "darwin"), "on Linux only"),
    (lambda patch: patch.setenv(forkserver.COLD, "1"), f"{forkserver.COLD} is set"),
]


@pytest.mark.parametrize("prevent, reason", COLD)
def test_where_there_is_none_that_is_said_once(prevent, reason, monkeypatch, capsys):
    python_process.say_once.cache_clear()
    with monkeypatch.context() as patch:
        prevent(patch)
        assert [python_process.fork_server() for _ in range(2)] == [None, None]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and reason in lines[0]


def test_a_kernel_is_cold_where_that_is_asked_for(monkeypatch):
    monkeypatch.setenv(forkserver.COLD, "1")
    with kernel() as (_, client):
        assert said(client, "import sys; print('tensorflow' in sys.modules)") == "False"
        assert not is_server(process_of(client).parent())


def test_a_change_of_what_is_read_at_import_asks_for_another_fork_server():
    here = {"TF_ENABLE_ONEDNN_OPTS": "0"}
    one = forkserver.key(here)
    assert one != forkserver.key({"TF_ENABLE_ONEDNN_OPTS": "1"})
    assert one != forkserver.key(here | {forkserver.ISOLATED: "1"})
    assert one == forkserver.key(here | {"TF_CONFIG": json.dumps({}), "HOME": "/"})


MALFORMED = [
    b"\n",
    b"nonsense\n",
    b"without an end",
    b"[]\n",
    b"[" * 100_000 + b"\n",
    b"{" * 100_000 + b"\n",
    b'{"argv": 3}\n',
    b'{"argv": ["-m", "this"], "env": [], "cwd": "/"}\n',
    b'{"argv": ["-m", "this"], "env": {"TMPDIR": [1]}, "cwd": "/"}\n',
    b'{"argv": ["-m", "this"], "env": {"TMPDIR": "\\u0000"}, "cwd": "/"}\n',
    b'{"argv": 3, "env": {}, "cwd": "/"}\n',
    b'{"argv": ["-m", "this"], "env": {"a": 1}, "cwd": "/"}\n',
    b"\xff\xfe\n",
]


def answer_to(request: bytes, path: str, descriptors: list[int]) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(path)
        with contextlib.suppress(ConnectionError):  # the server has closed it already
            socket.send_fds(client, [request[:1]], descriptors)
            client.sendall(request[1:])
            client.shutdown(socket.SHUT_WR)
            return client.makefile("rb").read()
    return b""


@pytest.mark.parametrize("descriptors", [0, 1, 3])
def test_a_malformed_request_is_refused_and_the_server_goes_on(own_servers, descriptors):
    path = forkserver.ensure(os.environ)
    (process,) = servers(own_servers)
    before = process.num_fds()
    with open(os.devnull, "r+") as nothing:
        for request in MALFORMED:
            reply = answer_to(request, path, [nothing.fileno()] * descriptors)
            assert b'"returncode": 0' not in reply, (request[:60], reply)
        good = ["-m", "this"], dict(os.environ), "/", [nothing.fileno()] * 3
        assert forkserver.fork(path, *good).wait(20) == 0
    assert until(lambda: process.num_fds() <= before)


def test_a_module_that_cannot_be_preloaded_is_left_out(own_servers, tmp_path):
    """One that was renamed, and one that has become incompatible."""
    gone_module, broken = [name for name in server.PRELOAD if name.startswith("tensorflow")][:2]
    shutil.rmtree(tmp_path / "empty" / Path(*gone_module.split(".")))
    (tmp_path / "empty" / Path(*broken.split(".")) / "__init__.py").write_text("1 / 0\n")
    log = Path(forkserver.ensure(os.environ)).with_suffix(".log").read_text()
    assert f"{gone_module} is not preloaded: ModuleNotFoundError" in log
    assert f"{broken} is not preloaded: ZeroDivisionError" in log
    with kernel() as (_, client):
        assert is_server(process_of(client).parent())


def test_signals_reach_a_forked_process(tmp_path):
    with open(tmp_path / "log", "w") as log:
        process = python_process.start_module(
            "timeit", dict(os.environ), log, python_process.fork_server()
        )
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
    process.stdin.close()
