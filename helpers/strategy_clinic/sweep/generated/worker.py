"""Asks a process for the results of programs, and starts another one after a crash or a hang."""

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping

from ..differences import Outcome, Result
from .child import question
from .program import Program

CHILD = f"{__package__}.child"
LIMIT = 120  # seconds for a program, beside the start of the process
START = 60
PROGRAMS = 150  # of a process, whose memory grows


class Worker:
    """A process that runs one program after the other."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
        self.process: subprocess.Popen[str] | None = None
        self.asked = 0

    def result(self, program: Program) -> Result:
        """Returns the result of a program; a crash or a hang is one."""
        new = self.process is None or self.asked >= PROGRAMS
        if new:
            self.restart()
        self.asked += 1
        assert self.process and self.process.stdin and self.process.stdout
        self.process.stdin.write(question(program))
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT + START * new)
        line = self.process.stdout.readline() if ready else ""
        if line:
            answer = json.loads(line)
            return Result(**answer | {"outcome": Outcome(answer["outcome"])})
        self.end()
        return Result(Outcome.CRASHES if ready else Outcome.HANGS)

    def restart(self) -> None:
        self.end()
        self.process = subprocess.Popen(
            [sys.executable, "-m", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )
        self.asked = 0

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None


@contextlib.contextmanager
def worker(environment: Mapping[str, str] | None = None) -> Iterator[Worker]:
    """Yields a process, with these variables of its environment besides our own."""
    made = Worker(environment or {})
    try:
        yield made
    finally:
        made.end()
