"""python -m pumps: learns what good pumps sound like, and says how much worse worn ones are."""
import tensorflow as tf

from pumps.signals import pumps
from pumps.trainer import Trainer

good, held_out, worn = pumps(300, seed=1), pumps(75, seed=2), pumps(75, seed=3, worn=0.5)
trainer = Trainer(tf.distribute.MirroredStrategy())
trainer.fit(good, held_out, epochs=6)
normal, bad = trainer.test(held_out), trainer.test(worn)
usual = float(trainer.usual.numpy())
print(f"held out {normal:.6f} best {float(trainer.best.numpy()):.6f} worn {bad:.6f} usual {usual:.6f} ratio {bad / usual:.5f}")
