from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    epochs: int = 6
    global_batch: int = 16
    figures: int = 96
    held_out: int = 32
    side: int = 16
    joints: int = 4
    filters: int = 8
    rate: float = 0.3
    momentum: float = 0.9
    smooth_share: float = 0.02      # share of the map's own spread in the loss
    needed_gain: float = 0.2        # an epoch is better if its error falls by this share
    patience: int = 3
    cool_by: float = 0.5            # the step size is cooled by this after an epoch without gain
    seed: int = 41

    @property
    def folder(self) -> Path:
        return PROJECT / "work" / f"joints{self.joints}"
