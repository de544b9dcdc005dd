"""What this machine offers, and what each choice stands for, as tables."""

from ..base.display import text_table
from . import formats, runtime, strategies

OFFERS = {
    "cpu": "no accelerator: one CPU is split into virtual devices",
    "gpu": "a GPU, split into logical GPUs where there are fewer than eight",
    "tpu": "a TPU with a TensorFlow that can use it",
}


def show() -> None:
    """Prints a row for each version and each strategy, with the reason where one cannot run here."""
    runtime.start_tensorflow()
    table = [
        ["this machine", "what it offers"],
        ["devices", OFFERS[runtime.kind()]],
        ["host", runtime.host()],
        *map(list, runtime.versions().items()),
        *([row.name, row.missing() or "runs here"] for row in strategies.ROWS),
    ]
    print(text_table(table))


def show_switches() -> None:
    """Prints the values of the strategy and of the save format, and what each stands for."""
    chosen = [[row.name, ", ".join(map(str, row.counts)), row.about] for row in strategies.ROWS]
    saved = [[row.name, row.keeps_in_words, row.about] for row in formats.ROWS]
    print(text_table([["strategy", "devices", "what it is"], *chosen]), end="\n\n")
    print(text_table([["save format", "keeps", "how"], *saved]))
