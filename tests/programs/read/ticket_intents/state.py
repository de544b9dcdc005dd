"""Callbacks that know how to go on where an interrupted run was."""
import json
import os
from pathlib import Path

import keras


class PatienceStop(keras.callbacks.Callback):
    """Stops when the validation loss has not improved for some epochs."""

    def __init__(self, patience, min_delta=0.0):
        super().__init__()
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.wait = 0

    @property
    def exhausted(self):
        return self.wait >= self.patience

    def on_epoch_end(self, epoch, logs=None):
        value = logs["val_loss"]
        if value < self.best - self.min_delta:
            self.best, self.wait = value, 0
        else:
            self.wait += 1
        if self.exhausted:
            print(f"no progress for {self.wait} epochs, stopping after epoch {epoch}")
            self.model.stop_training = True


class RunState(keras.callbacks.Callback):
    """Writes weights (with the optimizer) and the other callbacks' counters after each epoch.

    The weights go to a new file first; the small index is replaced at the end, so that
    the index always names a complete file.
    """

    def __init__(self, folder, tracked):
        super().__init__()
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.index = self.folder / "index.json"
        self.tracked = tracked

    def restore(self, model):
        if not self.index.exists():
            return 0
        saved = json.loads(self.index.read_text())
        model.optimizer.build(model.trainable_variables)
        model.load_weights(self.folder / saved["weights"])
        for name, (callback, fields) in self.tracked.items():
            for field in fields:
                setattr(callback, field, saved["callbacks"][name][field])
        return saved["epochs_done"]

    def on_epoch_end(self, epoch, logs=None):
        name = f"epoch_{epoch:03d}.weights.h5"
        self.model.save_weights(self.folder / name)
        saved = {
            "weights": name,
            "epochs_done": epoch + 1,
            "callbacks": {k: {f: float(getattr(c, f)) for f in fields} for k, (c, fields) in self.tracked.items()},
        }
        temporary = self.index.with_suffix(".tmp")
        temporary.write_text(json.dumps(saved, indent=1))
        os.replace(temporary, self.index)
        for old in self.folder.glob("epoch_*.weights.h5"):
            if old.name != name:
                old.unlink()


class EpochLine(keras.callbacks.Callback):
    """One line per epoch in the job's log."""

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch}: " + " ".join(f"{k} {v:.5f}" for k, v in sorted(logs.items())))
