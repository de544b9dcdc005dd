"""Configuration of the surface inspection training."""
from __future__ import annotations

import dataclasses
import json
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything a run can be changed by."""

    seed: int = 20
    image_size: int = 12
    classes: int = 4
    train_images: int = 160
    valid_images: int = 72
    global_batch: int = 32
    epochs: int = 6
    base_rate: float = 0.15
    first_cycle: int = 3   # epochs until the learning rate returns to the base rate
    momentum: float = 0.9
    label_smoothing: float = 0.05
    filters: tuple[int, ...] = (6, 10)
    sync_norm: bool = True
    keep: int = 2
    workdir: Path = HERE / "run"

    @property
    def steps_per_epoch(self) -> int:
        return self.train_images // self.global_batch

    def describe(self) -> str:
        values = {k: str(v) if isinstance(v, Path) else v for k, v in dataclasses.asdict(self).items()}
        values.pop("workdir")
        return json.dumps(values, sort_keys=True)


def from_args(argv: list[str]) -> Settings:
    """``name=value`` pairs override the defaults; only numbers are overridden on the shop floor."""
    settings = Settings()
    for pair in argv:
        name, _, value = pair.partition("=")
        kind = type(getattr(settings, name))
        settings = dataclasses.replace(settings, **{name: kind(value)})
    return settings
