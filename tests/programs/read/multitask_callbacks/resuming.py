"""Callbacks that let `fit` be interrupted."""
import json
from pathlib import Path

import keras


class Remembering(keras.callbacks.Callback):
    """A callback with a small state that goes into the state file."""

    fields = ()

    def state(self):
        return {name: getattr(self, name) for name in self.fields}

    def set_state(self, state):
        for name in self.fields:
            setattr(self, name, state[name])


class Patience(Remembering):
    """Stops when the validation loss has not fallen for some epochs."""

    fields = ("best", "waited")

    def __init__(self, patience):
        super().__init__()
        self.patience = patience
        self.best = float("inf")
        self.waited = 0

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_loss"] < self.best:
            self.best, self.waited = logs["val_loss"], 0
        else:
            self.waited += 1
        if self.waited >= self.patience:
            self.model.stop_training = True


class Decay(keras.callbacks.Callback):
    """Multiplies the learning rate after every epoch."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def on_epoch_end(self, epoch, logs=None):
        rate = self.model.optimizer.learning_rate
        rate.assign(rate * self.factor)


class SaveAll(keras.callbacks.Callback):
    """The whole model and, when it is on disk, a state file that names it."""

    def __init__(self, folder, remembering):
        super().__init__()
        self.folder = Path(folder)
        self.remembering = remembering

    def on_epoch_end(self, epoch, logs=None):
        path = self.folder / f"epoch-{epoch + 1:03d}.keras"
        self.model.save(path)
        state = {"epochs": epoch + 1, "model": path.name, "stopped": bool(self.model.stop_training)}
        state.update({name: callback.state() for name, callback in self.remembering.items()})
        part = self.folder / "state.json.part"
        part.write_text(json.dumps(state))
        part.replace(self.folder / "state.json")


def read_state(folder):
    path = Path(folder) / "state.json"
    return json.loads(path.read_text()) if path.exists() else None
