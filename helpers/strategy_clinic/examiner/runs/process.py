"""A process under examination while it runs: the end of its output is kept, and it is ended with all that it has started."""

import contextlib
import os
import signal
import subprocess
import threading

MOST_OUTPUT = 1 << 20  # bytes of output that are kept: its end
OUTPUT_GRACE = 5  # seconds for the output of a process that has ended


class Running:
    """It reads nothing, and its output is read at once, so that it never waits for us."""

    def __init__(self, start):
        reading, writing = os.pipe()
        with open(os.devnull) as nothing:
            self.process = start((nothing.fileno(), writing, writing))
        os.close(writing)
        self.said = bytearray()
        self.reader = threading.Thread(target=keep_end, args=(reading, self.said), daemon=True)
        self.reader.start()

    def wait(self, seconds: float) -> int | None:
        """Its exit status, or None if it is still at it."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        """What has left its group may hold the output open for longer: it is not waited for."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join(OUTPUT_GRACE)

    @property
    def output(self) -> str:
        return self.said.decode(errors="replace")


def keep_end(reading: int, said: bytearray):
    with open(reading, "rb") as stream:
        for chunk in iter(lambda: stream.read1(1 << 16), b""):
            said += chunk
            del said[:-MOST_OUTPUT]
