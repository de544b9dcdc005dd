"""Real strategies with real replicas: in this process on virtual devices, and in processes of their own on loopback."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kernels import runs, until
from short_waits import shorten
from strategy_clinic import Setup, build_strategy, runner
from strategy_clinic.base.errors import Unavailable
from strategy_clinic.processes import cluster
from strategy_clinic.programs.run import Job, run_program, run_programs
from strategy_clinic.setups import strategies

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

ROOT = Path(cluster.__file__).parents[2]
HERE = [row for row in strategies.ROWS if not row.tasks and not row.missing()]


LINES = """import tensorflow as tf

strategy = tf.distribute.get_strategy()
"""
# Each replica contributes 1; a variable made in scope takes a step, and every copy of it is the same afterwards.
STEP = (
    LINES
    + """
with strategy.scope():
    variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)


@tf.function
def train_step():
    def step():
        variable.assign_add(tf.constant(1.0))
        return tf.constant(1.0)

    return strategy.reduce("SUM", strategy.run(step), axis=None)


print("replicas:", int(train_step()), strategy.num_replicas_in_sync)
values = getattr(variable, "values", [variable])
print({int(value) - strategy.num_replicas_in_sync for value in values})
"""
)
KERAS = "import tensorflow as tf\n\nprint(tf.keras.Model.__module__.split('.')[0])\n"


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.name)
def test_a_program_on_every_number_of_devices(row):
    runs = run_programs([Job(STEP, Setup(row.name, count)) for count in row.counts])
    assert [run.error for run in runs] == [None] * len(runs)
    assert [run.printed for run in runs] == [
        f"replicas: {count} {count}\n{{1}}\n" for count in row.counts
    ]


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.name)
def test_a_kernel_builds_what_a_program_does(row):
    for count in row.counts:
        assert build_strategy(Setup(row.name, count)).num_replicas_in_sync == count


def test_device_counts_go_back_and_forth_in_one_kernel():
    import tensorflow as tf

    for count in (2, 4, 1, 8, 2):
        strategy = build_strategy(Setup("mirrored", count))
        values = runner(strategy)(lambda: tf.constant(1.0))
        assert float(strategy.reduce("SUM", values, axis=None)) == count


@pytest.fixture
def short_waits():
    """The patches of notebooks on Colab, for one test."""
    import tensorflow as tf

    owners = (tf.compat.v1.train.Coordinator, "join"), (tf.data.Dataset, "_apply_debug_options")
    assert not any(hasattr(getattr(*owner), "__wrapped__") for owner in owners)
    shorten()
    yield
    for owner in owners:
        setattr(*owner, getattr(*owner).__wrapped__)


def test_a_run_is_over_with_the_last_of_its_replicas(short_waits):
    """Where a thread of a replica is not over at the first look, TensorFlow's next one is a second later."""
    import tensorflow as tf

    coordinator, looks = tf.compat.v1.train.Coordinator(), []
    coordinator.wait_for_stop = looks.append
    join = type(coordinator).join
    for waited, looked in ((join, False), (join.__wrapped__, True)):
        replica = threading.Thread(target=time.sleep, args=(0.05,))
        replica.start()
        waited(coordinator, [replica])
        assert bool(looks) is looked and not replica.is_alive()


def test_no_iterator_on_any_device_is_tuned(short_waits, monkeypatch):
    """Of all datasets that are iterated, those of each device too; who asks for tuning by name gets it."""
    import tensorflow as tf

    datasets, applied = [], tf.data.Dataset._apply_debug_options

    def recorded(dataset):
        datasets.append(applied(dataset))
        return datasets[-1]

    monkeypatch.setattr(tf.data.Dataset, "_apply_debug_options", recorded)
    strategy = build_strategy(Setup("mirrored", 2))
    list(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2)))
    assert len(datasets) > 1 and {each.options().autotune.enabled for each in datasets} == {False}
    asked = tf.data.Options()
    asked.autotune.enabled = True
    list(tf.data.Dataset.range(1).with_options(asked))
    assert datasets[-1].options().autotune.enabled is True


def test_where_tasks_listen_is_given_to_nobody_else(monkeypatch):
    monkeypatch.setattr(cluster, "PORTS", range(20_000, 20_004))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 20_002))
        ports = cluster.free_ports(3)
    assert sorted(ports) == [20_000, 20_001, 20_003]
    monkeypatch.undo()
    found = cluster.addresses_for({"chief": 1, "worker": 3})
    assert {job: len(set(each)) for job, each in found.items()} == {"chief": 1, "worker": 3}
    random.seed(1)
    first = cluster.free_ports(9)
    random.seed(1)  # as another notebook does
    assert cluster.free_ports(9) != first


def test_two_workers_are_two_replicas():
    run = run_program(Job(STEP, Setup("multi_worker", 2)))
    assert (run.printed, run.error) == ("replicas: 2 2\n{1}\n", None)


def test_a_parameter_server_holds_the_variables():
    program = LINES + "with strategy.scope():\n    variable = tf.Variable(1.0)\n"
    run = run_program(Job(program, Setup("parameter_server", 2), ("variable",)))
    assert run.error is None and run.observations == {"variable": {"Variable 0": ["ps 0 CPU:0"]}}


def test_the_other_keras_runs_beside_this_one():
    runs = run_programs([Job(KERAS, Setup("default", 1, keras=keras)) for keras in (2, 3)])
    assert [run.printed for run in runs] == ["tf_keras\n", "keras\n"]


def test_a_dying_worker_is_a_verdict():
    program = "import os\nimport json\n\nos._exit(7)\n"
    run = run_program(Job(program, Setup("multi_worker", 2)))
    assert isinstance(run.error, ChildProcessError) and "status 7" in str(run.error)


def test_a_hanging_worker_is_a_verdict_and_leaves_nothing_behind():
    program = "import time\n\ntime.sleep(600)\n"
    run = run_program(Job(program, Setup("multi_worker", 2), seconds=1))  # twice
    assert isinstance(run.error, TimeoutError) and "1 second" in str(run.error)
    assert children_of(os.getpid()) == []


def test_programs_end_with_their_notebook(tmp_path):
    script = (
        "from strategy_clinic import Setup\nfrom strategy_clinic.programs.run import Job, run_program\n"
        "run_program(Job('import time; time.sleep(600)', Setup('multi_worker', 2)))"
    )
    environment = os.environ | {"CLINIC_COLD": "1", "PYTHONPATH": str(ROOT)}
    notebook = subprocess.Popen([sys.executable, "-c", script], env=environment)
    programs_seen = until(
        lambda: len(children_of(notebook.pid)) == 2 and children_of(notebook.pid), 30
    )
    notebook.send_signal(signal.SIGKILL)
    notebook.wait()
    assert until(lambda: not any(runs(pid) for pid in programs_seen), 30)


def children_of(pid: int) -> list[int]:
    import psutil

    return [
        child.pid
        for child in psutil.Process(pid).children()
        if child.status() != psutil.STATUS_ZOMBIE
        and "strategy_clinic.programs.child" in child.cmdline()
    ]


@pytest.mark.parametrize(
    "row", [row for row in strategies.ROWS if row.missing()], ids=lambda row: row.name
)
def test_what_is_unavailable_has_a_reason_and_needs_it(row):
    """The reason is a sentence, and building really fails: an exemption that is no longer needed is an error."""
    setup = Setup(row.name, row.counts[-1])
    with pytest.raises(Unavailable, match=row.name):
        build_strategy(setup)
    assert len(row.missing().split()) > 5
    script = (
        "from strategy_clinic.setups import runtime, strategies; runtime.start_tensorflow(); "
        f"print('ready'); strategies.{row.build.__name__}(8)"
    )
    built = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert built.stdout == "ready\n" and built.returncode != 0


def test_what_is_unavailable_is_not_run():
    run = run_program(Job(STEP, Setup("tpu", 8)))
    assert isinstance(run.error, Unavailable) and "tpu is unavailable" in str(run.error)
