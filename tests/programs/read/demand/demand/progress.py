"""Progress of a run on disk: one weights file and one line of numbers for each epoch."""
import json
import re
from pathlib import Path

import keras

PATTERN = "epoch-{epoch:03d}.weights.h5"


def newest(folder):
    """Number of the last epoch with a weights file, and that file; (0, None) without any."""
    found = [(int(re.search(r"epoch-(\d+)", path.name)[1]), path)
             for path in Path(folder).glob("epoch-*.weights.h5")]
    return max(found, default=(0, None))


def load_newest(model, folder):
    epoch, path = newest(folder)
    if path is not None:
        model.load_weights(path)
        print(f"loaded {path.name}")
    return epoch


class SlowDown(keras.callbacks.Callback):
    """Lowers the rate when the smoothed validation loss does not fall enough any more."""

    def __init__(self, folder, needed=0.35, factor=0.7, keep=0.5):
        super().__init__()
        self.folder, self.needed, self.factor, self.keep = Path(folder), needed, factor, keep
        self.smoothed, self.best = None, None

    def resume(self, epoch):
        if epoch:
            numbers = json.loads((self.folder / f"numbers-{epoch:03d}.json").read_text())
            self.smoothed, self.best = numbers["smoothed"], numbers["best"]

    def on_epoch_end(self, epoch, logs=None):
        value = float(logs["val_loss"])
        self.smoothed = value if self.smoothed is None else self.keep * self.smoothed + (1 - self.keep) * value
        if self.best is None or self.smoothed < (1 - self.needed) * self.best:
            self.best = self.smoothed
        else:
            rate = float(self.model.optimizer.learning_rate.numpy()) * self.factor
            self.model.optimizer.learning_rate = rate
        # written before the weights of the epoch, so that it is there if they are
        path = self.folder / f"numbers-{epoch + 1:03d}.json"
        path.write_text(json.dumps({"smoothed": self.smoothed, "best": self.best}))
