from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Optim:
    rate: float = 0.02
    shrink: float = 0.5
    patience: int = 1
    min_delta: float = 0.25
    ema: float = 0.9


@dataclass
class Settings:
    window: int = 12
    batch: int = 16
    units: int = 20
    dim: int = 10
    epochs: int = 5
    seed: int = 21
    optim: Optim = field(default_factory=Optim)
    run_dir: Path = ROOT / "runs" / "names"

    @property
    def tokens_per_step(self):
        return self.batch * self.window
