import argparse

import numpy as np

from .readings import days
from .trainer import Trainer

parser = argparse.ArgumentParser(prog="alarms")
parser.add_argument("--epochs", type=int, default=7)
parser.add_argument("--folder", default="alarms_state")
options = parser.parse_args()

trainer = Trainer(options.folder)
test = days(77, seed=2)
loss, chances = trainer.run(days(256, seed=1), test, options.epochs)
cutoff = float(trainer.cutoff.numpy())
right = np.mean((chances > cutoff) == test[1])
print(
    f"held out: loss {loss:.4f}, best {float(trainer.best.numpy()):.4f}, accuracy {right:.4f} "
    f"with cutoff {cutoff:.4f}; rate {float(trainer.optimizer.learning_rate.numpy()):.5f}"
)
