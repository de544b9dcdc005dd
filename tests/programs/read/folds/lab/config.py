from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    folds: int = 3
    examples: int = 234
    columns: int = 8
    batch: int = 24
    epochs: int = 4
    rate: float = 0.05
    momentum: float = 0.9
    seed: int = 13
