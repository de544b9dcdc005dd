"""Running statistics and the files beside the TensorFlow checkpoints."""
import os
from pathlib import Path

import numpy as np


class RunningReturn:
    """Mean and spread of the returns so far: baseline and scale of the advantages."""
    fields = ("mean", "square", "weight")

    def __init__(self, keep=0.9):
        self.keep = keep
        self.mean = np.float64(0.0)
        self.square = np.float64(0.0)
        self.weight = np.float64(0.0)

    def update(self, returns):
        self.mean = self.keep * self.mean + (1 - self.keep) * returns.mean(dtype="float64")
        self.square = self.keep * self.square + (1 - self.keep) * np.square(returns, dtype="float64").mean()
        self.weight = self.keep * self.weight + (1 - self.keep)

    def advantages(self, returns):
        mean = self.mean / self.weight
        spread = np.sqrt(np.maximum(self.square / self.weight - mean ** 2, 1e-6))
        return ((returns - mean) / spread).astype("float32")


class SideFile:
    """NumPy values that belong to the checkpoint of the same number."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, number):
        return self.folder / f"loop-{number}.npz"

    def write(self, number, statistics, rng, entropy):
        state = rng.bit_generator.state["state"]
        values = {name: getattr(statistics, name) for name in statistics.fields}
        values["rng"] = np.array([str(state["state"]), str(state["inc"])])
        values["entropy"] = np.float64(entropy)
        temporary = self.folder / "writing.npz"
        np.savez(temporary, **values)
        os.replace(temporary, self.path(number))

    def read(self, number, statistics, rng):
        with np.load(self.path(number)) as values:
            for name in statistics.fields:
                setattr(statistics, name, values[name])
            state = rng.bit_generator.state
            state["state"] = {"state": int(values["rng"][0]), "inc": int(values["rng"][1])}
            rng.bit_generator.state = state
            return float(values["entropy"])
