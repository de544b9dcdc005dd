"""Restoration of noisy, scratched scans.

A small residual network learns the difference between a degraded scan and the clean one. The weights that we
ship are an exponential moving average of the trained ones; the step size warms up, decays with a cosine and is
halved by a plateau controller. A run that was interrupted goes on from the last checkpoint.

    python train.py --epochs 6 --batch-size 16
"""
from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
import keras

HERE = Path(__file__).resolve().parent


@dataclass
class Config:
    epochs: int = 6
    batch_size: int = 16
    train_scans: int = 96
    valid_scans: int = 32
    side: int = 16
    width: int = 8
    blocks: int = 2
    peak_rate: float = 0.08
    momentum: float = 0.9
    warmup_steps: int = 5
    clip_norm: float = 0.25
    ema_decay: float = 0.93
    edge_weight: float = 0.3
    patience: int = 0
    min_gain_db: float = 2.5
    seed: int = 20
    run_dir: str = "runs/restore"

    @property
    def steps_per_epoch(self) -> int:
        return self.train_scans // self.batch_size

    @property
    def total_steps(self) -> int:
        return self.steps_per_epoch * self.epochs


# ---------------------------------------------------------------------------------------------------- data

def clean_scans(count, side, seed):
    """Smooth gratings with a few round stamps, values in [0, 1]."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side].astype("float32") / side
    scans = np.empty((count, side, side, 1), "float32")
    for i in range(count):
        angle, freq, phase = rng.uniform(0, np.pi), rng.uniform(1, 3), rng.uniform(0, 2 * np.pi)
        page = 0.5 + 0.25 * np.sin(2 * np.pi * freq * (np.cos(angle) * x + np.sin(angle) * y) + phase)
        for _ in range(rng.integers(1, 4)):
            cx, cy, r = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.08, 0.2)
            page += rng.uniform(-0.3, 0.3) * (((x - cx) ** 2 + (y - cy) ** 2) < r * r)
        scans[i, ..., 0] = np.clip(page, 0, 1)
    return scans


def degrade(scans, seed):
    """Adds sensor noise and one or two dark scratches to every scan; the same seed gives the same damage."""
    rng = np.random.default_rng(seed)
    damaged = scans + rng.normal(0, 0.12, scans.shape).astype("float32")
    for page in damaged:
        for row in rng.integers(0, page.shape[0], rng.integers(1, 3)):
            page[row] *= 0.3
    return np.clip(damaged, 0, 1)


class ScanSource:
    """Hands out one epoch after the other; damage and order belong to the number of the epoch."""

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.train = clean_scans(cfg.train_scans, cfg.side, cfg.seed)
        self.valid = clean_scans(cfg.valid_scans, cfg.side, cfg.seed + 1)
        self.valid_damaged = degrade(self.valid, cfg.seed + 2)

    def epoch(self, number):
        order = np.random.default_rng([self.cfg.seed, 7, number]).permutation(len(self.train))
        clean = self.train[order]
        damaged = degrade(clean, [self.cfg.seed, 11, number])
        data = tf.data.Dataset.from_tensor_slices((damaged, clean))
        return data.batch(self.cfg.batch_size, drop_remainder=True).prefetch(2)

    def validation(self):
        data = tf.data.Dataset.from_tensor_slices((self.valid_damaged, self.valid))
        return data.batch(self.cfg.batch_size, drop_remainder=True)


# --------------------------------------------------------------------------------------------------- model

class ResidualBlock(keras.layers.Layer):
    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.expand = keras.layers.Conv2D(2 * width, 3, padding="same", activation="relu")
        self.project = keras.layers.Conv2D(width, 1)

    def call(self, x):
        return x + self.project(self.expand(x))


def build_restorer(cfg: Config) -> keras.Model:
    scan = keras.Input((cfg.side, cfg.side, 1), name="scan")
    x = keras.layers.Conv2D(cfg.width, 3, padding="same", activation="relu", name="stem")(scan)
    for i in range(cfg.blocks):
        x = ResidualBlock(cfg.width, name=f"block{i}")(x)
    damage = keras.layers.Conv2D(1, 3, padding="same", kernel_initializer="zeros", name="damage")(x)
    return keras.Model(scan, scan - damage, name="restorer")


class RestorationLoss:
    """Charbonnier distance of the pixels and of the edges, over the batch of all replicas."""

    def __init__(self, global_batch, edge_weight, eps=1e-3):
        self.global_batch = global_batch
        self.edge_weight = edge_weight
        self.eps2 = eps ** 2

    def charbonnier(self, a, b):
        return tf.reduce_mean(tf.sqrt(tf.square(a - b) + self.eps2), axis=[1, 2, 3])

    def __call__(self, clean, restored):
        pixel = self.charbonnier(clean, restored)
        dy_c, dx_c = tf.image.image_gradients(clean)
        dy_r, dx_r = tf.image.image_gradients(restored)
        edge = self.charbonnier(dy_c, dy_r) + self.charbonnier(dx_c, dx_r)
        return tf.reduce_sum(pixel + self.edge_weight * edge) / self.global_batch


class AveragedWeights(tf.Module):
    """Exponential moving average of a model's weights, to be swapped in for validation."""

    def __init__(self, model, decay):
        super().__init__()
        self.decay = decay
        self.shadow = [tf.Variable(w.numpy(), trainable=False, name=f"shadow{i}") for i, w in enumerate(model.trainable_weights)]

    def update(self, model):
        for mean, w in zip(self.shadow, model.trainable_weights):
            mean.assign(self.decay * mean + (1 - self.decay) * tf.convert_to_tensor(w))

    def swap(self, model):
        """Exchanges the average and the trained weights; call it again to get back."""
        for mean, w in zip(self.shadow, model.trainable_weights):
            held = w.numpy()
            w.assign(mean.numpy())
            mean.assign(held)


class Plateau(tf.Module):
    """Halves the step size when the validation does not gain `min_gain` dB for longer than `patience`."""

    def __init__(self, patience, min_gain):
        super().__init__()
        self.patience, self.min_gain = patience, min_gain
        self.best = tf.Variable(-1e9, trainable=False)
        self.wait = tf.Variable(0, trainable=False)
        self.scale = tf.Variable(1.0, trainable=False)

    def report(self, psnr):
        if psnr > float(self.best) + self.min_gain:
            self.best.assign(psnr)
            self.wait.assign(0)
            return
        self.wait.assign_add(1)
        if int(self.wait) > self.patience:
            self.scale.assign(self.scale * 0.5)
            self.wait.assign(0)


# ------------------------------------------------------------------------------------------------- trainer

class Trainer:
    def __init__(self, cfg: Config, strategy: tf.distribute.Strategy):
        self.cfg = cfg
        self.strategy = strategy
        self.source = ScanSource(cfg)
        self.run_dir = HERE / cfg.run_dir
        self.run_dir.mkdir(parents=True, exist_ok=True)
        with strategy.scope():
            self.model = build_restorer(cfg)
            self.optimizer = keras.optimizers.SGD(cfg.peak_rate, momentum=cfg.momentum)
            self.optimizer.build(self.model.trainable_variables)
        self.criterion = RestorationLoss(cfg.batch_size, cfg.edge_weight)
        self.average = AveragedWeights(self.model, cfg.ema_decay)
        self.plateau = Plateau(cfg.patience, cfg.min_gain_db)
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(**self.state()), str(self.run_dir / "checkpoints"), max_to_keep=2)

    def state(self):
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "average": self.average,
            "plateau": self.plateau,
            "step": self.step,
            "epoch": self.epoch,
        }

    def rate(self):
        step, warm = int(self.step), self.cfg.warmup_steps
        if step < warm:
            factor = (step + 1) / warm
        else:
            factor = 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, self.cfg.total_steps - warm)))
        return self.cfg.peak_rate * factor * float(self.plateau.scale)

    def clip(self, gradients):
        """Clips the gradient of the global batch. apply_gradients sums over the replicas once more, hence the division."""
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients, _ = tf.clip_by_global_norm(gradients, self.cfg.clip_norm)
        return [g / context.num_replicas_in_sync for g in gradients]

    def replica_step(self, damaged, clean):
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            restored = self.model(damaged, training=True)
            loss = self.criterion(clean, restored)
        gradients = self.clip(tape.gradient(loss, variables))
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss

    @tf.function
    def train_step(self, damaged, clean):
        losses = self.strategy.run(self.replica_step, args=(damaged, clean))
        return self.strategy.reduce("SUM", losses, axis=None)

    @tf.function
    def valid_step(self, damaged, clean):
        def psnr_sum(damaged, clean):
            restored = tf.clip_by_value(self.model(damaged, training=False), 0.0, 1.0)
            return tf.reduce_sum(tf.image.psnr(clean, restored, max_val=1.0))
        return self.strategy.reduce("SUM", self.strategy.run(psnr_sum, args=(damaged, clean)), axis=None)

    def validate(self):
        self.average.swap(self.model)
        total = 0.0
        for damaged, clean in self.strategy.experimental_distribute_dataset(self.source.validation()):
            total += float(self.valid_step(damaged, clean))
        self.average.swap(self.model)
        return total / self.cfg.valid_scans

    def run_epoch(self, number):
        losses = []
        for damaged, clean in self.strategy.experimental_distribute_dataset(self.source.epoch(number)):
            self.optimizer.learning_rate.assign(self.rate())
            losses.append(float(self.train_step(damaged, clean)))
            self.average.update(self.model)
            self.step.assign_add(1)
        return float(np.mean(losses))

    def fit(self):
        self.manager.restore_or_initialize()
        first = int(self.epoch)
        if first:
            print(f"going on after epoch {first}, step {int(self.step)}")
        loss = psnr = float("nan")
        for number in range(first, self.cfg.epochs):
            loss = self.run_epoch(number)
            psnr = self.validate()
            self.plateau.report(psnr)
            self.epoch.assign_add(1)
            print(f"epoch {number + 1}: loss {loss:.5f} psnr {psnr:.4f} dB, scale {float(self.plateau.scale):.4f}")
            self.manager.save()
        return loss, psnr


def parse() -> Config:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--batch-size", type=int, default=Config.batch_size)
    parser.add_argument("--peak-rate", type=float, default=Config.peak_rate)
    args = parser.parse_args()
    return Config(epochs=args.epochs, batch_size=args.batch_size, peak_rate=args.peak_rate)


def main():
    cfg = parse()
    keras.utils.set_random_seed(cfg.seed)
    trainer = Trainer(cfg, tf.distribute.MirroredStrategy())
    (trainer.run_dir / "config.json").write_text(json.dumps(asdict(cfg), indent=1))
    loss, psnr = trainer.fit()
    size = sum(float(np.abs(w.numpy()).sum()) for w in trainer.model.trainable_weights)
    shadow = sum(float(np.abs(w.numpy()).sum()) for w in trainer.average.shadow)
    print(f"final: loss {loss:.5f} psnr {psnr:.5f} weights {size:.5f} average {shadow:.5f}")


if __name__ == "__main__":
    main()
