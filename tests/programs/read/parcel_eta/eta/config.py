import dataclasses
import tomllib
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Config:
    rows: int
    validation_rows: int
    batch: int
    epochs: int
    rate: float
    decay: float
    quantile: float
    hidden: int
    seed: int

    @classmethod
    def read(cls, path):
        return cls(**tomllib.loads(Path(path).read_text()))
