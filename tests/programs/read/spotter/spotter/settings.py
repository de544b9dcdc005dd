"""What can be chosen."""
from dataclasses import dataclass


@dataclass
class Settings:
    words: int = 4
    frames: int = 24
    bands: int = 6
    clips: int = 128
    batch: int = 16
    epochs: int = 5
    cool_epochs: int = 2
    rate: float = 0.02
    cool_rate: float = 0.001
    decay: float = 0.9
    synchronized: bool = True
    folder: str = "state"
