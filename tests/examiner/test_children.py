"""Programs that start processes: which of them is examined, and that the others are named. Some run in real processes."""

import json
import textwrap
from types import SimpleNamespace

import pytest
from recorded import LINE, ended, loaded, run, strategy, updated, variable
from strategy_clinic import cli
from strategy_clinic.examiner.findings import counted
from strategy_clinic.examiner.recording import Role, read_events
from strategy_clinic.examiner.runs import children, plan, process_stacks
from strategy_clinic.examiner.runs.children import ProcessEvents, joined, processes_of_run
from strategy_clinic.examiner.runs.process_stacks import Seen
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import (
    ChildStarted,
    ExceptionRaised,
    LookedFor,
    ObserverFailed,
    Outcome,
    Started,
)

RAISED = ExceptionRaised(LINE, "CalledProcessError", "CalledProcessError: train_one.py", ())
BEGAN = ChildStarted("python train_one.py")


def process(*events, **fields):
    return ProcessEvents((BEGAN, *events), **fields)


def program(*events):
    return ProcessEvents((Started(2), *events, ended()))


# Which process is examined


def test_the_only_process_that_trains_is_examined_with_what_the_first_says_of_the_program():
    looked = LookedFor(LINE, "ckpt", False)
    first = program(variable(1), looked, RAISED)
    one = process(strategy(), variable(1), updated(), ended())
    found = joined([first, process(), one, process(ObserverFailed("reads", "KeyError: 1"))])
    assert found.events[:2] == (looked, RAISED)
    assert found.events[2:-1] == one.events
    assert found.events[-1] == ObserverFailed("reads", "KeyError: 1")
    assert not found.raised and found.left_out == ()


def test_a_process_that_prepares_data_or_only_makes_the_strategy_again_is_not_left_out():
    first = program(strategy(), updated())
    assert joined([first, process(), process(strategy())]) == (first.events, False, ())


@pytest.mark.parametrize(
    "first, others, chosen, left_out",
    [
        ((updated(),), [(updated(),)], 0, ["the process 'python train_one.py' trains"]),
        ((updated(),), [(loaded(),)], 0, ["the process 'python train_one.py' works with a model"]),
        ((), [(updated(),), (updated(),)], 0, ["the process 'python train_one.py' trains"] * 2),
        ((), [(strategy(),), (strategy(),)], 0, ["the process 'python train_one.py' makes"] * 2),
        ((loaded(),), [(updated(),)], 1, ["its first process works with a model"]),
        ((), [(strategy(),)], 1, []),
        ((strategy(),), [(updated(),)], 1, []),
    ],
)
def test_what_is_left_out_is_named(first, others, chosen, left_out):
    processes = [program(*first), *(process(*each) for each in others)]
    found = joined(processes)
    assert set(processes[chosen].events) <= set(found.events)
    assert len(found.left_out) == len(left_out)
    assert all(map(str.startswith, found.left_out, left_out)), found.left_out


def test_processes_of_multiprocessing_have_one_name_whatever_their_descriptors():
    command = "python -c from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle={})"
    several = [ProcessEvents((ChildStarted(command.format(n)), updated())) for n in (7, 9)]
    assert len(set(joined([program(), *several]).left_out)) == 1
    assert len(joined([program(), *several]).left_out) == 2


def test_a_process_that_raised_has_raised_although_the_program_went_on():
    assert joined([program(), process(updated(), ended(outcome=Outcome.RAISED))]).raised


# Files


def write(path, *events):
    path.write_text("".join(event.to_json() + "\n" for event in events))


def test_a_forked_process_shares_the_events_until_then(tmp_path):
    path, made, later = tmp_path / "events-1.jsonl", variable(1), variable(2)
    write(path, Started(2), made, later, ended())
    write(tmp_path / "events-1.jsonl.child-70", ChildStarted("", path.name, 2), updated())
    write(tmp_path / "events-1.jsonl.child-71", ChildStarted("", f"{path.name}.child-70", 2))
    write(tmp_path / "events-1.jsonl.child-70.steps")
    write(tmp_path / "events-11.jsonl.child-70", ChildStarted("", path.name, 2))
    first, child, grandchild = processes_of_run(path, read_events)
    assert (first.before, first.pid) == ((), 0)
    assert (child.before, child.pid) == ((Started(2), made), 70)
    assert grandchild.before == (Started(2), made, *child.events)
    events = joined([first, child, grandchild]).events
    assert later not in events
    assert events[:2] == (Started(2), made) and events[-1] == ended()


def test_a_program_that_has_become_another_one_ends_as_that_one():
    last = ended(status=3)
    processes = [ProcessEvents((Started(2),)), process(last, pid=70), process(ended(), pid=71)]
    assert children.ended_of(processes, 70) is last
    assert children.ended_of([program()], 70) == ended()


# Processes without an observer


@pytest.mark.parametrize(
    "library, caught, is_unobserved",
    [
        ("/site-packages/tensorflow/libtensorflow_cc.so.2", 0, True),
        ("/site-packages/tensorflow/python/_pywrap_tensorflow_internal.so", 0, True),
        ("/site-packages/tensorflow/libtensorflow_cc.so.2", 1 << children.ASKING - 1, False),
        ("/home/me/tensorflow/lib/libtorch.so", 0, False),
    ],
)
def test_a_process_with_tensorflow_in_memory_has_an_observer(
    tmp_path, monkeypatch, library, caught, is_unobserved
):
    place = tmp_path / "70"
    place.mkdir()
    (place / "maps").write_text(f"7f00-7f01 r-xp 00000000 08:01 17   {library}\n")
    (place / "status").write_text(f"SigCgt:\t{caught:016x}\n")
    monkeypatch.setattr(children, "PROC", tmp_path)
    monkeypatch.setattr(process_stacks, "PROC", tmp_path)
    assert children.is_unobserved(Seen(70, 1, 1, "S", 0)) is is_unobserved
    assert not children.is_unobserved(Seen(71, 1, 1, "S", 0))


def test_a_process_is_named_if_it_is_seen_twice(monkeypatch):
    running = SimpleNamespace(process=SimpleNamespace(pid=70), unobserved={})
    monkeypatch.setattr(
        children, "processes_of", lambda _: [Seen(n, 1, 1, "S", 0) for n in (70, 71)]
    )
    monkeypatch.setattr(children, "is_unobserved", lambda _: True)
    monkeypatch.setattr(children, "command_of", lambda pid: f"python {pid}.py")
    seen = children.look(running, set())
    assert (seen, running.unobserved) == ({71}, {})
    children.look(running, seen)
    assert running.unobserved == {71: "python 71.py"}
    (said,) = children.unobserved_in_words(running.unobserved.values())
    assert said == "the process 'python 71.py' has imported TensorFlow, and could not be observed"


def test_processes_are_looked_for_until_the_program_ends(monkeypatch):
    class Program:
        looked = 0

        @property
        def returncode(self):
            return 0 if self.looked == 3 else None

    running = SimpleNamespace(process=Program())

    def look(running, suspected):
        running.process.looked += 1
        return suspected

    monkeypatch.setattr(children, "look", look)
    monkeypatch.setattr(children, "BETWEEN_LOOKS", 0)
    children.look_on(running)
    assert running.process.looked == 3


def test_many_processes_are_counted():
    several = run(unseen=tuple(f"process {n}" for n in range(9)))
    said = plan.unseen_processes([several, several])
    assert said == [*(f"process {n}" for n in range(5)), "so it is with 4 other processes"]


# Real processes

STARTS = """
    import json, multiprocessing, os, subprocess, sys

    def work():
        open(f"{multiprocessing.current_process().name}-{'strategy_clinic' in sys.modules}", "w").close()

    CODE = "import sys; open(sys.argv[1] + str('strategy_clinic' in sys.modules), 'w').close()"

    if __name__ == "__main__":
        for name in ("fork", "spawn", "forkserver"):
            process = multiprocessing.get_context(name).Process(target=work, name=name)
            process.start()
            process.join()
        os.environ["PYTHONPATH"] = "mine"
        process = multiprocessing.get_context("spawn").Process(target=work, name="later")
        process.start()
        process.join()
        os.environ["PYTHONPATH"] = "mine"
        subprocess.run([sys.executable, "-c", CODE, "changed-"], check=True)
        subprocess.run([sys.executable, "-c", CODE, "own-"], env={"PYTHONPATH": "mine"}, check=True)
        del os.environ["PYTHONPATH"]
        os.system(f'{sys.executable} -c "{CODE}" shell-')
        subprocess.run([sys.executable, "-I", "-c", CODE, "isolated-"], check=True)
        print(json.dumps([os.listdir(), open("theirs").read()]))
"""


@pytest.mark.slow
def test_every_python_that_a_program_starts_is_observed_and_runs_the_readers_sitecustomize(
    tmp_path,
):
    folder = tmp_path / "program"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "sitecustomize.py").write_text("open('theirs', 'a').write('x')\n")
    (folder / "train.py").write_text(textwrap.dedent(STARTS))
    with Sandbox(ProgramSpec(("train.py",), folder)) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        recording = sandbox.run(Role.WATCHED, 1)
    assert recording.outcome is Outcome.FINISHED, recording.output
    observed = ("fork", "spawn", "forkserver", "later", "changed", "own", "shell")
    names, theirs = json.loads(recording.output.splitlines()[-1])
    made = {name for name in names if "-" in name}
    assert made == {*(f"{name}-True" for name in observed), "isolated-False"}
    assert theirs == "xxx"


TRAINS = """
    import multiprocessing, subprocess, sys

    import numpy as np

    def prepare(n):
        return np.arange(n).sum()

    def train():
        import tensorflow as tf

        strategy = tf.distribute.MirroredStrategy()
        with strategy.scope():
            weight = tf.Variable([1.0, 2.0, 3.0])
            optimizer = tf.keras.optimizers.SGD(0.1)
            optimizer.build([weight])

        def step(batch):
            with tf.GradientTape() as tape:
                errors = tf.square(tf.tensordot(batch, weight, 1) - 1.0)
                loss = tf.reduce_mean(errors)
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

        numbers = tf.data.Dataset.from_tensor_slices(tf.random.stateless_normal((32, 3), (1, 2))).batch(8)
        for batch in strategy.experimental_distribute_dataset(numbers):
            strategy.run(tf.function(step), args=(batch,))

    if __name__ == "__main__":
        subprocess.run(["true"])
        spawn = multiprocessing.get_context("spawn")
        with spawn.Pool(1) as pool:
            pool.map(prepare, [1, 2])
        {starts}
"""
ONE = "process = spawn.Process(target=train); process.start(); process.join()"
ISOLATED = 'subprocess.run([sys.executable, "-I", "-c", "import tensorflow, time; time.sleep(2)"])'


@pytest.mark.replayed
@pytest.mark.parametrize(
    "starts, status, said",
    [
        (ONE, 1, "train.py:21  fm37"),
        (f"{ONE}; {ONE}", 4, "not seen: a process of multiprocessing trains, and was not examined"),
        (ISOLATED, 4, "has imported TensorFlow, and could not be observed"),
    ],
    ids=["one", "two", "isolated"],
)
def test_a_program_that_trains_in_processes(tmp_path, monkeypatch, capfd, starts, status, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINS).replace("{starts}", starts))
    assert cli.main(["examine", "--json", "report.json", "train.py"]) == status
    words = capfd.readouterr().out
    assert said in words
    written = json.loads((tmp_path / "report.json").read_text())
    assert bool(written["unseen"]) == (status == 4)
    assert f"the program ran {counted(len(written['runs']), 'time')}" in words
