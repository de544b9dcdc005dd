"""Programs that do not end, or end without telling Python: the line where each process is, in real processes."""

import json
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from recorded import run
from strategy_clinic import cli
from strategy_clinic.examiner import blame, hangs
from strategy_clinic.examiner.recording import ProcessStacks, Role, ThreadStack
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.process_stacks import is_busy, threads_in
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.observer.events import Frame, Outcome
from strategy_clinic.processes import python_process
from thorough import thorough

LIMIT = 4  # seconds for programs without TensorFlow


@pytest.fixture
def examined(tmp_path, monkeypatch, capfd):
    """Writes a program without TensorFlow, examines it, and gives the exit status and the report as text."""
    monkeypatch.chdir(tmp_path)

    def examine(text, limit=LIMIT):
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        status = cli.main(["examine", "--limit", str(limit), "train.py"])
        return status, capfd.readouterr().out

    return examine


# Processes


WAITS = """
    import multiprocessing, os, signal

    def work(inputs):
        {begin}
        inputs.get()  # the worker

    if __name__ == "__main__":
        multiprocessing.set_start_method("{method}")
        inputs, outputs = multiprocessing.Queue(), multiprocessing.Queue()
        worker = multiprocessing.Process(target=work, args=(inputs,))
        worker.start()
        {then}
        outputs.get()  # the program
"""


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", thorough("spawn")])
def test_where_a_program_and_its_worker_wait(examined, method):
    status, words = examined(WAITS.format(begin="", then="", method=method))
    assert status == 1
    assert words.startswith("train.py:14  hangs  the program waits for another process at line 14")
    assert "outputs.get()  # the program" in words
    assert "waits at line 6" in words


@pytest.mark.replayed
def test_a_worker_that_was_killed_is_named(examined):
    text = WAITS.format(
        begin="os.kill(os.getpid(), signal.SIGKILL)", then="worker.join()", method="fork"
    )
    status, words = examined(text)
    assert (status, "was ended by SIGKILL, as the system does" in words) == (1, True)
    status, words = examined(text.replace("worker.join()", ""))  # so that nobody has waited for it
    assert (status, "was ended by SIGKILL, as the system does" in words) == (1, True)


@pytest.mark.slow
@pytest.mark.replayed
@pytest.mark.parametrize(
    "text, said",
    [
        ("import os\nos._exit(4)", "called os._exit(4) (train.py:2)"),
        ("import os\nos.abort()", "was ended by SIGABRT: Aborted (train.py:2)"),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
            "was ended by SIGSEGV: Segmentation fault (train.py:2)",
        ),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "was ended by SIGKILL, as the system does when memory runs out",
        ),
        (
            "import subprocess, sys\nend = 'import os; os.kill(os.getpid(), 9)'\n"
            "subprocess.run([sys.executable, '-c', end], check=True)",
            "which it started, was ended by SIGKILL",
        ),
        ("while True:\n    x = 1", "was still computing when the time was over"),
    ],
    ids=["os._exit", "abort", "segmentation fault", "kill", "a killed child", "busy"],
)
def test_an_end_that_is_no_exception_has_a_reason_and_a_line(examined, text, said):
    status, words = examined(text)
    assert (status, said in words) == (3, True), words


@pytest.mark.replayed
def test_a_program_that_leaves_by_os_exit_with_status_0_has_finished(examined):
    status, words = examined("import os\nos._exit(0)")
    assert (status, words.startswith("nothing found")) == (0, True)


# Clusters


def hang_of(folder, text, limit):
    (folder / "train.py").write_text(textwrap.dedent(text))
    server = python_process.fork_server()
    program = ProgramSpec(("train.py",), folder, keras=3, limit=limit, fork_server=server)
    (finding,) = plan.examine(program, [1]).findings
    return finding.mode, blame.code_at(finding.file, finding.line), str(finding.message)


UNEQUAL = """
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    task = resolver.task_id if resolver and resolver.task_id else 0
    with strategy.scope():
        weight = tf.Variable(1.0)

    @tf.function
    def step():
        add = lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(weight))
        return strategy.run(add)

    for _ in range(3 - task):
        total = step()
"""

ALONE = """
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        count = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    checkpoint = tf.train.Checkpoint(count=count)
    resolver = strategy.cluster_resolver
    if not resolver or not resolver.task_id:
        checkpoint.write("chief")
"""

NOBODY_THERE = """
    import json, os
    import tensorflow as tf

    there, nobody = "127.0.0.1:20013", "127.0.0.1:20017"
    task = {"type": "worker", "index": 0}
    config = {"cluster": {"worker": [there, nobody]}, "task": task}
    os.environ["TF_CONFIG"] = json.dumps(config)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
"""


@pytest.mark.replayed
@pytest.mark.parametrize("steps, left, waits", [("3 - task", 1, 0), ("2 + task", 0, 1)])
def test_a_worker_that_leaves_before_the_others_is_fm59(tmp_path, steps, left, waits):
    mode, code, message = hang_of(tmp_path, UNEQUAL.replace("3 - task", steps), 15)
    assert (mode, code) == ("fm59", f"for _ in range({steps}):")
    waiting = "waits in an operation of TensorFlow at line 16, after 2 steps"
    assert message.startswith(f"worker {waits} {waiting}")
    assert f"worker {left} has ended after 2 steps" in message


@pytest.mark.replayed
@pytest.mark.parametrize("line", ['checkpoint.write("chief")', "print(count.numpy())"])
def test_a_chief_that_saves_or_reads_alone_is_fm47(tmp_path, line):
    text = ALONE.replace('checkpoint.write("chief")', line)
    mode, code, message = hang_of(tmp_path, text, 15)
    assert (mode, code) == ("fm47", line)
    assert "worker 1 has ended" in message


@pytest.mark.replayed
def test_a_task_that_does_not_answer_is_named(tmp_path):
    mode, code, message = hang_of(tmp_path, NOBODY_THERE, 15)
    assert (mode, code) == ("hangs", "strategy = tf.distribute.MultiWorkerMirroredStrategy()")
    assert message.endswith("; worker 1 (127.0.0.1:20017) does not answer")


# Without processes


WRITTEN = """\
Thread 0x00007f01 (most recent call first):
  File "/lib/queue.py", line 180 in get

Current thread 0x00007f00 [MainThread] (most recent call first):
  File "/lib/threading.py", line 327 in wait
  File "/program/train.py", line 7 in main
"""


def test_stacks_are_read_main_thread_first():
    main, other = threads_in(WRITTEN)
    assert main.lines == (
        Frame("/lib/threading.py", 327, "wait"),
        Frame("/program/train.py", 7, "main"),
    )
    assert other.lines == (Frame("/lib/queue.py", 180, "get"),)
    assert threads_in("") == ()


def waiting(line=7, busy=False, **fields):
    own = (Frame("/program/train.py", line, "main"),)
    stacks = (ProcessStacks(1, "python", (ThreadStack(own, own),), busy),)
    return run(outcome=Outcome.HANGS, stacks=stacks, **fields)


def test_what_computes_does_not_hang():
    assert [finding.line for finding in hangs.hangs([waiting()])] == [7]
    assert list(hangs.hangs([waiting(busy=True)])) == []
    assert list(hangs.hangs([run()])) == []
    assert list(hangs.hangs([waiting(role=Role.COMPARED)])) == []


def test_workers_that_wait_at_different_lines_are_all_named():
    tasks = [
        waiting(7, role=Role.TASK, task="worker 0", steps=3),
        waiting(9, role=Role.TASK, task="worker 1", steps=2),
    ]
    (finding,) = hangs.hangs(tasks)
    assert str(finding.message) == (
        "worker 0 waits at line 7, after 3 steps; worker 1 waits at line 9, after 2 steps; "
        "they are not at the same step"
    )


def test_addresses_elsewhere_are_not_asked():
    config = {"cluster": {"worker": ["192.0.2.1:1", "127.0.0.1:1"]}}
    requested = hangs.ClusterStrategyRequested((), "multi_worker", json.dumps(config))
    assert hangs.silent_addresses(run(requested)) == ["worker 1 (127.0.0.1:1)"]
    assert hangs.silent_addresses(run(requested, task="worker 0")) == []


def test_a_description_of_a_cluster_that_is_none_has_no_addresses():
    for config in ({"task": None, "cluster": {"worker": ["127.0.0.1:1"]}}, {"cluster": 3}, []):
        requested = hangs.ClusterStrategyRequested((), "multi_worker", json.dumps(config))
        assert hangs.silent_addresses(run(requested)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, busy",
    [
        ("while True: print('x' * 99, flush=True)", True),
        ("while True: time.sleep(0.3); print('still waiting', flush=True)", False),
    ],
)
def test_a_program_that_waits_for_the_reader_of_its_output_is_busy(program, busy):
    command = [sys.executable, "-S", "-c", f"import time\n{program}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:

        def read_slowly():
            while process.stdout.read(4096):
                time.sleep(0.05)

        reader = threading.Thread(target=read_slowly)
        reader.start()
        time.sleep(0.5)
        seen = is_busy(process.pid)
        process.kill()
        reader.join()
    assert seen is busy
