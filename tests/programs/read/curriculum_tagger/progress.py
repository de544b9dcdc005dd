"""The progress of a run: plain facts in progress.json, tensors in the checkpoint that it names."""
import dataclasses
import json
import os

import tensorflow as tf


@dataclasses.dataclass
class Progress:
    epoch: int = 0
    stage: int = 0
    in_stage: int = 0
    best: float = float("inf")
    best_epoch: int = -1


class Keeper:
    def __init__(self, folder, **objects):
        os.makedirs(folder, exist_ok=True)
        self.prefix = os.path.join(folder, "tagger")
        self.facts = os.path.join(folder, "progress.json")
        self.checkpoint = tf.train.Checkpoint(**objects)

    def save(self, progress):
        path = self.checkpoint.save(self.prefix)
        note = dict(dataclasses.asdict(progress), tensors=path)
        with open(self.facts + "~", "w") as file:
            json.dump(note, file)
        os.replace(self.facts + "~", self.facts)

    def load(self):
        if not os.path.exists(self.facts):
            return Progress()
        with open(self.facts) as file:
            note = json.load(file)
        path = note.pop("tensors")
        if os.path.exists(path + ".index"):
            self.checkpoint.restore(path)
        return Progress(**note)
