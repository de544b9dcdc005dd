"""Typed settings, read from settings.json beside this file."""
import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Data:
    vocab: int
    length: int
    intents: int
    slots: int
    seed: int


@dataclass(frozen=True)
class Model:
    width: int
    units: int


@dataclass(frozen=True)
class Training:
    batch: int
    accumulate: int
    micro_steps: int
    save_every: int
    rate: float
    momentum: float
    slot_weight: float
    weight_cost: float
    smoothing: float


@dataclass(frozen=True)
class Settings:
    data: Data
    model: Model
    training: Training
    folder: Path


def load(path=HERE / "settings.json"):
    raw = json.loads(Path(path).read_text())
    return Settings(Data(**raw["data"]), Model(**raw["model"]), Training(**raw["training"]), HERE / raw["folder"])
