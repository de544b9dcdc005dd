"""Observes how the process ends where Python cannot tell: by `os._exit`. And which of its children a signal has killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

from .context import Context
from .events import ChildKilled, Outcome, ProcessLeft
from .patching import Call

LONGEST_COMMAND = 120


class Processes:
    def __init__(self, context: Context, end: Callable[[Outcome, int], None]) -> None:
        self.context, self.end = context, end
        self.process = os.getpid()

    def watch(self) -> None:
        wrap = self.context.patches.wrap
        wrap(os, "_exit", before=self.leaves)
        wrap(os, "waitpid", after=self.waited)
        wrap(subprocess.Popen, "_handle_exitstatus", after=self.child_ended)

    @property
    def is_child(self) -> bool:
        """Whether this is a process that was forked from the program: its end is not the program's."""
        return os.getpid() != self.process

    def leaves(self, call: Call) -> None:
        status, stack = int(call["status"]), self.context.provenance.plain_stack()
        if stack and not self.is_child:  # without a line of the program, the fork server calls it
            self.context.emit(ProcessLeft(stack, status))
            self.end(Outcome.EXITED if status else Outcome.FINISHED, status)

    def waited(self, result: tuple[int, int], call: Call) -> None:
        process, status = result
        if process and os.WIFSIGNALED(status):
            self.child_killed(os.WTERMSIG(status), f"process {process}")

    def child_ended(self, _: Any, call: Call) -> None:
        popen = call.owner
        if popen.returncode is not None and popen.returncode < 0:
            words = [popen.args] if isinstance(popen.args, str) else map(os.fsdecode, popen.args)
            self.child_killed(-popen.returncode, " ".join(words)[:LONGEST_COMMAND])

    def child_killed(self, signal: int, command: str) -> None:
        if not self.is_child and self.context.is_first("child killed", command):
            self.context.emit(ChildKilled(self.context.provenance.plain_stack(), signal, command))
