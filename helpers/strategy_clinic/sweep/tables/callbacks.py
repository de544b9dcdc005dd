"""Callbacks: what they decide, and what they write."""

from dataclasses import replace
from typing import Any

from ..items import How, Item, Kind, Parts, call

FIT = ((How.FIT, Parts.EVEN, (2, 4)),)


def callback(name: str, option: str, keras: tuple[int, ...] = (2, 3), **named: Any) -> Item:
    make = call(f"callbacks.{name}", **named)
    return Item(Kind.CALLBACK, name, option, make, FIT, keras=keras)


def stopping(option: str, **named: Any) -> Item:
    return callback("EarlyStopping", option, (3,), monitor="loss", patience=1, **named)


def plateau(option: str, **named: Any) -> Item:
    usual = {"monitor": "loss", "patience": 1, "min_delta": 0.5}
    return callback("ReduceLROnPlateau", option, (3,), **usual | named)


def best(option: str, **named: Any) -> Item:
    usual = {"filepath": "best.keras", "save_best_only": True, "monitor": "loss"}
    return callback("ModelCheckpoint", option, (3,), **usual | named)


def interrupted(option: str, after: int, keras: tuple[int, ...] = (2, 3), **named: Any) -> Item:
    """A backup of a run that is stopped after so many steps and then continued."""
    item = callback("BackupAndRestore", option, keras, backup_dir="backup", **named)
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
    stopping("baseline", baseline=0.1),
    stopping("start_from_epoch", start_from_epoch=2),
    plateau("factor", factor=0.5),
    plateau("mode", mode="max"),
    plateau("cooldown", cooldown=1),
    plateau("min_lr", min_lr=0.05),
    best("mode", mode="max"),
    best("initial_value_threshold", initial_value_threshold=0.1),
    interrupted("double_checkpoint", 4, (3,), double_checkpoint=True),
    interrupted("delete_checkpoint", 4, (3,), delete_checkpoint=False),
    callback("CSVLogger", "append", (3,), filename="log.csv", append=True),
    callback("TerminateOnNaN", "raise_error", (3,), raise_error=True),
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
