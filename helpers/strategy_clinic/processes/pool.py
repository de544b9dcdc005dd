"""Many runs at once: submitted to a pool, returned as each ends, and stopped together."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, as_completed
from typing import Any, TypeVar

from .python_process import Process

Subject = TypeVar("Subject")
STOPPING = 10  # seconds for runs to end when they are stopped
RUNNING: set[Process] = set()  # processes to end when the whole command is stopped


def as_ended(
    pool: Executor, function: Callable[..., Any], wanted: Iterable[tuple[Subject, tuple[Any, ...]]]
) -> Iterator[tuple[Subject, Future[Any]]]:
    """Calls the function in the pool for each (subject, arguments); yields (subject, future) as soon as one has ended.

    Whatever stops the caller, such as Ctrl-C, stops what runs and cancels what waits.
    """
    subjects = {pool.submit(function, *arguments): subject for subject, arguments in wanted}
    try:
        for future in as_completed(subjects):
            yield subjects[future], future
    except BaseException:
        stop_all(pool, subjects)
        raise


def stop_all(pool: Executor, futures: Iterable[Future[Any]]) -> None:
    """Kills what runs. A run that is just starting is caught in the next round."""
    pool.shutdown(wait=False, cancel_futures=True)
    deadline = time.monotonic() + STOPPING
    while any(future.running() for future in futures) and time.monotonic() < deadline:
        for process in list(RUNNING):
            process.kill()
        time.sleep(0.05)
