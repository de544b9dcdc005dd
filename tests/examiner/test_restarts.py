"""Programs that are killed after their first checkpoint and started again, as all tasks of a cluster, in real processes."""

import textwrap

import pytest
from recorded import AS_A_TASK, run
from strategy_clinic.examiner import blame
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.moments import moments_of
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.examiner.runs import cluster
from strategy_clinic.examiner.runs.plan import Plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import Owner, Saved, VariableMade
from strategy_clinic.processes import python_process
from thorough import thorough

pytestmark = [pytest.mark.slow, pytest.mark.live]


@pytest.fixture
def sandbox_of(tmp_path):
    """Writes a program, and makes a sandbox for it."""

    def write(text):
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        server = python_process.fork_server()
        program = ProgramSpec(("train.py",), tmp_path, keras=3, limit=240, fork_server=server)
        return Sandbox(program)

    return write


def examined_restart(sandbox, strategy):
    """Restarts a program that was seen to need a cluster; returns the examination and what it found."""
    plan = Plan(sandbox)
    plan.cluster, plan.recordings = strategy, [run(task="chief 0")]
    first = plan.recordings[0]
    plan.restart(first, moments_of(first))
    examination = plan.result(diagnose(Runs(plan.recordings), plan.follow_up))
    found = [
        (finding.mode, blame.code_at(finding.file, finding.line))
        for finding in examination.findings
    ]
    return examination, found


IN_TWO_WORKERS = """
    import json, os
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(1.0)
        rate = tf.Variable(1.0, trainable=False)
    checkpoint = tf.train.Checkpoint(weight=weight)
    task = json.loads(os.environ.get("TF_CONFIG", '{"task": {"index": 0}}'))["task"]["index"]
    manager = tf.train.CheckpointManager(checkpoint, f"saved_by_{task}", max_to_keep=1)
    checkpoint.restore(manager.latest_checkpoint)
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build([weight])

    @tf.function
    def step():
        strategy.run(lambda: optimizer.apply_gradients([(rate * weight, weight)]))

    for epoch in range(2):
        step()
        rate.assign(rate / 2)
        manager.save()
"""


@pytest.mark.thorough
def test_what_a_second_start_of_two_workers_misses(sandbox_of):
    with sandbox_of(IN_TWO_WORKERS) as sandbox:
        examination, found = examined_restart(sandbox, "multi_worker")
    restarted = examination.recordings[-1]
    assert (restarted.role, restarted.finished) == (Role.RESTARTED, True)
    assert examination.notes == []
    assert found == [("fm05", "checkpoint = tf.train.Checkpoint(weight=weight)")]


WITH_SERVERS = f"""
{AS_A_TASK}
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable([[1.0], [2.0]])
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build([weight])
        epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpoint = tf.train.Checkpoint(weight=weight, optimizer=optimizer, epoch=epoch)
    manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=1)
    checkpoint.restore(manager.latest_checkpoint)

    @tf.function
    def step():
        strategy.run(lambda: optimizer.apply_gradients([(1.0 * weight, weight)]))

    while epoch.numpy() < 3:
        coordinator.schedule(step)
        coordinator.join()
        epoch.assign_add(1)
        manager.save()
"""


@pytest.mark.parametrize(
    "forgotten, expected",
    [
        thorough("", []),
        thorough(
            ", epoch=epoch",
            [("fm05", "checkpoint = tf.train.Checkpoint(weight=weight, optimizer=optimizer)")],
        ),
        (
            " optimizer=optimizer,",
            [("fm29", "checkpoint = tf.train.Checkpoint(weight=weight, epoch=epoch)")],
        ),
    ],
    ids=["nothing", "the number of the epoch", "the optimizer"],
)
def test_what_a_second_start_with_servers_misses(sandbox_of, forgotten, expected):
    text = textwrap.dedent(WITH_SERVERS).replace(forgotten, "", bool(forgotten))
    with sandbox_of(text) as sandbox:
        examination, found = examined_restart(sandbox, "parameter_server")
    restarted = examination.recordings[-1]
    assert (restarted.role, restarted.finished) == (Role.RESTARTED, True)
    assert examination.notes == []
    assert found == expected


IN_PARTS = f"""
{AS_A_TASK}
    halves = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=halves)
    with strategy.scope():
        whole, other = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
    for each in (*whole.variables, other):
        each.assign_add(tf.ones_like(each))
    tf.train.Checkpoint(whole=whole).save("saved/it")
"""


def test_a_checkpoint_holds_the_parts_of_what_servers_divide(sandbox_of):
    with sandbox_of(IN_PARTS) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        chief = cluster.run_tasks(sandbox, "parameter_server", Role.TASK)[0]
    made = [event.number for event in chief.of(VariableMade) if event.maker is Owner.USER]
    (save,) = chief.of(Saved)
    assert set(made[:2]) <= set(save.variables)
    assert [omitted.number for omitted in save.omitted] == made[-1:]
