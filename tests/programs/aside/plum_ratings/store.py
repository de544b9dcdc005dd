"""What is kept between two starts: weights, the optimizer's arrays, and a JSON file that names both."""
import json
from pathlib import Path

import numpy as np


class Store:
    def __init__(self, folder="plums"):
        self.folder = Path(folder)
        self.file = self.folder / "state.json"

    def read(self):
        if not self.file.exists():
            return {"epoch": 0, "best": None, "waited": 0, "files": None, "best_weights": None, "errors": []}
        return json.loads(self.file.read_text())

    def write(self, state, model, optimizer):
        self.folder.mkdir(exist_ok=True)
        weights, arrays = (str(self.folder / f"{state['epoch']}{end}") for end in (".weights.h5", ".optimizer.npz"))
        model.save_weights(weights)
        np.savez(arrays, *[variable.numpy() for variable in optimizer.variables])
        state["files"] = [weights, arrays]
        if state["waited"] == 0:
            state["best_weights"] = weights
        # the files are complete before anything names them
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps(state, indent=1))
        draft.replace(self.file)

    def load(self, state, model, optimizer):
        weights, arrays = state["files"]
        model.load_weights(weights)
        with np.load(arrays) as saved:
            for variable, name in zip(optimizer.variables, saved.files):
                variable.assign(saved[name])
