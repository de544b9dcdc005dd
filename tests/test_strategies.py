"""Real strategies with real replicas: in this process on virtual devices, and in processes of their own on loopback."""

import linecache
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
from sessions import verdicts
from short_waits import shorten
from strategy_clinic import Proof, Setup, build_strategy, experiment, runner
from strategy_clinic.base.errors import Unavailable
from strategy_clinic.experiments import workers
from strategy_clinic.experiments.extract_source import cells_like
from strategy_clinic.setups import strategies

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

ROOT = Path(workers.__file__).parents[2]
HERE = [row for row in strategies.ROWS if not row.tasks and not row.missing()]
CLUSTERS = [row for row in strategies.ROWS if row.tasks]


@experiment
def sums_over_replicas(setup):
    """Each replica contributes 1; the sum is the number of replicas."""
    import tensorflow as tf

    strategy = build_strategy(setup)

    def one():
        return tf.constant(1.0)

    total = strategy.reduce("SUM", runner(strategy)(one), axis=None)
    return Proof("every replica took part", [total], [strategy.num_replicas_in_sync])


@experiment
def trains(setup):
    """A variable made in scope takes a step, and every copy of it is the same afterwards."""
    import tensorflow as tf
    from strategy_clinic import figures

    strategy = build_strategy(setup)
    with strategy.scope():
        variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)

    def step():
        variable.assign_add(tf.constant(1.0))

    strategy.run(tf.function(step))
    want = 1.0 + strategy.num_replicas_in_sync
    return Proof(
        "every copy was updated by every replica",
        figures.values_of(variable),
        [want] * len(figures.copies(variable)),
    )


@experiment
def raises(setup):
    raise KeyError("no such thing")


@experiment
def dies(setup):
    os._exit(7)


@experiment
def sleeps(setup):
    time.sleep(600)


@experiment
def names_keras(setup):
    import tensorflow as tf

    generation = 2 if tf.keras.Model.__module__.startswith("tf_keras") else 3
    return Proof("the process holds the Keras that was asked for", [generation], [setup.keras])


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.name)
def test_rows_of_this_process(row):
    for count in row.counts:
        setup = Setup(row.name, count)
        assert sums_over_replicas(setup).holds
        assert trains(setup).holds
        assert build_strategy(setup).num_replicas_in_sync == count


def test_device_counts_go_back_and_forth_in_one_process():
    for count in (2, 4, 1, 8, 2):
        assert sums_over_replicas(Setup("mirrored", count)).got == [count]


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
    monkeypatch.setattr(workers, "PORTS", range(20_000, 20_004))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 20_002))
        ports = workers.free_ports(3)
    assert sorted(ports) == [20_000, 20_001, 20_003]
    monkeypatch.undo()
    found = workers.addresses_for({"chief": 1, "worker": 3})
    assert {job: len(set(each)) for job, each in found.items()} == {"chief": 1, "worker": 3}
    random.seed(1)
    first = workers.free_ports(9)
    random.seed(1)  # as another notebook does
    assert workers.free_ports(9) != first


@pytest.mark.parametrize("row", CLUSTERS, ids=lambda row: row.name)
def test_rows_with_processes_of_their_own(row):
    setup = Setup(row.name, 2)
    assert workers.place_of(setup) == (row.name, 2, 3)
    assert trains(setup).holds


def test_two_workers_are_two_replicas():
    assert sums_over_replicas(Setup("multi_worker", 2)).got == [2.0]


def test_the_other_keras_runs_beside_this_one():
    setups = [Setup("default", 1, keras=keras) for keras in (2, 3)]
    found = verdicts({"generation": names_keras}, setups)
    assert [each.outcome for each in found] == ["works", "works"]


def test_an_error_comes_back_by_name_and_words():
    with pytest.raises(KeyError, match="no such thing"):
        raises(Setup("multi_worker", 2))


def test_a_dying_worker_is_a_verdict(monkeypatch):
    found = verdicts({"broken": dies}, [Setup("multi_worker", 2)])
    assert found[0].outcome == "crashes" and "status 7" in found[0].says


def test_a_hanging_worker_is_a_verdict_and_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(workers, "SECONDS", 8)
    found = verdicts({"broken": sleeps}, [Setup("multi_worker", 2)])
    assert found[0].outcome == "hangs" and "8 seconds" in found[0].says
    assert children_of(os.getpid()) == []


def test_workers_end_with_their_notebook(tmp_path):
    script = "import tests_of_workers as t; t.sleeps(t.Setup('multi_worker', 2))"
    (tmp_path / "tests_of_workers.py").write_text(
        "import time\nfrom strategy_clinic import Setup, experiment\n\n\n@experiment\ndef sleeps(setup):\n    time.sleep(600)\n"
    )
    environment = os.environ | {"CLINIC_COLD": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    notebook = subprocess.Popen([sys.executable, "-c", script], env=environment)
    workers_seen = until(
        lambda: len(children_of(notebook.pid)) == 2 and children_of(notebook.pid), 30
    )
    notebook.send_signal(signal.SIGKILL)
    notebook.wait()
    assert until(lambda: not any(runs(pid) for pid in workers_seen), 30)


def children_of(pid: int) -> list[int]:
    import psutil

    return [
        child.pid
        for child in psutil.Process(pid).children()
        if child.status() != psutil.STATUS_ZOMBIE
        and "strategy_clinic.experiments.workers" in child.cmdline()
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


def test_an_unavailable_verdict_carries_its_reason():
    found = verdicts({"broken": sums_over_replicas}, [Setup("tpu", 8)])
    assert found[0].outcome == "unavailable" and "tpu is unavailable" in found[0].says


CELLS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def cell(text):
    assert shell.run_cell(text).success
cell("from strategy_clinic import experiment; FACTOR = 2")
first = "def twice(x):\\n    return x * FACTOR\\n\\n\\n@experiment\\ndef run(setup):\\n    return twice(1)"
cell(first)
cell(first.replace("x * FACTOR", "x + x"))
cell("unrelated = open")
cell(first)
cell("FACTOR = 3")
cell("from strategy_clinic.experiments.extract_source import source_of; print(source_of([run]))")
"""


def test_what_travels_is_what_the_notebook_holds_now():
    """Edited cells, edited back, and constants changed since: the last state counts, and nothing unrelated comes along."""
    done = subprocess.run(
        [sys.executable, "-c", CELLS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == [
        "FACTOR = 3",
        "from strategy_clinic import experiment",
        "def twice(x):",
        "    return x * FACTOR",
        "@experiment",
        "def run(setup):",
        "    return twice(1)",
        "",
    ]


def test_a_cell_keeps_its_place_when_a_traceback_has_shown_it():
    """IPython 7 takes such a cell out of Python's table of sources, and puts it in again at the end."""
    names = [f"<ipython-input-{i}>" for i in (1, 2, 3)]
    for number, name in enumerate(names):
        linecache.cache[name] = (1, float(number), [f"cell {number}\n"], name)
    try:
        linecache.cache[names[0]] = linecache.cache.pop(names[0])
        assert [name for name in linecache.cache if name in names] == [*names[1:], names[0]]
        assert [name for name in cells_like(names[0]) if name in names] == names
    finally:
        for name in names:
            del linecache.cache[name]
