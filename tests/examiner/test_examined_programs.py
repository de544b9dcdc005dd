"""The examiner on programs of its own: real runs, each in its own process.

Some start in an interpreter of their own, as at a terminal; the others are forked, as those of a notebook are, which costs less.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from functools import partial

import pytest
from recorded import AS_A_TASK
from strategy_clinic import cli
from strategy_clinic.base import files
from strategy_clinic.examiner.frontends import command
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs import cluster
from strategy_clinic.processes import python_process

pytestmark = pytest.mark.replayed
live = pytest.mark.live

TRAINING = """
    import numpy as np
    import tensorflow as tf

    import helpers  # a module of the program's own

    BATCH = 16
    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential(layers)
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
        mean = tf.Variable(tf.zeros(3), aggregation=tf.VariableAggregation.MEAN)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, mean=mean)
    manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)

    def loss_of(errors):
        return tf.nn.compute_average_loss(errors, global_batch_size=BATCH)

    def step(batch):
        mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(batch, axis=0))
        with tf.GradientTape() as tape:
            loss = loss_of(tf.square(model(batch - mean)[:, 0] - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def train(batch):
        return strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)

    numbers = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(numbers).batch(BATCH)
    for epoch in range(2):
        for batch in strategy.experimental_distribute_dataset(dataset):
            loss = train(batch)
        manager.save()
    print(helpers.word, float(loss))
"""


@pytest.fixture
def examined(tmp_path, monkeypatch, capfd):
    """Writes a program, examines it, and gives the exit status and the report."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helpers.py").write_text("word = 'mine'\n")

    def examine(text, *options, arguments=()):
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        before = sorted(os.listdir(tmp_path))
        program = ["train.py", *arguments]
        status = cli.main(["examine", "--json", "-", "--limit", "240", *options, *program])
        assert sorted(os.listdir(tmp_path)) == before
        return status, json.loads(capfd.readouterr().out)

    return examine


@pytest.fixture
def forked(examined, monkeypatch):
    """The same, except that programs are forked from a process that has imported TensorFlow."""
    spec = partial(command.ProgramSpec, fork_server=python_process.fork_server())
    monkeypatch.setattr(command, "ProgramSpec", spec)
    return examined


def found(told):
    return [(each["mode"], each["code"]) for each in told["findings"]]


def kept(told):
    """The runs that are compared, or restarted: others only show something about these."""
    roles = {role.value for role in (Role.WATCHED, Role.COMPARED, Role.TASK, Role.RESTARTED)}
    return [run for run in told["runs"] if run["role"] in roles and not run["discarded"]]


@live
@pytest.mark.slow
@pytest.mark.thorough
def test_a_healthy_program_and_its_folder_are_left_in_peace(forked):
    status, told = forked(TRAINING, "--restart")
    assert (status, told["findings"]) == (0, [])
    assert [each["ended"] for each in kept(told)] == ["finished"] * 5


def test_a_mean_over_each_replicas_part(forked):
    loss = "tf.nn.compute_average_loss(errors, global_batch_size=BATCH)"
    status, told = forked(TRAINING.replace(loss, "tf.reduce_mean(errors)"))
    assert (status, [mode for mode, _ in found(told)]) == (1, ["fm37"])


def test_a_variable_that_the_checkpoint_lacks(forked):
    status, told = forked(TRAINING.replace(", mean=mean)", ")"), "--devices", "2")
    line = "checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)"
    assert (status, found(told)) == (1, [("fm05", line)])


def test_a_restart_that_looks_elsewhere(forked):
    elsewhere = 'tf.train.latest_checkpoint("checkpoint")'
    text = TRAINING.replace("restore(manager.latest_checkpoint)", f"restore({elsewhere})")
    status, told = forked(text, "--devices", "2", "--restart")
    assert (status, found(told)) == (1, [("fm08", f"checkpoint.restore({elsewhere})")])


ON_A_TPU = """
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    assert isinstance(strategy, tf.distribute.TPUStrategy)

    def step():
        return tf.constant(1.0)

    run = tf.function(lambda: strategy.reduce("SUM", strategy.run(step), axis=None))
    assert float(run()) == strategy.num_replicas_in_sync == 8
"""


def test_a_program_that_asks_for_a_tpu_gets_the_described_one(examined):
    status, told = examined(ON_A_TPU, "--devices", "2")
    assert (status, told["findings"]) == (0, [])


def test_what_a_tpu_refuses_is_named_on_its_line(forked):
    status, told = forked(f"{ON_A_TPU}\n    strategy.run(step)\n", "--devices", "2")
    assert (status, found(told)) == (1, [("fm16", "strategy.run(step)")])


IN_TWO_WORKERS = """
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(1.0)
    seen = tf.Variable(0.0)

    @tf.function
    def step():
        strategy.run(lambda: seen.assign_add(weight))

    step()
    assert strategy.num_replicas_in_sync in (1, 2)
"""


def test_a_program_that_asks_for_workers_runs_in_two(examined):
    status, told = examined(IN_TWO_WORKERS, "--devices", "1")
    assert (status, found(told)) == (1, [("fm23", "seen = tf.Variable(0.0)")])
    tasks = [each for each in kept(told) if each["role"] == Role.TASK.value]
    assert [(each["ended"], each["devices"]) for each in tasks] == [("finished", 2)] * 2


BY_ARGUMENT = IN_TWO_WORKERS.replace(
    "    import tensorflow as tf\n",
    """
    import json, os, sys
    import tensorflow as tf

    workers = [f"{sys.argv[2]}:20{port}" for port in (139, 147)]
    task = {"type": "worker", "index": int(sys.argv[1].partition("=")[2])}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
""",
    1,
)


def test_a_program_that_is_told_its_task_by_an_argument_runs_in_two(examined):
    """Its first run would wait for the other worker."""
    status, told = examined(BY_ARGUMENT, "--devices", "1", arguments=["--task=0", "localhost"])
    assert (status, found(told)) == (1, [("fm23", "seen = tf.Variable(0.0)")])
    ended = [(each["role"], each["ended"]) for each in kept(told)]
    assert ended == [("watched", "stopped")] + [(Role.TASK.value, "finished")] * 2


def test_a_cluster_of_other_machines_is_not_waited_for(examined):
    status, told = examined(BY_ARGUMENT, "--devices", "1", arguments=["--task=0", "10.0.0.7"])
    assert (status, told["findings"], told["unseen"]) == (4, [], [cluster.ELSEWHERE])


WITH_SERVERS = f"""
{AS_A_TASK}
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        count = tf.Variable(0.0)
    add = tf.function(lambda: count.assign_add(1.0))
    for _ in range(4):
        coordinator.schedule(add)
    coordinator.join()
    assert count.numpy() == 4
"""


def test_a_program_that_asks_for_servers_gets_them(forked):
    status, told = forked(WITH_SERVERS, "--devices", "1")
    assert (status, told["findings"]) == (0, [])
    tasks = [each for each in kept(told) if each["role"] == Role.TASK.value]
    assert [each["ended"] for each in tasks] == ["finished"] + ["stopped"] * 3


@pytest.mark.parametrize(
    "text, ended",
    [
        ("input()", "raised"),
        ("import sys; sys.exit(7)", "exited"),
        ("import os; os._exit(4)", "exited"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed"),
    ],
)
def test_a_program_that_fails_in_its_own_way(examined, text, ended):
    status, told = examined(text)
    assert (status, told["runs"][0]["ended"]) == (3, ended)


ROGUE = """
    import os, shutil, subprocess, sys

    if os.fork() == 0:
        sys.exit(3)  # a child has a story of its own
    os.wait()
    subprocess.Popen(["sleep", "60"], start_new_session=True)  # holds the output, and is in no group of ours
    open("here", "w").close()
    open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "there"), "w").close()
    assert open("../beside").read() == "data"
    here = os.getcwd()
    os.chdir("/")
    shutil.rmtree(here)
    print("x" * (1 << 22))
"""


@live
@pytest.mark.slow
def test_a_program_that_forks_leaves_its_folder_and_deletes_it(examined, tmp_path):
    (tmp_path.parent / "beside").write_text("data")
    os.mkfifo(tmp_path / "pipe")  # which nobody writes into
    status, told = examined(ROGUE)
    assert (status, told["runs"][0]["ended"]) == (0, "finished")
    assert told["runs"][0]["seconds"] < 30


PATCHED = """
    import tensorflow as tf

    tf.Variable.assign = lambda self, *_, **__: None
    tf.distribute.Strategy.run = lambda self, function, args=(), **_: function(*args)
    tf.GradientTape.gradient = lambda self, *_, **__: [None, 3]
    tf.function = lambda function=None, **_: function or (lambda other: other)
    tf.keras.Model.__call__ = lambda self, *_: "said"
    tf.keras.optimizers.Optimizer.apply_gradients = lambda self: None
    tf.train.Checkpoint.save = lambda self: 7

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    assert strategy.run(lambda: model(1)) == "said"
    tf.keras.optimizers.SGD().apply_gradients()
    assert tf.train.Checkpoint(model=model).save() == 7
"""


def test_a_program_that_makes_tensorflow_another(forked):
    status, told = forked(PATCHED, "--devices", "2")
    assert (status, told["findings"], told["runs"][0]["ended"]) == (0, [], "finished")


def test_a_program_that_never_ends(examined):
    status, told = examined("while True: print('x' * 99)", "--limit", "3")
    assert (status, told["runs"][0]["ended"]) == (3, "hangs")


TELLING = """
import os, socket, time
socket.create_connection(("localhost", {port})).send(str(os.getpid()).encode())
time.sleep(99)
"""


@live
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_examiner_ends_the_program_and_hears_of_it(number, tmp_path):
    """The program says by a connection that it has begun: nobody else sees what it writes into files."""
    listener = socket.create_server(("localhost", 0))
    listener.settimeout(60)
    (tmp_path / "train.py").write_text(TELLING.format(port=listener.getsockname()[1]))
    words = [sys.executable, "-m", "strategy_clinic", "examine", "train.py"]
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    places = os.environ | {"PYTHONPATH": str(files.PACKAGE.parent)}
    # Below `nohup` a process ignores the end of the terminal, and so does all that it starts.
    options["preexec_fn"] = lambda: signal.signal(number, signal.SIG_DFL)
    with subprocess.Popen(words, env=places, **options) as process:
        assert process.stderr.readline() == "running on 2 devices (watched) ...\n"
        with listener, listener.accept()[0] as connection:
            begun = int(connection.recv(100))
        process.send_signal(number)
        report, _ = process.communicate(timeout=20)
    assert "stopped before all runs were made" in report
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(begun, 0)


def test_a_program_that_never_trains(examined):
    status, told = examined("print('nothing')")
    assert (status, told["findings"]) == (0, [])
