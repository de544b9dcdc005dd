"""Callbacks: what they decide, and what they write."""

from dataclasses import replace
from typing import Any

from ..items import How, Item, Kind, Parts, call

FIT = ((How.FIT, Parts.EVEN, (2, 4)),)


def callback(name: str, option: str, keras: tuple[int, ...] = (2, 3), **named: Any) -> Item:
    make = call(f"callbacks.{name}", **named)
    return Item(Kind.CALLBACK, name, option, make, FIT, keras=keras)


def interrupted(option: str, after: int, **named: Any) -> Item:
    """A backup of a run that is stopped after so many steps and then continued."""
    item = callback("BackupAndRestore", option, backup_dir="backup", **named)
    return replace(item, with_=(("stopped_after", after),))


ITEMS = [
    callback("EarlyStopping", "plain", monitor="loss", patience=1, min_delta=0.5),
    callback(
        "EarlyStopping",
        "restore_best_weights",
        monitor="loss",
        mode="max",
        patience=1,
        restore_best_weights=True,
    ),
    callback("ReduceLROnPlateau", "plain", monitor="loss", patience=1, min_delta=0.5),
    callback("LearningRateScheduler", "plain", schedule=call("own.halving")),
    callback(
        "ModelCheckpoint",
        "save_best_only",
        filepath="best.keras",
        save_best_only=True,
        monitor="loss",
    ),
    callback(
        "ModelCheckpoint",
        "save_freq",
        filepath="step.weights.h5",
        save_weights_only=True,
        save_freq=3,
    ),
    interrupted("stopped between epochs", 4),
    interrupted("stopped in an epoch", 3, save_freq=1),
    callback("CSVLogger", "plain", filename="log.csv"),
    callback("LambdaCallback", "counts", on_train_batch_end=call("own.count_batches")),
    callback("TerminateOnNaN", "plain"),
    callback("SwapEMAWeights", "plain", keras=(3,), swap_on_epoch=True),
    callback("History", "plain"),
]
NOT_SWEPT = {
    "Callback": "the base class",
    "CallbackList": "holds the others",
    "BaseLogger": "what `fit` returns is compared in every row",
    "ProgbarLogger": "prints only",
    "TensorBoard": "needs another library",
    "RemoteMonitor": "sends to a server",
    "OrbaxCheckpoint": "needs another library",
    "SidecarEvaluatorModelExport": "needs a second process",
}
