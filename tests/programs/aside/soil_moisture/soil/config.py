"""Settings of an experiment."""
import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Experiment:
    folder: Path = Path("experiment")
    batch: int = 24
    epochs: int = 6
    rate: float = 0.004
    hidden: int = 16
    depth_weight: float = 0.7
    ramp: float = 1.5
    seed: int = 4

    @property
    def newest(self):
        return self.folder / "newest.keras"

    @property
    def table(self):
        return self.folder / "epochs.csv"
