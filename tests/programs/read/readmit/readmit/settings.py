import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    rows: int = 480
    holdout: int = 160
    batch_size: int = 32
    epochs: int = 9
    learning_rate: float = 0.02
    hidden: int = 16
    wards: int = 8
    zip_bins: int = 12
    seed: int = 404
