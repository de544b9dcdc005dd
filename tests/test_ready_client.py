"""How long a run waits for its kernel: until it is ready, and no longer than the limit if it dies or says nothing."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable
from queue import Empty

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbformat.v4 import new_code_cell, new_notebook
from strategy_clinic.processes import notebook_job, python_process, ready_client
from strategy_clinic.processes.ready_client import ReadyClient
from strategy_clinic.rendering import sources

LIMIT = 0.3
BUSY, IDLE = {"execution_state": "busy"}, {"execution_state": "idle"}
REPLY = {"protocol_version": "5.4"}

# What a kernel answers to the question of this number: pairs of a channel and of a message.
Answers = Callable[[int], Iterable[tuple[str, dict]]]


def message(question: object, content: dict) -> dict:
    return {"parent_header": {"msg_id": question}, "content": content}


def ready(number: int):
    return [
        ("iopub", message(number, BUSY)),
        ("shell", message(number, REPLY)),
        ("iopub", message(number, IDLE)),
    ]


class Scripted(ReadyClient):
    """A client whose kernel answers as is written down."""

    def __init__(self, answers: Answers, dies_after: float = float("inf")):
        super().__init__()
        self.answers, self.dies_after, self.asked = answers, dies_after, 0
        self.said: dict[str, list[dict]] = {"shell": [], "iopub": []}

    def kernel_info(self):
        self.asked += 1
        for channel, each in self.answers(self.asked):
            self.said[channel].append(each)
        return self.asked

    async def next_of(self, channel, timeout):
        await asyncio.sleep(0 if self.said[channel] else timeout)
        if not self.said[channel]:
            raise Empty
        return self.said[channel].pop(0)

    async def get_shell_msg(self, timeout):
        return await self.next_of("shell", timeout)

    async def get_iopub_msg(self, timeout):
        return await self.next_of("iopub", timeout)

    async def is_alive(self):
        return self.asked <= self.dies_after


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(ready_client, "REPLY", 0.05)
    monkeypatch.setattr(ready_client, "END", 0.02)


def waited_for(client: Scripted, limit: float | None = LIMIT) -> Scripted:
    asyncio.run(client.wait_for_ready(timeout=limit))
    return client


@pytest.mark.parametrize("limit", [LIMIT, None])
def test_a_kernel_that_answers_is_asked_once_and_nothing_is_left_to_read(limit):
    client = waited_for(Scripted(ready), limit)
    assert client.asked == 1 and client.said == {"shell": [], "iopub": []}


def test_a_kernel_is_ready_with_the_end_of_the_last_question_and_not_of_an_earlier_one():
    def late(number: int):
        """The first question is answered when the second one is."""
        return [*ready(1), *ready(2)] if number == 2 else []

    client = waited_for(Scripted(late))
    assert client.asked == 2 and client.said == {"shell": [], "iopub": []}


def test_a_kernel_that_is_not_yet_heard_is_asked_again():
    def unheard(number: int):
        return [each for each in ready(number) if number > 2 or each[0] == "shell"]

    assert waited_for(Scripted(unheard)).asked == 3


def test_what_is_said_before_and_to_others_is_no_answer():
    def talking(number: int):
        starting = [("iopub", message(None, {"execution_state": "starting"}))]
        other = [("iopub", message("other", IDLE)), ("shell", message("other", REPLY))]
        return [*starting, *other, *(ready(number) if number == 2 else [])]

    assert waited_for(Scripted(talking)).asked == 2


def test_a_kernel_that_dies_is_told_at_once():
    with pytest.raises(RuntimeError, match="Kernel died before replying"):
        waited_for(Scripted(lambda _: [], dies_after=1), limit=None)


def without_end(number: int):
    """It replies and says much, but not that it is idle."""
    return [("shell", message(number, REPLY)), *[("iopub", message(number, BUSY))] * 9]


@pytest.mark.parametrize("answers", [lambda _: [], without_end], ids=["nothing", "no end"])
def test_a_kernel_that_lives_and_does_not_answer_is_told_within_the_limit(answers):
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"Kernel didn't respond in 0\.3 seconds"):
        waited_for(Scripted(answers))
    assert LIMIT <= time.monotonic() - begin < 20 * LIMIT


def test_a_run_of_a_notebook_has_this_client(tmp_path):
    config = notebook_job.papermill_options(tmp_path)["config"]
    assert AsyncKernelManager(config=config).client_factory is ReadyClient


@pytest.mark.slow
def test_a_run_whose_kernel_dies_as_it_starts_ends_long_before_its_time(tmp_path, monkeypatch):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-c", "raise SystemExit(3)", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "dies", "language": "python"}))
    monkeypatch.setattr(python_process, "fork_server", lambda environment: None)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    notebook = new_notebook(cells=[new_code_cell("print(1)")], metadata=sources.KERNEL)
    ended = notebook_job.run_notebook(nbformat.writes(notebook), {}, 300)
    assert ended["end"] == "crashes"
    assert "Kernel died before replying to kernel_info" in ended["failure"]
