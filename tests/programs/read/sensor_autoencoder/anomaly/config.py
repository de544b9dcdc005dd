import argparse
from dataclasses import dataclass, fields
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


@dataclass
class Config:
    channels: int = 12
    latent: int = 4
    hidden: int = 24
    global_batch: int = 40
    epochs: int = 9
    learning_rate: float = 0.02
    momentum: float = 0.9
    sparsity: float = 0.02
    patience: int = 2
    min_delta: float = 0.09
    running: float = 0.95
    quantile: float = 0.97
    seed: int = 11
    directory: str = "output"

    @property
    def path(self) -> Path:
        return PACKAGE.parent / self.directory


def read_config() -> Config:
    parser = argparse.ArgumentParser(prog="anomaly.train")
    for field in fields(Config):
        parser.add_argument("--" + field.name.replace("_", "-"), type=type(field.default), default=field.default)
    return Config(**vars(parser.parse_args()))
