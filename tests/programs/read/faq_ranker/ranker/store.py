"""Checkpoint plus a small record of where the training stands."""
import json
import os
from pathlib import Path

import tensorflow as tf


class Store:
    FRESH = {"epoch": 0, "best": 0.0, "since": 0}

    def __init__(self, folder, **objects):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.record_file = self.folder / "record.json"
        self.checkpoint = tf.train.Checkpoint(**objects)

    def load(self):
        if not self.record_file.exists():
            return dict(self.FRESH)
        record = json.loads(self.record_file.read_text())
        self.checkpoint.read(str(self.folder / f"e{record['epoch']}")).expect_partial()
        return {**self.FRESH, **record}

    def save(self, record):
        self.checkpoint.write(str(self.folder / f"e{record['epoch']}"))
        temporary = self.folder / "record.tmp"
        temporary.write_text(json.dumps(record))
        os.replace(temporary, self.record_file)
