"""How far a measurement is: how many setups of each mode have been run, and about how long the rest takes."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# What the parts of a check take on two cores of a plain machine; after that the pace of the check itself counts.
PAGE = 15.0  # seconds for the cells of a notebook
SETUP = 1.5  # seconds for both programs under one setup
PAUSE = 30.0  # seconds between two sentences about the same modes


class Progress:
    """The setups that are to be run, by mode. A run adds a byte to its mode's file for each setup that it has run."""

    def __init__(self, setups: Mapping[str, int], workers: int, folder: Path) -> None:
        self.setups, self.folder = setups, folder
        self.pace, self.began = 1 / workers, time.monotonic()
        self.ended: set[str] = set()

    def file(self, mode: str) -> Path:
        return self.folder / mode

    def done(self, mode: str) -> int:
        """Returns how many setups of a mode have been run; of one that runs them again, one by one, no more than all."""
        if mode in self.ended:
            return self.setups[mode]
        path = self.file(mode)
        return min(path.stat().st_size, self.setups[mode]) if path.exists() else 0

    def seconds_left(self) -> float:
        whole = sum(PAGE + SETUP * count for count in self.setups.values())
        done = sum(PAGE + SETUP * count for mode in self.setups if (count := self.done(mode)))
        pace = (time.monotonic() - self.began) / done if done else self.pace
        return (whole - done) * pace

    def sentence(self) -> str:
        """Returns how far the modes are that are being run, or "" if none has more than its own setup."""
        parts = [
            f"{mode}: {done} of {count} setups"
            for mode, count in self.setups.items()
            if mode not in self.ended and (done := self.done(mode)) and count > 1
        ]
        return ", ".join(parts) and f"{', '.join(parts)}; {in_words(self.seconds_left())} left"


@contextmanager
def told(
    setups: Mapping[str, int], workers: int, tell: Callable[[str], None], pause: float = PAUSE
) -> Iterator[Progress]:
    """Says from time to time how far the runs of these modes are."""
    over = threading.Event()

    def say_again() -> None:
        while not over.wait(pause):
            if sentence := progress.sentence():
                tell(sentence)

    with tempfile.TemporaryDirectory() as folder:
        progress = Progress(setups, workers, Path(folder))
        thread = threading.Thread(target=say_again, daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            over.set()
            thread.join()


def in_words(seconds: float) -> str:
    """Returns a time as nobody can know it better: in tens of seconds, or in minutes."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} seconds"
    return f"about {seconds / 60:.0f} minutes"


def expected(setups: Mapping[str, int], runs: int, workers: int, pages: int) -> str:
    """Returns how much there is to run, each setup that often, and about how long that takes on two cores."""
    count, at_once = sum(setups.values()), min(workers, len(setups), 2)
    seconds = runs * (PAGE * len(setups) + SETUP * count) / at_once + PAGE * pages
    modes = "1 mode" if len(setups) == 1 else f"{len(setups)} modes"
    where = "its own setup" if count == 1 else f"{count} setups"
    return f"{modes} under {where}: {in_words(seconds)} on two cores"
