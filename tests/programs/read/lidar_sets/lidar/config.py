from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    points: int = 16
    classes: int = 4
    clouds: int = 288
    batch: int = 24
    gather: int = 5  # batches for one update
    epochs: int = 4
    save_every: int = 8  # batches, so mostly in the middle of an update
    rate: float = 0.15
    momentum: float = 0.8
    folder: str = "lidar_ckpt"
    seed: int = 64

    @property
    def steps(self):
        return self.epochs * (self.clouds // self.batch)
