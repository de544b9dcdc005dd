"""What a run leaves on disk: a TensorFlow checkpoint, and beside it a .npz and a .json with the same number."""
import json
import os

import numpy as np
import tensorflow as tf


class Store:
    def __init__(self, folder, trackables, keep=2):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.manager = tf.train.CheckpointManager(tf.train.Checkpoint(**trackables), os.path.join(folder, "net"), max_to_keep=keep)

    def _beside(self, number, kind):
        return os.path.join(self.folder, f"beside-{number:05d}.{kind}")

    def save(self, number, memory, facts):
        np.savez(self._beside(number, "npz"), **memory.dump())
        with open(self._beside(number, "json"), "w") as file:
            json.dump(facts, file)
        self.manager.save(checkpoint_number=number)

    def load(self, memory):
        """The facts of the newest complete save, or None."""
        latest = self.manager.latest_checkpoint
        if latest is None:
            return None
        number = int(latest.rsplit("-", 1)[1])
        self.manager.checkpoint.restore(latest).assert_existing_objects_matched()
        with np.load(self._beside(number, "npz")) as stored:
            memory.load(stored)
        with open(self._beside(number, "json")) as file:
            return json.load(file)
