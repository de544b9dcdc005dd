from dataclasses import dataclass, field

import tensorflow as tf


@dataclass(frozen=True)
class Settings:
    discount: float = 0.9
    rate: float = 0.02
    follow: float = 0.5
    calmer: float = 0.7
    noise: float = 0.05
    batch: int = 64
    epochs: int = 5
    widths: tuple[int, ...] = (16, 12)
    strategy: tf.distribute.Strategy = field(default_factory=tf.distribute.MirroredStrategy)

    @property
    def batch_size(self) -> int:
        return self.batch
