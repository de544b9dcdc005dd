"""How the devices of a machine add up: real processes on parts of a CPU, one that hangs, and which part is named."""

import os
import time
from types import SimpleNamespace

import pytest
from strategy_clinic.processes import reductions, request_reply
from strategy_clinic.processes.reductions import (
    ALONE,
    COPIES,
    DEFAULT,
    NCCL,
    NO_PEERS,
    TO_ONE,
    WAYS,
    Tried,
    Way,
)

HANGS = """
import os, sys, time
with open(os.environ["STARTED"], "w") as file:
    file.write(str(os.getpid()))
time.sleep(600)
"""
LIES = """
from strategy_clinic.processes import reduce_once
reduce_once.SIZE = 10
true_sum = reduce_once.reduce_once
import tensorflow as tf
fill = tf.fill
tf.fill = lambda shape, number: fill(shape, number * 2)
reduce_once.main()
"""


@pytest.fixture
def module(tmp_path):
    def written(name, source):
        (tmp_path / f"{name}.py").write_text(source)
        environment = {"PYTHONPATH": str(tmp_path), "STARTED": str(tmp_path / "started")}
        return Way(name, environment=environment, module=name)

    return written


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_hangs_is_killed_at_its_limit(module, tmp_path, monkeypatch):
    """By a clock that goes on as soon as the process has begun to hang."""
    started = tmp_path / "started"
    clock = SimpleNamespace(monotonic=lambda: 40 * is_whole(started), sleep=time.sleep)
    for waits in (reductions, request_reply):
        monkeypatch.setattr(waits, "time", clock)
    (tried,) = reductions.try_ways([module("way_that_hangs", HANGS)], "CPU", 2, limit=30)
    assert (tried.wrong, tried.seconds) == ("hangs: killed after 30 seconds", 40)
    assert not is_running(int(started.read_text()))


def is_whole(path) -> bool:
    return path.exists() and path.read_text() != ""


def test_what_ends_without_an_answer_says_why(module):
    (tried,) = reductions.try_ways([module("way_that_raises", "1 / 0")], "CPU", 2)
    assert tried.wrong.startswith("fails: ") and "ZeroDivisionError" in tried.wrong


@pytest.mark.slow
@pytest.mark.thorough
def test_parts_of_a_cpu_compute_alone_and_do_not_add_up_by_nccl():
    alone, by_nccl = reductions.try_ways((ALONE, NCCL), "CPU", 2)
    assert (alone.way, alone.wrong, by_nccl.way) == (ALONE, "", NCCL)
    assert by_nccl.wrong.startswith("fails: ")


@pytest.mark.slow
@pytest.mark.thorough
def test_parts_of_a_cpu_add_up_in_every_way_but_by_nccl():
    """NCCL is for GPUs: TensorFlow has no kernel of it for a CPU, so that this is a way that fails."""
    tried = {each.way: each.wrong for each in reductions.try_ways(WAYS, "CPU", 2)}
    failing = {way for way, wrong in tried.items() if wrong}
    assert failing == {NCCL, NO_PEERS}, tried
    assert all(tried[way].startswith("fails: ") for way in failing)
    said = reductions.part_at_fault([Tried(way, wrong, 1.0) for way, wrong in tried.items()])
    assert "HierarchicalCopyAllReduce()" in said


@pytest.mark.slow
def test_a_wrong_sum_is_said(module):
    (tried,) = reductions.try_ways([module("way_that_lies", LIES)], "CPU", 2)
    assert tried.wrong == "the sum is 6.0 and should be 3.0"


def named(*failing: Way) -> str:
    tried = [Tried(way, "hangs" if way in failing else "", 1.0) for way in WAYS]
    return reductions.part_at_fault(tried)


@pytest.mark.parametrize(
    "failing, words",
    [
        ((), reductions.WORKS),
        (WAYS, "does not compute even by itself"),
        ((DEFAULT, NCCL), "NCCL_P2P_DISABLE=1"),
        ((DEFAULT, NCCL, NO_PEERS), "HierarchicalCopyAllReduce()"),
        ((DEFAULT, NCCL, NO_PEERS, COPIES), "ReductionToOneDevice()"),
        ((DEFAULT, NCCL, NO_PEERS, COPIES, TO_ONE), "nothing is copied"),
        ((DEFAULT,), "NcclAllReduce()"),
        ((COPIES,), "HierarchicalCopyAllReduce does not work"),
        ((TO_ONE,), "ReductionToOneDevice does not work"),
        ((NO_PEERS,), "of 6 ways 1 do not work"),
        ((ALONE,), "does not compute even by itself"),
    ],
)
def test_the_part_at_fault_is_named(failing, words):
    said = named(*failing)
    assert words in said and said.endswith("No program is at fault.") == bool(failing)


def test_one_gpu_has_nothing_to_add_up(monkeypatch):
    asked = []
    monkeypatch.setattr(
        reductions, "wrong_with", lambda way, *given: asked.append((way, *given)) or ""
    )
    assert list(reductions.report(1)) == ["each GPU alone, 1 GPU: works", reductions.WORKS]
    assert asked == [(ALONE, "GPU", 1, reductions.LIMIT)]
