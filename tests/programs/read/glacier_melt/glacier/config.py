from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    days: int = 12
    stations: int = 256
    held_out: int = 64
    batch: int = 32
    epochs: int = 6
    rate: float = 0.2
    momentum: float = 0.9
    quantile: float = 0.7
    patience: int = 1
    factor: float = 0.5
    seed: int = 41
    folder: str = "glacier_state"
