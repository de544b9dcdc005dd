"""A small JSON file beside the checkpoints: what is newest, and the counters of the trainer."""
import json
import os


class StateFile:

    def __init__(self, path):
        self.path = path

    def read(self):
        if not os.path.exists(self.path):
            return None
        with open(self.path) as file:
            return json.load(file)

    def write(self, **values):
        partial = self.path + ".part"
        with open(partial, "w") as file:
            json.dump(values, file, indent=1)
        os.replace(partial, self.path)
