from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    herbs: int = 60  # kinds
    leaf: int = 10  # numbers that describe a leaf
    smell: int = 10  # and a smell
    units: int = 16
    width: int = 8
    batch: int = 20
    epochs: int = 16
    rate: float = 0.3
    limit: float = 0.5  # of the norm of a batch's gradient
    temperature: float = 0.3
    seed: int = 8
    weights: str = "herbs.weights.h5"
