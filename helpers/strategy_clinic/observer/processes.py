"""Observes how the process ends where Python cannot tell: by `os._exit`. And which of its children a signal has killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .context import Context, own_file
from .events import ChildKilled, ChildStarted, Outcome, ProcessLeft
from .patching import Call
from .provenance import HERE

LONGEST_COMMAND = 120


IN_CHILDREN = os.path.join(HERE, "in_children")  # a folder with a sitecustomize.py
CHILD_OPTIONS = "STRATEGY_CLINIC_CHILD"  # the variable with the options of the observer in a child


def missing_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that start an observer in each Python, as far as an environment has lost them."""
    options, paths = os.environ.get(CHILD_OPTIONS), environment.get("PYTHONPATH", "")
    if not options or (CHILD_OPTIONS in environment and IN_CHILDREN in paths):
        return {}
    return {
        CHILD_OPTIONS: options,
        "PYTHONPATH": os.pathsep.join(filter(None, (IN_CHILDREN, paths))),
    }


class Processes:
    def __init__(
        self,
        context: Context,
        raised: Callable[[BaseException], None],
        end: Callable[[Outcome, int], None],
    ) -> None:
        self.context, self.raised, self.end = context, raised, end
        self.process = os.getpid()
        self.steps = 0  # that its parent had made, in a forked process

    def watch(self) -> None:
        wrap = self.context.patches.wrap
        wrap(os, "_exit", before=self.leaves)
        wrap(os, "waitpid", after=self.waited)
        wrap(subprocess.Popen, "_handle_exitstatus", after=self.child_ended)
        wrap(subprocess.Popen, "__init__", before=self.child_starts)
        wrap(os, "system", before=self.child_starts_here)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)

    @property
    def is_child(self) -> bool:
        """Whether this is a process that was forked from the program: its end is not the program's."""
        return os.getpid() != self.process

    @property
    def has_own_end(self) -> bool:
        """Whether the end of this process is reported. Variables that a forked one has from its parent may not be readable."""
        return not self.is_child or self.context.steps.count > self.steps

    # Processes that are started

    def child_starts(self, call: Call) -> None:
        """Gives a process what starts its observer, although the program gives it an environment of its own."""
        if call["env"] is None:
            self.child_starts_here(call)
        elif missing := missing_in(call["env"]):
            call.replace("env", {**call["env"], **missing})

    def child_starts_here(self, _: Call) -> None:
        """Does the same where the program has changed its own environment."""
        os.environ.update(missing_in(os.environ))

    # Forked processes

    def forked(self) -> None:
        """Gives a forked process a file of events of its own, which begins with what both have in common."""
        context, name = self.context, os.path.basename(self.context.events)
        context.heading = context.heading or ChildStarted("", name, context.written)
        context.events, context.written = own_file(context.settings), 0
        self.steps = context.steps.count

    def watch_multiprocessing(self) -> None:
        process = sys.modules["multiprocessing.process"].BaseProcess
        self.context.patches.wrap(process, "_bootstrap", before=self.process_begins)
        self.context.patches.wrap(process, "start", before=self.child_starts_here)

    def process_begins(self, call: Call) -> None:
        """Reports what ends the function of a process: `multiprocessing` prints it, and raises nothing."""
        plain = call.owner.run

        def run() -> None:
            try:
                plain()
            except Exception as error:
                self.raised(error)
                raise

        call.owner.run = run

    # Ends

    def leaves(self, call: Call) -> None:
        status, stack = int(call["status"]), self.context.provenance.plain_stack()
        if stack and not self.is_child:
            self.context.emit(ProcessLeft(stack, status))
        if stack or self.is_child:  # without a line of the program, the fork server calls it
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
