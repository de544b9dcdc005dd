import dataclasses


@dataclasses.dataclass
class Config:
    epochs: int = 10
    batch: int = 16
    max_len: int = 18
    vocab: int = 90
    tags: int = 5          # O, DRUG, DOSE, SYMPTOM, BODY
    dim: int = 12
    units: int = 12
    rate: float = 0.2
    patience: int = 4
    min_delta: float = 0.5
    prior_decay: float = 0.9
    seed: int = 8
