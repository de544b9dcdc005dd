import json
from pathlib import Path

import keras


class LastingEarlyStopping(keras.callbacks.EarlyStopping):
    """EarlyStopping whose counters are kept in a file, for jobs that are started again."""

    def __init__(self, path, **kwargs):
        super().__init__(**kwargs)
        self.path = Path(path)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            # an epoch that was not backed up is trained again
            done = [k for k in kept if k["epoch"] < (self.model._initial_epoch or 0)]
            if done:
                self.wait, self.best, self.best_epoch = done[-1]["wait"], done[-1]["best"], done[-1]["best_epoch"]

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        kept = json.loads(self.path.read_text()) if self.path.exists() else []
        kept = [k for k in kept if k["epoch"] < epoch]
        kept.append({"epoch": epoch, "wait": self.wait, "best": float(self.best), "best_epoch": self.best_epoch})
        self.path.write_text(json.dumps(kept))
