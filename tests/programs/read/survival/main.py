import numpy as np
import tensorflow as tf

from cox import Cohort, CoxFit

if __name__ == "__main__":
    train, test = Cohort(360, seed=1).by_clinic(), Cohort(120, seed=2)
    fit = CoxFit(tf.distribute.MirroredStrategy())
    for number, values in enumerate(fit.epochs(train, size=60, count=6)):
        print(number, " ".join(f"{k}={v:.4f}" for k, v in values.items()))
    risk = fit.risk(test.x)
    print(f"final loss {values['loss']:.4f} ridge {values['ridge']:.5f} events {values['events']:.1f} "
          f"concordance {test.concordance(risk):.4f} risk {np.abs(risk).mean():.4f} "
          f"weights {sum(np.abs(w).sum() for w in fit.net.get_weights()):.4f}")
