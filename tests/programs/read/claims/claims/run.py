import argparse

import keras
import numpy as np
import tensorflow as tf

from . import BATCH, blocks, judge, portfolio


def rows(first, last, batch):
    spec = ({"numbers": tf.TensorSpec((4,), tf.float32), "region": tf.TensorSpec((), tf.int32)}, tf.TensorSpec((1,), tf.float32))
    data = tf.data.Dataset.from_generator(lambda: portfolio.policies(first, last), output_signature=spec)
    return data.apply(tf.data.experimental.assert_cardinality(last - first)).cache().batch(batch)


def main(argv=None):
    cli = argparse.ArgumentParser()
    cli.add_argument("-e", "--epochs", type=int, default=5)
    cli.add_argument("-w", "--claim-weight", type=float, default=2.5)
    options = cli.parse_args(argv)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = blocks.network()
        model.compile(optimizer=keras.optimizers.SGD(0.4, momentum=0.6), loss=judge.focal(1.5), weighted_metrics=[],
                      metrics=[judge.FScore(threshold=0.4, name="f")])
    stop = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    history = model.fit(rows(0, 384, BATCH), validation_data=rows(400, 475, BATCH), epochs=options.epochs, verbose=0,
                        class_weight={0: 1.0, 1: options.claim_weight}, callbacks=[stop]).history
    for epoch, values in enumerate(zip(*history.values())):
        print(epoch, dict(zip(history, (round(float(v), 4) for v in values))))
    loss, f = model.evaluate(rows(400, 475, BATCH), verbose=0)
    print(f"final loss {loss:.4f} f {f:.4f} train {history['loss'][-1]:.4f} trainf {history['f'][-1]:.4f} "
          f"weights {sum(np.abs(w).sum() for w in model.get_weights()):.4f}")


if __name__ == "__main__":
    main()
