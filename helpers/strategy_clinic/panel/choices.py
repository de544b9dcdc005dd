"""What a reader can choose for the programs of a mode, which value follows from another, and the programs that are shown."""

from collections.abc import Iterable, Mapping, Sequence

from ..modes.failure_mode import FailureMode
from ..programs.switches import for_setup
from ..setups import formats, strategies
from ..setups.parameters import Setup

# What a reader has not chosen: with one device most failures do not show.
COUNT = Setup().devices


def offered(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the parameters that change something in these programs: a line of theirs, or the Keras that runs them."""
    of_strategies = (Setup(row.name, row.counts[-1]) for row in strategies.ROWS)
    of_formats = (Setup(save_format=name) for name in formats.TABLE)
    places = ("strategy", "devices") if change(texts, of_strategies) else ()
    saving = ("save_format",) if change(texts, of_formats) else ()
    return (*places, *saving, "keras")


def change(texts: Mapping[str, str], setups: Iterable[Setup]) -> bool:
    """Returns whether some program has other lines under some of these setups."""
    under = [[for_setup(text, setup, "CPU") for text in texts.values()] for setup in setups]
    return any(programs != under[0] for programs in under)


def in_words(setup: Setup, parameters: Sequence[str]) -> str:
    """Returns a setup without the save format where nothing is saved."""
    saved = f", saved as {setup.save_format}"
    return str(setup) if "save_format" in parameters else str(setup).replace(saved, "")


def count_for(strategy: str, wanted: int) -> int:
    """Returns the number of devices of a strategy that is wanted, or the next larger one, or the largest."""
    counts = strategies.TABLE[strategy].counts
    return next((count for count in counts if count >= wanted), counts[-1])


def wanted_count(setup: Setup) -> int:
    """Returns the number of devices of a setup; the usual one if its strategy has no other, so that nobody chose it."""
    return setup.devices if len(strategies.TABLE[setup.strategy].counts) > 1 else COUNT


def program_text(mode: FailureMode, setup: Setup, text: str, kind: str = "") -> str:
    """Returns a program for a setup, on a kind of device if that is given, or in a comment why there is none."""
    reason = mode.reason_against(setup)
    return f"# No program for this setup: {reason}." if reason else for_setup(text, setup, kind)
