"""Settings of the topic classifier."""
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class DataConfig:
    vocab: int = 160
    topics: int = 6
    max_len: int = 24
    train_items: int = 320
    dev_items: int = 90
    seed: int = 71


@dataclass(frozen=True)
class OptimConfig:
    learning_rate: float = 0.6
    momentum: float = 0.8
    weight_penalty: float = 1e-3
    label_smoothing: float = 0.05
    # plateau rule on the smoothed dev loss
    patience: int = 1
    min_delta: float = 0.12
    factor: float = 0.5
    smoothing: float = 0.6


@dataclass(frozen=True)
class Config:
    batch_size: int = 40
    epochs: int = 5
    width: int = 16
    hidden: int = 24
    seed: int = 5
    workdir: Path = ROOT / "runs" / "default"
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)

    @property
    def steps_per_epoch(self):
        return self.data.train_items // self.batch_size
