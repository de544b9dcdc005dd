"""How long the rest of a class takes, from the pace of those that have ended."""

import time
from collections.abc import Callable

FEWEST = 5  # results before a pace is known: the first ones wait for TensorFlow
MINUTE = 60


class Remaining:
    """Of a number of tasks, of which several run at once. The pace is that since the first of them has ended."""

    def __init__(self, tasks: int, workers: int, now: Callable[[], float] = time.monotonic) -> None:
        self.tasks, self.workers, self.now = tasks, workers, now
        self.first = 0.0

    def after(self, done: int) -> str:
        """Returns in words what remains after so many results; nothing as long as nobody can know."""
        if done == 1:
            self.first = self.now()
        if not max(FEWEST, 2 * self.workers) <= done < self.tasks:
            return ""
        return in_words((self.now() - self.first) / (done - 1) * (self.tasks - done))


def in_words(seconds: float) -> str:
    if seconds < MINUTE:
        return " (less than a minute left)"
    minutes = round(seconds / MINUTE)
    return f" (about {minutes} minute{'s' * (minutes > 1)} left)"
