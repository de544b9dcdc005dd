import argparse

import keras
import tensorflow as tf

from .pretrain import pretrain
from .probe import probe

parser = argparse.ArgumentParser(prog="contrastive")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--out", default="results")
args = parser.parse_args()

keras.utils.set_random_seed(3)
strategy = tf.distribute.MirroredStrategy()
last = pretrain(strategy, args.out, epochs=args.epochs)
loss, accuracy = probe(strategy, args.out)
print(f"contrastive loss {last:.4f}, probe loss {loss:.4f}, accuracy {accuracy:.4f}")
