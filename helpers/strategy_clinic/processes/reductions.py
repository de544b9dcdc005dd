"""Tries how the devices of this machine add up, each way in a process of its own that is killed at a limit.

What hangs or gives wrong sums here is the machine, its driver or TensorFlow, and no program of a reader.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..setups.start_variables import TENSORFLOW_START
from . import request_reply

LIMIT = 120.0  # seconds for one way: TensorFlow starts in it, and on a new kind of GPU makes its kernels
CHILD = "strategy_clinic.processes.reduce_once"


@dataclass(frozen=True)
class Way:
    """One way to add up: the cross-device operation, the default one if empty, and variables of the environment."""

    name: str
    operation: str = ""
    alone: bool = False  # nothing is added up: each device computes by itself
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    module: str = CHILD


ALONE = Way("each GPU alone", alone=True)
DEFAULT = Way("the default")
NCCL = Way("NcclAllReduce", "NcclAllReduce")
NO_PEERS = Way(
    "NcclAllReduce with NCCL_P2P_DISABLE=1",
    "NcclAllReduce",
    environment={"NCCL_P2P_DISABLE": "1"},
)
COPIES = Way("HierarchicalCopyAllReduce", "HierarchicalCopyAllReduce")
TO_ONE = Way("ReductionToOneDevice", "ReductionToOneDevice")
WAYS = (ALONE, DEFAULT, NCCL, NO_PEERS, COPIES, TO_ONE)

# Which part is at fault, by ways that fail and ways that work: the first row that fits.
PARTS: tuple[tuple[tuple[Way, ...], tuple[Way, ...], str], ...] = (
    (
        (ALONE,),
        (),
        "a GPU does not compute even by itself: look at the driver, at CUDA, and whether TensorFlow has kernels for it",
    ),
    (
        (NCCL,),
        (NO_PEERS,),
        "NCCL cannot copy from GPU to GPU directly: set NCCL_P2P_DISABLE=1 before the start, or look at the driver and the IOMMU",
    ),
    (
        (NCCL,),
        (COPIES,),
        "NCCL does not work: make the strategy with cross_device_ops=tf.distribute.HierarchicalCopyAllReduce()",
    ),
    (
        (NCCL,),
        (TO_ONE,),
        "NCCL does not work: make the strategy with cross_device_ops=tf.distribute.ReductionToOneDevice()",
    ),
    (
        (DEFAULT,),
        (NCCL,),
        "the default reduction does not work: make the strategy with cross_device_ops=tf.distribute.NcclAllReduce()",
    ),
    (
        (COPIES,),
        (NCCL,),
        "HierarchicalCopyAllReduce does not work; the default does not use it",
    ),
    (
        (TO_ONE,),
        (NCCL,),
        "ReductionToOneDevice does not work; the default does not use it",
    ),
    (
        (NCCL, COPIES, TO_ONE),
        (),
        "nothing is copied from GPU to GPU, while each computes by itself: look at the driver and the connection of the GPUs",
    ),
)
WORKS = "the GPUs compute and add up in every way that was tried"


@dataclass(frozen=True)
class Tried:
    way: Way
    wrong: str  # nothing if it works
    seconds: float


def report(count: int) -> Iterator[str]:
    """Yields a sentence for each way as soon as it has ended, and at last the part that does not work."""
    ways = WAYS if count > 1 else (ALONE,)
    found = []
    for tried in try_ways(ways, "GPU", count):
        found.append(tried)
        yield f"{tried.way.name}, {count} GPU{'s' if count > 1 else ''}: {tried.wrong or 'works'}"
    yield part_at_fault(found)


def try_ways(ways: Iterable[Way], kind: str, count: int, limit: float = LIMIT) -> Iterator[Tried]:
    """Yields for each way what is wrong, one after the other, since two that share GPUs would disturb each other."""
    for way in ways:
        began = time.monotonic()
        wrong = wrong_with(way, kind, count, limit)
        yield Tried(way, wrong, time.monotonic() - began)


def wrong_with(way: Way, kind: str, count: int, limit: float) -> str:
    with tempfile.TemporaryDirectory() as name:
        answer, log = Path(name) / "answer.json", Path(name) / "log.txt"
        asked = {"kind": kind, "count": count, "operation": way.operation, "alone": way.alone}
        asked["answer"] = str(answer)
        environment = {**os.environ, **TENSORFLOW_START, **way.environment}
        process = request_reply.ask(way.module, asked, environment, log, None)
        try:
            deadline = time.monotonic() + limit
            return str(request_reply.wait_for_answer(process, answer, deadline, log, "it"))
        except TimeoutError:
            return f"hangs: killed after {limit:.0f} seconds"
        except ChildProcessError as error:
            return f"fails: {error}"
        finally:
            request_reply.end(process)


def part_at_fault(tried: Iterable[Tried]) -> str:
    """Returns the part that does not work, if one does not."""
    wrong = {each.way: each.wrong for each in tried}
    if not any(wrong.values()):
        return WORKS
    for failing, working, words in PARTS:
        is_wrong = all(wrong.get(way) for way in failing)
        if is_wrong and all(wrong.get(way) == "" for way in working):
            return f"{words}. No program is at fault."
    return f"of {len(wrong)} ways {sum(map(bool, wrong.values()))} do not work, see above. No program is at fault."
