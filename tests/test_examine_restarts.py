"""What a second start misses: on facts alone, where runs are stood in for by what they would show, and in real processes."""

import textwrap

import pytest
from examine_facts import (
    AS_A_TASK,
    OTHER,
    ended,
    fact,
    lost,
    modes,
    run,
    saved,
    state,
    updated,
    variable,
)
from strategy_clinic.examiner.recording import Examination
from strategy_clinic.examiner.rules import blame, findings
from strategy_clinic.examiner.runs import cluster, restarting
from strategy_clinic.examiner.runs.sandbox import Case, Workplace
from strategy_clinic.processes import python_process

COUNT = variable(1, maker="user", dtype="int64")


def stopped(count=COUNT, **changes):
    return run(count, saved(left=[lost(**changes)]))


def second(value, *facts):
    """A start that ends with this value of the one weight that it trains."""
    trained = updated(state=state(trains=[2]))
    weight, end = variable(2), ended(values={"2": [value, value]})
    return run(COUNT, weight, trained, saved(left=[lost()]), *facts, end)


def missed(first, restarted, *others):
    """The facts that are added, and the options of the runs that were asked."""
    asked, others = [], list(others)

    def once_more(*options):
        asked.append(options)
        return others.pop(0)

    return list(restarting.missing(first, restarted, once_more, lambda line: None)), asked


def test_a_count_without_which_the_training_is_another():
    facts, asked = missed(stopped(), second(1.0), second(2.0), second(1.0))
    assert asked == [("--begin", "1:2.0"), ()]
    assert modes(second(1.0, *facts)) == [("fm05", 7)]


@pytest.mark.parametrize(
    "others",
    [[second(1.0)], [second(2.0), second(3.0)]],
    ids=["the same with it", "never the same"],
)
def test_a_count_that_makes_no_difference_or_cannot_be_told(others):
    assert missed(stopped(), second(1.0), *others)[0] == []


@pytest.mark.parametrize(
    "first",
    [
        stopped(read=False),
        stopped(changed=False),
        stopped(now=None),
        stopped(COUNT | {"maker": "layer"}),
        stopped(COUNT | {"at": OTHER}),
    ],
    ids=["unread", "unchanged", "not one number", "of a layer", "made elsewhere"],
)
def test_nothing_is_asked_of_what_cannot_be_missed(first):
    assert missed(first, second(1.0)) == ([], [])


def test_a_start_knows_what_was_saved_before_and_by_which_optimizers():
    first = run(saved(optimizers=[state()]), fact("used", number=1))
    assert [
        (each["fact"], each["held"], each["optimizers"]) for each in restarting.of_before(first)
    ] == [("saved before", [], [state()])]


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


@pytest.mark.slow
def test_what_a_second_start_of_two_workers_misses(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(IN_TWO_WORKERS))
    program = Case(("train.py",), tmp_path, keras=3, limit=240, warm=python_process.fork_server())
    seen = Examination("train.py", [run(fact("cluster", strategy="multi_worker"))])
    restarting.try_restart(program, seen, lambda line: None)
    restarted = seen.runs[-1]
    (missed,) = restarted.of("missed")
    made_at = restarted.variable(missed["numbers"][0])["at"][0][1]
    assert (restarted.role, restarted.ended, seen.notes) == ("restarted", "finished", [])
    assert program.script.read_text().splitlines()[made_at - 1].startswith("    rate = ")


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "forgotten, found",
    [
        ("", []),
        (", epoch=epoch", [("fm05", "epoch = tf.Variable(0, dtype=tf.int64, trainable=False)")]),
        (
            " optimizer=optimizer,",
            [("fm29", "checkpoint = tf.train.Checkpoint(weight=weight, epoch=epoch)")],
        ),
    ],
    ids=["nothing", "the number of the epoch", "the optimizer"],
)
def test_what_a_second_start_with_servers_misses(tmp_path, forgotten, found):
    text = textwrap.dedent(WITH_SERVERS).replace(forgotten, "", bool(forgotten))
    (tmp_path / "train.py").write_text(text)
    program = Case(("train.py",), tmp_path, keras=3, limit=240, warm=python_process.fork_server())
    seen = Examination("train.py", [run(fact("cluster", strategy="parameter_server"))])
    restarting.try_restart(program, seen, lambda line: None)
    assert (seen.runs[-1].ended, seen.runs[-1].role, seen.notes) == ("finished", "restarted", [])
    told = findings.findings_of(seen.runs)
    assert [(each.mode, blame.code_at(each.file, each.line)) for each in told] == found


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


@pytest.mark.slow
def test_a_checkpoint_holds_the_parts_of_what_servers_divide(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(IN_PARTS))
    program = Case(("train.py",), tmp_path, keras=3, limit=240, warm=python_process.fork_server())
    with Workplace(program) as place:
        chief = cluster.run_tasks(place, "parameter_server")[0]
    made = [each["number"] for each in chief.of("variable") if each["maker"] == "user"]
    (save,) = chief.of("saved")
    assert set(made[:2]) <= set(save["held"])
    assert [each["number"] for each in save["left"]] == made[-1:]
