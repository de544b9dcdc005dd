"""A client that waits for its kernel no longer than the kernel takes to be ready."""

import time
from collections.abc import Awaitable, Callable
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient

REPLY = 1.0  # seconds, after which it is asked again: a kernel that starts may not have heard the question
END = 0.2  # seconds from the reply to the end: the channel on which the kernel says it may not be connected yet

Message = dict[str, Any]


class ReadyClient(AsyncKernelClient):
    """Jupyter's own waits until the kernel says nothing for 0.2 s; here it has said that it is idle, which it says last."""

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Asks until the kernel answers. Raises RuntimeError if it dies or the time is over."""
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while not await self.has_answered():
            if not await self.is_alive():
                raise RuntimeError("Kernel died before replying to kernel_info")
            if time.monotonic() > end:
                raise RuntimeError(f"Kernel didn't respond in {timeout:g} seconds")

    async def has_answered(self) -> bool:
        """Returns whether the kernel has replied to a question, and has said after it that it is idle."""
        question = self.kernel_info()
        try:
            reply = await first(self.get_shell_msg, lambda each: asked_by(each) == question, REPLY)
            await first(self.get_iopub_msg, lambda each: is_idle(each, question), END)
        except Empty:
            return False
        self._handle_kernel_info_reply(reply)
        return True


async def first(
    next_message: Callable[..., Awaitable[Message]], fits: Callable[[Message], bool], seconds: float
) -> Message:
    """Returns the first message that fits. Raises Empty if none does in time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if fits(message := await next_message(timeout=left)):
            return message
    raise Empty


def asked_by(message: Message) -> str | None:
    question: str | None = message["parent_header"].get("msg_id")
    return question


def is_idle(message: Message, question: str) -> bool:
    is_last = message["content"].get("execution_state") == "idle"
    return is_last and asked_by(message) == question
