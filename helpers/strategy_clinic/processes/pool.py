"""Many runs at once: handed to a pool, given back as each ends, and stopped together."""

import subprocess
import time
from concurrent.futures import as_completed

PROMPT = 10  # seconds for what should end at once
RUNNING: set[subprocess.Popen] = set()  # processes to end when the whole command is stopped


def as_ended(pool, function, wanted: list[tuple]):
    """Calls the function in the pool for each (what, arguments); gives (what, future) as soon as one has ended.

    Whatever stops the caller, such as Ctrl-C, stops what runs and forgets what waits.
    """
    asked = {pool.submit(function, *arguments): what for what, arguments in wanted}
    try:
        for future in as_completed(asked):
            yield asked[future], future
    except BaseException:
        stop_all(pool, asked)
        raise


def stop_all(pool, asked):
    """A run that is just being started is caught in the next round."""
    pool.shutdown(wait=False, cancel_futures=True)
    deadline = time.monotonic() + PROMPT
    while any(future.running() for future in asked) and time.monotonic() < deadline:
        for process in list(RUNNING):
            process.kill()
        time.sleep(0.05)
