from dataclasses import dataclass, field


@dataclass(frozen=True)
class Optim:
    peak: float = 0.02
    warm: int = 4
    total: int = 24
    limit: float = 0.25


@dataclass(frozen=True)
class Settings:
    side: int = 16
    batch: int = 16
    images: int = 96
    held_out: int = 36
    epochs: int = 4
    dice_share: float = 0.6
    optim: Optim = field(default_factory=Optim)
