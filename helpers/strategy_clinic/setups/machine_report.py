"""What the machine in front of the reader offers, as a table."""

from ..base.display import text_table
from . import formats, runtime, strategies

OFFERS = {
    "cpu": "no accelerator: one CPU is split into virtual devices",
    "gpu": "a GPU, split into logical GPUs where there are fewer than eight",
    "tpu": "a TPU with a TensorFlow that can use it",
}


def facts() -> list[list[str]]:
    """One row per version and per strategy, with the reason where one cannot run here."""
    runtime.start_tensorflow()
    table = [
        ["this machine", "what it offers"],
        ["devices", OFFERS[runtime.kind()]],
        ["host", runtime.host()],
    ]
    table += [[name, version] for name, version in runtime.versions().items()]
    return table + [[row.name, row.missing() or "runs here"] for row in strategies.ROWS]


def show():
    print(text_table(facts()))


def switches() -> list[list[list[str]]]:
    """The values of the two richest parameters, and what each stands for."""
    counts = {row.name: ", ".join(map(str, row.counts)) for row in strategies.ROWS}
    chosen = [[row.name, counts[row.name], row.about] for row in strategies.ROWS]
    kept = [[row.name, formats.kept(row), row.about] for row in formats.ROWS]
    return [
        [["strategy", "devices", "what it is"], *chosen],
        [["save format", "keeps", "how"], *kept],
    ]


def show_switches():
    print("\n\n".join(text_table(table) for table in switches()))
