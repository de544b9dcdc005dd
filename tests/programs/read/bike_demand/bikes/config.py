import dataclasses
import json
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class DataConfig:
    stations: int
    hours: int
    seed: int


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    units: int
    station_size: int


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    batch: int
    epochs: int
    peak_rate: float
    warmup: int
    smoothing: float
    folder: str


@dataclasses.dataclass(frozen=True)
class Config:
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig

    @classmethod
    def read(cls, path):
        told = json.loads(Path(path).read_text())
        return cls(DataConfig(**told["data"]), ModelConfig(**told["model"]), TrainingConfig(**told["training"]))
